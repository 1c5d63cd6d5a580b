"""Asks the sources for what a step needs, and gives a World."""
