"""Models that tests hold the package to: what a migration may do next, where a cluster stands, where a replica is."""
