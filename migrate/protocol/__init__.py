"""Bytes on Kafka's wire and in its files: primitives, record batches, and declarative tables with the reader and writer made from them."""
