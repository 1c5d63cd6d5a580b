"""`kind: Notifications`: webhooks and commands, and which events of a run each of them is told.

A file of its own, which a playbook names: a plan is bound to its playbook's bytes, and another pager needs no new
approval.  It names commands that are run, so others must not be able to write it.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from migrate.model.inventory import Hook, Recipient, Webhook
from migrate.model.notifications import Happening
from migrate.playbook.access import secret_of
from migrate.playbook.document import read_deciding
from migrate.playbook.fields import (
    CommandWord,
    Duration,
    Fault,
    Metadata,
    Name,
    SecretReference,
    Section,
    Text,
    refuse,
    validate,
)

HOOK_SECONDS: Final = 10.0


def _url(text: str) -> str:
    """Shown to nobody: a path or query may be the key to a channel."""
    try:
        found = urlsplit(text)
        host, _ = found.hostname or "", found.port
    except ValueError:
        host = ""
    if not host or not text.isascii() or any(letter.isspace() for letter in text):
        raise ValueError("a URL is expected, such as https://pager.example.com/kafka")
    if found.username is not None or found.password is not None:
        raise ValueError("the URL names a user: credentials do not belong into it, the body is signed instead")
    if found.fragment:
        raise ValueError("a URL that is posted to has no fragment (#...)")
    if found.scheme != "https" and not (found.scheme == "http" and _is_loopback(host)):
        raise ValueError("https is expected; http only to this host itself (localhost, 127.0.0.1, [::1])")
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Url = Annotated[Text, AfterValidator(_url)]
Chosen = Literal["begins", "needs-approval", "parked", "stopped", "point-of-no-return", "ended"]


class RecipientSection(Section):
    """What webhooks and hooks have in common: a name, and what they are told."""

    name: Name
    events: list[Chosen] = Field(default_factory=list)
    waits_longer_than: Annotated[Duration, Field(ge=1)] | None = None
    half_rolled_longer_than: Annotated[Duration, Field(ge=1)] | None = None

    def recipient(self, to: Webhook | Hook) -> Recipient:
        lasting = {Happening.WAITS: self.waits_longer_than, Happening.HALF_ROLLED: self.half_rolled_longer_than}
        longer_than = {event: seconds for event, seconds in lasting.items() if seconds is not None}
        return Recipient(self.name, to, frozenset(map(Happening, self.events)), longer_than)


class WebhookSection(RecipientSection):
    """A URL that each notification is posted to, signed."""

    url: Url
    secret: SecretReference


class HookSection(RecipientSection):
    """A command that gets each notification on its standard input."""

    command: Annotated[list[CommandWord], Field(min_length=1)]  # no shell: a list of words
    timeout: Annotated[Duration, Field(ge=1, le=30)] = HOOK_SECONDS

    @model_validator(mode="after")
    def _is_absolute(self) -> HookSection:
        if not self.command[0].startswith("/"):
            raise ValueError("the command's first word is the absolute path of a program")
        return self


class NotificationsSpec(Section):
    """Everybody who is told."""

    webhooks: list[WebhookSection] = Field(default_factory=list)
    hooks: list[HookSection] = Field(default_factory=list)


class NotificationsDocument(Section):
    """Who is told what happens in a run; a playbook names the file."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["Notifications"]
    metadata: Metadata
    spec: NotificationsSpec


def load_notifications(path: str | Path) -> tuple[Recipient, ...]:
    """Everybody whom that file names; secrets are not read here.

    Raises DocumentUnreadable, DocumentNotTrusted, YamlRefused or DocumentInvalid, each with file:line:column.
    """
    document = read_deciding(Path(path))
    spec = validate(document, NotificationsDocument).spec
    refuse(document, _faults(spec))
    near = document.path.absolute().parent
    found: list[Recipient] = []
    for webhook in spec.webhooks:
        secret = secret_of(webhook.secret, lambda named: os.path.normpath(near / named))
        assert secret is not None
        found.append(webhook.recipient(Webhook(webhook.url, secret)))
    found += [hook.recipient(Hook(tuple(hook.command), hook.timeout)) for hook in spec.hooks]
    return tuple(found)


def _faults(spec: NotificationsSpec) -> Iterator[Fault]:
    seen: set[str] = set()
    for key, sections in (("webhooks", spec.webhooks), ("hooks", spec.hooks)):
        for index, section in enumerate(sections):
            at = ("spec", key, index)
            if section.name in seen:
                yield Fault((*at, "name"), f"the name {section.name} appears twice", "messages tell them apart by it")
            seen.add(section.name)
            if not section.events and section.waits_longer_than is None and section.half_rolled_longer_than is None:
                yield Fault(
                    at,
                    f"{section.name} is told of nothing",
                    next_step="name what it is told: `events`, `waits_longer_than`, `half_rolled_longer_than`",
                )
