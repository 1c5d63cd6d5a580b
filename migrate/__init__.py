"""kraft-migrate: a ZooKeeper-mode Kafka cluster with several log directories a broker, taken to KRaft in place."""

__version__ = "0.3.0"
