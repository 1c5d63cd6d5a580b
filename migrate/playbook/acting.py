"""What a playbook says about when and by whose word a run may act: windows and approvals, held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from migrate.model.approvals import ApprovalPolicy
from migrate.model.stage import Stage
from migrate.model.windows import ever_opens
from migrate.playbook.approvals import ApprovalSection, ApprovalsSection
from migrate.playbook.problems import Fault, Location
from migrate.playbook.schema import Spec
from migrate.playbook.windows import WindowSection


class Acting(Protocol):
    """What every kind of playbook says of it."""

    @property
    def windows(self) -> Mapping[str, WindowSection]:
        """By name."""

    @property
    def approvals(self) -> ApprovalsSection:
        """Groups and keys."""


def stage_approvals(spec: Spec) -> ApprovalPolicy:
    """The approvals of a MigrationPlaybook: of each stage, and of the way back."""
    asked = {str(section.name): section.approval for section in spec.stages}
    return approval_policy({**asked, "rollback": spec.rollback.approval}, spec.approvals)


def approval_policy(asked: Mapping[str, ApprovalSection | None], approvals: ApprovalsSection) -> ApprovalPolicy:
    """The approvals of a playbook as one value; rules by stage label, and `rollback`."""
    return ApprovalPolicy(
        rules={name: section.rule() for name, section in asked.items() if section is not None},
        keys=dict(approvals.keys),
        groups={name: tuple(members) for name, members in approvals.groups.items()},
        signed=approvals.signed == "required",
    )


def acting_faults(spec: Spec) -> Iterator[Fault]:
    """Windows that are not there or never open, approvals that nobody could give."""
    yield from closed_faults(spec)
    for index, stage in enumerate(spec.stages):
        at: Location = ("spec", "stages", index)
        if stage.stage is Stage.COPY and (stage.window or stage.approval):
            yield Fault(
                (*at, "window" if stage.window else "approval"),
                "stage copy takes neither window nor approval",
                "it begins by itself with the registration of the last broker, and is watched in the same run",
                "put it on migration-mode",
            )
        yield from window_faults(spec, at, stage.window)
        yield from approval_faults(spec, at, stage.approval)
    yield from window_faults(spec, ("spec", "rollback"), spec.rollback.window)
    yield from approval_faults(spec, ("spec", "rollback"), spec.rollback.approval)
    yield from key_faults(spec)


def closed_faults(spec: Acting) -> Iterator[Fault]:
    """Windows that never open."""
    for name, section in spec.windows.items():
        if not ever_opens(section.window(name)):
            yield Fault(
                ("spec", "windows", name),
                f"window {name} never opens",
                "what it denies covers all that it allows",
                "take a blackout out, or allow more",
            )


def window_faults(spec: Acting, at: Location, window: str | None) -> Iterator[Fault]:
    """A window that is named and is not there."""
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
                "persons must be told apart, so a group is a list of names",
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
