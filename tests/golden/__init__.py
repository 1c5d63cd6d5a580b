"""Answers kept byte for byte."""
