"""A real cluster on one host: its topology, configuration, seeding, load."""
