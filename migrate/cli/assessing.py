"""What `assess` does beside looking and judging: it writes its reports."""

from __future__ import annotations

import pathlib

from migrate import checks
from migrate.cli.planning import write_text
from migrate.errors import UsageWrong
from migrate.model.findings import Finding
from migrate.model.world import World
from migrate.report.assessment import Assessment, assessment_html, assessment_markdown
from migrate.report.directory_rows import directory_rows


def write_reports(
    world: World, findings: tuple[Finding, ...], html: pathlib.Path | None, markdown: pathlib.Path | None
) -> None:
    """The assessment as files, of mode 0600; UsageWrong where one cannot be written."""
    found = Assessment(world.inventory.name, findings, checks.asked(world), directory_rows(world))
    for path, render in ((html, assessment_html), (markdown, assessment_markdown)):
        if path is not None:
            try:
                write_text(path, render(found))
            except OSError as error:
                raise UsageWrong(f"the report cannot be written: {error.strerror}", where=str(path)) from error
