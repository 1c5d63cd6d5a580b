"""What systemd keeps from a unit's node, property by property, against what this tool says of it."""

from __future__ import annotations

from typing import Final

import pytest

from migrate.model.launch import VIEW, kept_from
from tests.bed.conftest import hosts_or_skip
from tests.bed.shape import Shape

pytestmark = [pytest.mark.hosts, pytest.mark.long]
PLACES: Final = (
    *("/home/kafka", "/root/k", "/tmp/k", "/var/tmp/k", "/srv/kafka/disk1/k", "/etc/kafka", "/opt/k", "/opt/k/sub"),
    *("/usr/k", "/boot/k", "/var/lib/k/d", "/var/log/k/d"),
)
LOOK: Final = """#!/bin/sh
for d in "$@"; do
  a=-; b=-
  cat $d/f >/dev/null 2>&1 && a=r
  ( : >>$d/f ) 2>/dev/null && b=w
  echo $d $a$b
done
"""
TRIED: Final = (
    *("PrivateDevices=yes", "ProtectHome=yes", "ProtectHome=read-only", "ProtectHome=tmpfs", "ProtectSystem=yes"),
    *("ProtectSystem=full", "ProtectSystem=strict", "ProtectSystem=strict;ReadWritePaths=/srv"),
    *("ProtectSystem=strict;ReadWritePaths=/srv/kafka/disk1 -/nonexist", "ProtectSystem=strict;PrivateTmp=yes"),
    *("ProtectSystem=strict;StateDirectory=k", "ProtectSystem=strict;LogsDirectory=k", "PrivateTmp=yes"),
    *("ProtectSystem=strict;ProtectHome=read-only", "ProtectSystem=strict;ProtectHome=read-only;ReadWritePaths=/home"),
    *("InaccessiblePaths=/opt/k", "InaccessiblePaths=/opt/k;ReadWritePaths=/opt/k/sub", "InaccessiblePaths=-/opt/k/f"),
    *(
        "ReadOnlyPaths=/srv",
        "ReadOnlyPaths=/opt;ReadWritePaths=/opt/k/sub",
        "ReadOnlyPaths=/opt/k/sub;ReadWritePaths=/opt",
    ),
    *("ReadOnlyPaths=+/opt", "ReadOnlyPaths=/opt;ReadWritePaths=/opt", "ReadOnlyPaths=/;ReadWritePaths=/srv"),
    *("TemporaryFileSystem=/opt", "TemporaryFileSystem=/opt;BindPaths=/opt/k/sub", "BindReadOnlyPaths=/opt/k"),
    *("TemporaryFileSystem=/opt:ro;BindReadOnlyPaths=/opt/k/sub:/opt/k/sub", "BindPaths=/srv:/usr/k"),
    *("ProtectHome=yes;ReadWritePaths=/home/kafka", "ProtectHome=yes;BindPaths=/home/kafka"),
    *("ProtectHome=tmpfs;BindPaths=/home/kafka", "PrivateTmp=yes;BindPaths=/tmp/k", "DynamicUser=yes"),
)


def test_what_a_unit_sees_and_writes_is_what_is_said_of_it() -> None:
    """Each file is there, and open to everybody, on the host."""
    with hosts_or_skip(Shape(hosts=1)) as bed:
        made = "; ".join(f"mkdir -p {place}; echo k >{place}/f; chmod 777 {place} {place}/f" for place in PLACES)
        bed.must("h1", f"chmod 711 /root; chmod 755 /srv/kafka; {made}")
        bed.must("h1", f"cat >/usr/local/bin/look <<'X'\n{LOOK}X\nchmod 755 /usr/local/bin/look")
        wrong = []
        for tried in TRIED:
            given = " ".join(f"-p '{one}'" for one in tried.split(";"))
            given += "" if "DynamicUser" in tried else " -p User=kafka"
            unit = f"systemd-run --quiet -u view {given}"
            show = f"{unit} sleep 60; systemctl show view.service -p {','.join(VIEW)}; systemctl stop view.service"
            shown = [line.partition("=") for line in bed.must("h1", show).splitlines()]
            view = tuple((name, value) for name, _, value in shown if value not in ("", "no"))
            look = bed.must("h1", f"{unit} --wait --pipe /usr/local/bin/look {' '.join(PLACES)}")
            for place, seen in (line.split() for line in look.splitlines()):
                said = ("-" if kept_from(view, f"{place}/f") else "r") + (
                    "-" if kept_from(view, f"{place}/f", written=True) else "w"
                )
                if said != seen:
                    wrong.append(f"{tried}: {place} is {seen}, said {said} by {view}")
        assert not wrong, "\n".join(wrong)
