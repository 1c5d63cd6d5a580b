"""Find a JVM, start one, Kafka's jars."""
