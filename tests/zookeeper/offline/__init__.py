"""Tests of ZooKeeper's files."""
