"""Fixtures that more than one area uses; each starts what it needs when a test first asks for it."""

from __future__ import annotations

from tests.testing.kraft_cluster import kraft_cluster

__all__ = ["kraft_cluster"]
