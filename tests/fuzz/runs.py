"""Bundles, and the files of a run's folder, with their sums created again."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import google_crc32c

from migrate.cli.planning import save_plan
from migrate.cli.status import unended
from migrate.model import plain_tar
from migrate.model.codec import decode
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.observe import bundle
from migrate.playbook.load import load_inventory
from migrate.run.journal import HEAD, START
from tests.cli.commands import playbook_in
from tests.fuzz.damage import Parts
from tests.fuzz.parts import dumped
from tests.fuzz.trial import command
from tests.report import story
from tests.steps.looks import whole


def bundle_parts(folder: Path) -> Parts:
    """Of a cluster half way."""
    raw = gzip.decompress(_written(folder / "b", whole(Stage.HYBRID)))
    (folder / "b").unlink()
    members = plain_tar.unpack(raw)
    body = json.loads(members.pop(bundle.MANIFEST))["body"]
    del body["parts"]
    return {**members, "body.json": dumped(body)}


def _written(path: Path, world: Any) -> bytes:
    bundle.write_bundle(str(path), world, 1_700_000_000)
    return path.read_bytes()


def bundle_members(parts: Parts) -> list[tuple[str, bytes]]:
    """The manifest, its sums right, and the parts."""
    members = {name: raw for name, raw in parts.items() if name != "body.json"}
    rows = {name[:-5]: {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)} for name, raw in members.items()}
    try:
        body = json.loads(parts["body.json"])
        if isinstance(body, dict):
            body = {"parts": rows, **body}
        head = {"format": bundle.FORMAT, "version": bundle.VERSION, "sha256": bundle._sum(bundle._bytes(body))}
        manifest = dumped({**head, "body": body})
    except (ValueError, RecursionError):
        manifest = b'{"format":"%s","version":%d,"body":%s}' % (
            bundle.FORMAT.encode(),
            bundle.VERSION,
            parts["body.json"],
        )
    return [(bundle.MANIFEST, manifest), *members.items()]


def read_bundle(_: Path, path: Path) -> None:
    """Shown; and where it is one, assessed, planned from and verified."""
    if command("bundle", "show", path):
        with contextlib.suppress(StopIteration):
            command("bundle", "show", path, "-o", "json")
    for words in (("assess",), ("directories", "verify"), ("directories", "show"), ("plan",)):
        if not _typed(command(*words, "--from-bundle", path)):
            return


def _typed(out: str) -> bool:
    """Did the command get as far as an answer?"""
    return bool(out)


RUN: Final = "run"


def run_folder(folder: Path) -> Path:
    """A finished run's folder with its plan, journal and a request."""
    file = playbook_in(folder)
    inventory = load_inventory(folder / "inventory.yaml")
    known = story.plan()
    plan = replace(
        known,
        steps=known.steps[:3],
        findings=known.findings[:2],
        playbook=str(file),
        inventory=str(folder / "inventory.yaml"),
        playbook_sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        inventory_sha256=hashlib.sha256((folder / "inventory.yaml").read_bytes()).hexdigest(),
    )
    made = save_plan(inventory, plan).parent
    place = made.rename(folder / RUN)
    (place / "journal.jsonl").write_bytes(sealed_journal(journal_bytes(plan.fingerprint)))
    return place


def journal_bytes(fingerprint: str) -> bytes:
    """The story's journal, of that plan."""
    first = {event.name: event for event in reversed(story.journal())}
    events = [
        (event.time, event.name, dict(event.data)) for event in sorted(first.values(), key=lambda one: one.number)
    ]
    events[0] = (*events[0][:2], {**events[0][2], "plan": fingerprint})
    lines = [dumped({"n": 0, "t": time, "event": name, "data": data, "prev": ""}) for time, name, data in events]
    return b"".join(b"%08x %08x %s\n" % (0, 0, line) for line in lines)


def sealed_journal(raw: bytes) -> bytes:
    """Each line's number, length, sum and chain anew; a line that is no object keeps its text."""
    out, previous = [], START
    for number, line in enumerate(raw.splitlines()):
        text = line[HEAD:]
        with contextlib.suppress(ValueError, RecursionError, UnicodeDecodeError):
            body = json.loads(text)
            if isinstance(body, dict):
                body |= {"n": number if body.get("n") == 0 else body.get("n")} if "n" in body else {}
                body |= {"prev": previous} if body.get("prev") == "" else {}
            if b"Infinity" not in text and b"NaN" not in text:
                text = dumped(body)
        whole = b"%08x %08x %s\n" % (len(text), google_crc32c.value(text), text)
        previous = hashlib.sha256(whole).hexdigest()
        out.append(whole)
    return b"".join(out)


def sealed_plan(raw: bytes) -> bytes:
    """Its sum anew, and its fingerprint where it is a plan; whatever else it is stays."""
    try:
        body = json.loads(raw)
        plan = decode(Plan, body["plan"], "plan", plain=True)
        body["fingerprint"], body["content"] = plan.fingerprint, plan.content
    except Exception:  # noqa: BLE001 - whatever it is, it is no plan, and keeps its sums
        return raw
    return json.dumps(body).encode()


def unsealed_journal(folder: Path) -> Parts:
    """Its lines without numbers and chain: sealing puts in both."""
    plan = json.loads((run_folder(folder) / "plan.json").read_bytes())
    return {"journal.jsonl": journal_bytes(plan["fingerprint"])}


def in_run(name: str) -> Callable[[Path], Parts]:
    """A file of a run's folder."""

    def parts(folder: Path) -> Parts:
        return {Path(name).name: (run_folder(folder) / name).read_bytes()}

    return parts


def read_plan(place: Path, path: Path) -> None:
    """By every command that takes one, but for `apply`, which reads it as they do and asks a cluster then."""
    command("report", path.parent)
    unended(place)


def read_journal(place: Path, path: Path) -> None:
    """The reports of the run, what is left of it, and who it says it belongs to."""
    command("report", path.parent)
    unended(place)
