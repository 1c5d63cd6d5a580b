"""The manual executor: instructions for an operator, proven by the collector's answers and the network."""
