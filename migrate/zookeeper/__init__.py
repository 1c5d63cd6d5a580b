"""The ZooKeeper view: what a ZooKeeper-mode cluster says of itself, read with kazoo; conditional writes and the run's lock."""
