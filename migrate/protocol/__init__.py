"""Kafka's wire format: schemas, record batches, and the codec for both."""
