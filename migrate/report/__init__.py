"""Journal and verdicts to what a person and a machine read."""
