"""The user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.model.trusted import cache_directory


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CACHE_HOME where it is absolute, else ~/.cache (XDG base directories)."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "kraft-migrate"
    monkeypatch.setenv("HOME", "/home/somebody")
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_directory() == Path("/home/somebody/.cache/kraft-migrate")
