"""An object store that speaks S3, in a process of its own on loopback (moto's server)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from pyarrow.fs import FileSystem, copy_files

from migrate.lab.topology import free_ports

BUCKET: Final = "fleet"
LOGIN: Final = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_EC2_METADATA_DISABLED": "true"}
DEADLINE: Final = 60.0


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Who asks it needs `LOGIN` in the environment."""

    port: int

    def uri(self, name: str) -> str:
        """Of a folder in it."""
        return f"s3://{BUCKET}/{name}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"

    def put(self, folder: Path, name: str) -> None:
        """Copy all files of a folder of this host there."""
        store, path = FileSystem.from_uri(f"{self.uri(name)}&allow_bucket_creation=true")
        store.create_dir(BUCKET)
        copy_files(str(folder), path, destination_filesystem=store)


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Empty; it ends with the block."""
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + DEADLINE
        while not _answers(port):
            assert time.monotonic() < until, "moto's server does not answer"
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"moto's server ended with {process.wait(0.1)}")
        yield ObjectStore(port)
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            return True
    except HTTPError:
        return True
    except (URLError, OSError):
        return False
