"""Bytes on Kafka's wire and in its files: primitives, record batches, declarative tables and their codec."""
