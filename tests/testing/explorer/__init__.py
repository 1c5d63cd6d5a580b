"""A model of a cluster under migration, small enough to be visited whole, and the drivers that visit it.

`cluster` has the values, `kafka` what Kafka does by itself, `faults` what befalls it, `effects` what an engine does to
it, `system` engines and locks around it, `search` the breadth-first visit, `walk` seeded walks.
"""
