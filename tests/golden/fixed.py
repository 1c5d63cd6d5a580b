"""What no kept answer may depend on, fixed: clock, random keys of digests, process and host, the release's number."""

from __future__ import annotations

import sys

import pytest

from migrate.model.secrets import Digester

NOW = 1_760_000_000.0  # 2025-10-09 08:53:20 UTC


def fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one test.  Modules must be imported by then: one that is imported later would keep what is fixed here."""
    monkeypatch.setattr("time.time", lambda: NOW)
    monkeypatch.setattr("os.getpid", lambda: 4711)
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    monkeypatch.setattr("migrate.model.secrets._OF_THIS_PROCESS", Digester(b"k" * 32))
    monkeypatch.setattr("secrets.token_bytes", lambda count: b"k" * (count or 32))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "migrate" and hasattr(module, "__version__"):
            monkeypatch.setattr(module, "__version__", "0.0.0")
