"""The report of a run as one self-contained HTML file: no script, no network, light and dark, printable."""

from __future__ import annotations

from migrate.report import figure_ledger
from migrate.report.figure_diff import counts_matrix
from migrate.report.figure_timeline import timeline
from migrate.report.run_values import RunReport
from migrate.report.templating import render

OPEN_BROKERS = 6  # more whole brokers than this are folded


def run_html(report: RunReport) -> str:
    """The whole file."""
    groups = figure_ledger.brokers(report)
    whole = [group for group in groups if group.whole]
    fold = len(whole) > OPEN_BROKERS
    return render(
        "run.html.jinja",
        report=report,
        timeline=timeline(report),
        overview=figure_ledger.overview(report),
        legend=[(state, figure_ledger.css_class(state)) for state in figure_ledger.legend(report)],
        shown=[group for group in groups if not (fold and group.whole)],
        folded=whole if fold else [],
        final=any(not span.reversible for span in report.stages),
        matrix=counts_matrix(report.diffs[-1]) if report.diffs else "",
    )
