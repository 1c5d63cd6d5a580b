"""What one step needs, checks, predicts, does, verifies and undoes."""
