"""The report of a run as JSON: every value of `RunReport` under its own name, with a schema."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

from migrate.report.run_values import RunReport

SCHEMA: Final = "kraft-migrate/run-report/v1"


def run_json(report: RunReport) -> str:
    """Schema and report; times are seconds since the epoch, durations seconds."""
    body = {"schema": SCHEMA, **asdict(report)}
    return json.dumps(body, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
