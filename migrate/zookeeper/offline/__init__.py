"""ZooKeeper's own files, read without ZooKeeper: snapshots, transaction logs, and the tree that they make."""
