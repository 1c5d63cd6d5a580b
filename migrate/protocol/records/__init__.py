"""Tables of the metadata log's records (Kafka 3.7 to 3.9, every version) and of its control records."""
