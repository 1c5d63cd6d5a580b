"""When a run may act and who must approve it: the keys `windows`, `approvals` and `approval`, and their rules."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, WithJsonSchema

from migrate.model.approvals import DEFAULT_EXPIRY, ApprovalPolicy, ApprovalRule, public_key
from migrate.model.windows import DAY_NAMES, Always, Dated, LastBusinessDay, Span, Weekly, Window, ever_opens
from migrate.playbook.calendars import is_listed, listed
from migrate.playbook.fields import ALWAYS_SO, Duration, Fault, Location, Section, Text, Whole

DAY: Final = "(?:" + "|".join(DAY_NAMES) + ")"
WEEKLY: Final = re.compile(rf"({DAY}(?:-{DAY})?(?:,{DAY}(?:-{DAY})?)*)(?: ([0-2]\d:[0-5]\d)-([0-2]\d:[0-5]\d))?")
MOMENT: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?"
DATED: Final = re.compile(rf"({MOMENT})(?:\.\.({MOMENT}))?")
MINUTES: Final = 1440
EXAMPLES: Final = (
    "a span is expected: 'Mon-Thu 21:00-05:00', 'Sat,Sun', '2026-12-15..2027-01-04' (whole days), "
    "'2026-12-01T21:00..2026-12-02T05:00', 'last-business-day-of-month' or 'always'"
)


def span_of(text: str) -> Span:
    """The span that a playbook writes so; ValueError with examples for any other text."""
    if text == "always":
        return Always()
    if text == "last-business-day-of-month":
        return LastBusinessDay()
    if (match := WEEKLY.fullmatch(text)) is not None:
        start, end = (0, MINUTES) if match[2] is None else (_minutes(match[2]), _minutes(match[3]))
        if start in (end, MINUTES):
            raise ValueError(f"{text!r} has no length; a whole day is written without hours, such as 'Sat'")
        return Weekly(_days(match[1]), start, end)
    if (match := DATED.fullmatch(text)) is not None:
        start_text, end_text = match[1], match[2] or match[1]
        begin, finish = _moment(start_text), _moment(end_text)
        if len(end_text) == len("2026-12-15"):
            finish += dt.timedelta(days=1)  # a day is meant whole
        elif match[2] is None:
            raise ValueError(f"{text!r} has no end: write it as BEGIN..END")
        if finish <= begin:
            raise ValueError(f"{text!r} ends before it begins")
        return Dated(begin.isoformat(timespec="minutes"), finish.isoformat(timespec="minutes"))
    raise ValueError(EXAMPLES)


def _minutes(text: str) -> int:
    minutes = int(text[:2]) * 60 + int(text[3:])
    if minutes > MINUTES:
        raise ValueError(f"{text} is no time of a day: 00:00 to 24:00")
    return minutes


def _days(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAY_NAMES.index(first), DAY_NAMES.index(last or first)
        found += [(begin + step) % 7 for step in range((end - begin) % 7 + 1)]
    if len(set(found)) != len(found):
        raise ValueError(f"a day appears twice in {text!r}")
    return tuple(sorted(found))


def _moment(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text.replace(" ", "T"))
    except ValueError as error:
        raise ValueError(f"{text!r} is no day, or no time of one") from error


def _allowed(text: str) -> str:
    if isinstance(span_of(text), LastBusinessDay):
        raise ValueError("this span only denies")  # noqa: TRY004 - pydantic collects ValueErrors
    return text


def _denied(text: str) -> str:
    if is_listed(text):
        return text
    if isinstance(span_of(text), Always):
        raise ValueError("a window that is always denied never opens")  # noqa: TRY004 - pydantic collects ValueErrors
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError; odd paths are OSErrors
        raise ValueError("an IANA time zone is expected, such as Europe/Berlin or UTC") from error
    return text


TimeZone = Annotated[Text, AfterValidator(_zone)]


class WindowSection(Section):
    """When a run may act.  Blackouts (`deny`) win; `reserve` at the end stays free for a rollback."""

    timezone: TimeZone = "UTC"
    allow: Annotated[list[Annotated[Text, AfterValidator(_allowed)]], Field(min_length=1)]
    deny: list[Annotated[Text, AfterValidator(_denied)]] = Field(default_factory=list)
    reserve: Duration = 2700.0
    # a local time that does not exist or is ambiguous is read so that the window is shorter
    dst: Annotated[Literal["shortest"], ALWAYS_SO] = "shortest"

    def window(self, name: str, near: Path) -> Window:
        """The window; calendars are read from beside the playbook, and raise as `calendars.listed`."""
        denied = (listed(text, near, self.timezone) if is_listed(text) else span_of(text) for text in self.deny)
        return Window(name, self.timezone, tuple(map(span_of, self.allow)), tuple(denied), self.reserve)


PublicKey = Annotated[Text, AfterValidator(public_key)]


class ApprovalsSection(Section):
    """Groups of reviewers, and public keys: a name with a key counts only where its approval is signed."""

    groups: dict[Text, Annotated[list[Text], Field(min_length=1)]] = Field(default_factory=dict)
    keys: dict[Text, PublicKey] = Field(default_factory=dict)
    signed: Literal["required", "where-known"] = "where-known"


class ApprovalSection(Section):
    """What one stage asks for before its first step."""

    reviewers: Annotated[list[Text], Field(min_length=1)]
    min: Annotated[Whole, Field(ge=1)] = 1
    expires: Annotated[Duration, Field(ge=60)] = DEFAULT_EXPIRY
    distinct: Annotated[Literal["true"], WithJsonSchema({"const": True}), ALWAYS_SO] = "true"  # per person
    instructions: Text | None = None
    confirm: Literal["type-cluster-name"] | None = None  # finalize always asks for it

    def rule(self) -> ApprovalRule:
        return ApprovalRule(tuple(self.reviewers), self.min, self.expires, True, self.instructions or "")


class Acting(Protocol):
    """What every kind of playbook says of it."""

    @property
    def windows(self) -> Mapping[str, WindowSection]:
        """By name."""

    @property
    def approvals(self) -> ApprovalsSection:
        """Groups and keys."""


def approval_policy(asked: Mapping[str, ApprovalSection | None], approvals: ApprovalsSection) -> ApprovalPolicy:
    """The approvals of a playbook as one value; rules by stage label, and `rollback`."""
    return ApprovalPolicy(
        rules={name: section.rule() for name, section in asked.items() if section is not None},
        keys=dict(approvals.keys),
        groups={name: tuple(members) for name, members in approvals.groups.items()},
        signed=approvals.signed == "required",
    )


def closed_faults(spec: Acting, near: Path) -> Iterator[Fault]:
    for name, section in spec.windows.items():
        at = ("spec", "windows", name)
        try:
            window = section.window(name, near)
        except ValueError as error:
            yield Fault((*at, "deny"), str(error), "days that are not known cannot be denied")
            continue
        if not ever_opens(window):
            yield Fault(
                at,
                f"window {name} never opens",
                "what it denies covers all that it allows",
                "take a blackout out, or allow more",
            )


def window_faults(spec: Acting, at: Location, window: str | None) -> Iterator[Fault]:
    if window is not None and window not in spec.windows:
        known = ", ".join(spec.windows) or "none"
        yield Fault((*at, "window"), f"there is no window {window!r}", f"`windows` has: {known}")


def approval_faults(spec: Acting, at: Location, approval: ApprovalSection | None) -> Iterator[Fault]:
    """Reviewers that are nobody, keys that are missing, more persons asked for than there are."""
    if approval is None:
        return
    where = (*at, "approval", "reviewers")
    groups = spec.approvals.groups
    for index, name in enumerate(approval.reviewers):
        if name.startswith("@") and name not in groups:
            yield Fault(
                (*where, index),
                f"there is no group {name}",
                "persons must be distinguishable, so a group is a list of names",
                f"write its members under spec.approvals.groups: {{'{name}': [alice, bob]}}",
            )
    persons = {person for name in approval.reviewers for person in groups.get(name, [name])}
    if spec.approvals.signed == "required":
        for person in sorted(persons - set(spec.approvals.keys)):
            yield Fault(where, f"reviewer {person} has no key", "all approvals must be signed", "add it to keys")
    if len(persons) < approval.min:
        yield Fault((*at, "approval", "min"), f"{approval.min} approvals are asked of {len(persons)} persons")


def key_faults(spec: Acting) -> Iterator[Fault]:
    """Keys and groups that do not tell persons apart."""
    seen: dict[str, str] = {}
    for person, key in spec.approvals.keys.items():
        if key in seen:
            yield Fault(
                ("spec", "approvals", "keys", person),
                f"{person} has the key of {seen[key]}",
                "two names with one key would be one person who approves twice",
            )
        seen.setdefault(key, person)
    for group, members in spec.approvals.groups.items():
        at = ("spec", "approvals", "groups", group)
        if not group.startswith("@"):
            yield Fault(at, f"a group's name begins with @, not {group!r}")
        for index, member in enumerate(members):
            if member.startswith("@"):
                yield Fault((*at, index), "a group has persons in it, no groups")
