"""The ZooKeeper view, read with kazoo; conditional writes and the run's lock."""
