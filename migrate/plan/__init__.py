"""Verdicts and playbook to a Plan: a fingerprinted list of steps."""
