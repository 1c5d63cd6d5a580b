"""Strict YAML to typed values: playbooks, inventories, accepted differences."""
