"""The root file system of a bed's hosts: made once by debootstrap, of the release that this machine runs; cached."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from migrate.java.jars import locked
from migrate.model.trusted import cache_directory

INSTALL: Final = Path(__file__).with_name("install")
PROGRAMS: Final = ("systemd-nspawn", "debootstrap", "ssh", "ip", "losetup", "mkfs.ext4", "unshare", "nsenter", "sv")
PACKAGES: Final = (
    "systemd systemd-sysv dbus sudo openssh-server python3 iproute2 procps mount util-linux e2fsprogs tcsh zlib1g"
)
DEBOOTSTRAP_SECONDS: Final = 900


class BedUnavailable(Exception):
    """No bed can be prepared on this machine; the text says why."""


def install() -> None:
    """What a bed needs on this machine, installed where it is missing.

    Raises:
        BedUnavailable: we are not root, this is no Debian, or the packages cannot be had.
    """
    if os.geteuid() != 0:
        raise BedUnavailable("a bed of hosts needs root")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if not missing:
        return
    done = subprocess.run([str(INSTALL)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BedUnavailable(f"{', '.join(missing)} missing, and tests/bed/install failed: {done.stderr[-300:]}")


def rootfs() -> Path:
    """The cached root file system; made on the first call.

    Raises:
        BedUnavailable: debootstrap failed, or this system's release or mirror is not known.
    """
    suite, mirror = _release(), _mirror()
    facts = f"{suite} {platform.machine()} {PACKAGES}"
    folder = cache_directory() / f"bed-{suite}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    with locked(folder.with_name("bed.lock"), print, seconds=DEBOOTSTRAP_SECONDS):
        if folder.is_dir():
            return folder
        stage = folder.with_name(folder.name + ".partial")
        shutil.rmtree(stage, ignore_errors=True)
        words = [
            "debootstrap",
            "--variant=minbase",
            f"--include={','.join(PACKAGES.split())}",
            suite,
            str(stage),
            mirror,
        ]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEBOOTSTRAP_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BedUnavailable(f"debootstrap took longer than {DEBOOTSTRAP_SECONDS} s") from error
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            shutil.rmtree(stage, ignore_errors=True)
            raise BedUnavailable(f"debootstrap failed: {' / '.join(said[-3:])}")
        for left in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(stage / left, ignore_errors=True)
        stage.rename(folder)
    return folder


def _release() -> str:
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError) as error:
        raise BedUnavailable("/etc/os-release names no release of a Debian-like system") from error


def _mirror() -> str:
    """Where apt itself gets this system from: the first source."""
    places = [*sorted(Path("/etc/apt/sources.list.d").glob("*.sources")), Path("/etc/apt/sources.list")]
    for place in places:
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        found = re.search(r"^(?:URIs:\s*|deb\s+(?:\[[^]]*\]\s*)?)(\S+)", text, re.MULTILINE)
        if found:
            return found[1]
    raise BedUnavailable("apt's sources name no mirror")
