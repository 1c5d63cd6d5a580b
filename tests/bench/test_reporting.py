"""The report of a run over a made-up cluster is measured, small."""

from __future__ import annotations

from pathlib import Path

from tests.bench import reporting


def test_a_report_is_made_in_every_form_and_measured(tmp_path: Path) -> None:
    """With every broker in it."""
    found = reporting.measure(5, 40, tmp_path)
    assert set(found.sizes) == {"journal", *reporting.FORMS}
    assert all(found.sizes.values())
    text = (tmp_path / "report.html").read_text()
    assert all(f"broker {broker}" in text for broker in range(5))
