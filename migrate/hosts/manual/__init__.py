"""The manual executor: instructions for people, and proof from what they bring back and the network shows."""
