"""A real cluster on one host: topology, configuration, seed, load, faults."""
