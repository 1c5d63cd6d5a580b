"""A session on a Spark Connect server (`sc://HOST:PORT`): no driver and no Java of ours, plans go there over gRPC.

Needs what the extra `connect` of this package installs.  The server's settings are its own: only those that a session
may change are asked for here.  A token, where the server wants one, is pyspark's `SPARK_CONNECT_AUTHENTICATE_TOKEN`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from migrate.errors import SparkDidNotStart
from migrate.model.spark_where import SparkWhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODE: Final = "SPARK_CONNECT_MODE_ENABLED"  # by which pyspark's functions know of whose sessions they are
RETRIES: Final = 5
FIRST_PAUSE, LONGEST_PAUSE = 100, 5_000  # ms; pyspark itself would try for ten minutes
DETAILS: Final = re.compile(r'details = "(.*)"')
OURS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
}


def open_session(where: SparkWhere) -> SparkSession:
    """A new session there, its settings ours and `where.conf`.

    Raises:
        SparkDidNotStart: packages are missing, nobody answers, or a setting is none that a session may change.
    """
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - see session._spark_home
        from pyspark.sql.connect.session import SparkSession as Remote  # noqa: PLC0415
    except ImportError as error:
        raise SparkDidNotStart(
            "packages for Spark Connect are missing",
            where=where.master,
            why=str(error).splitlines()[0],
            next_step="pip install 'kafka-kraft-migrate[connect]'",
        ) from error
    os.environ[MODE] = "1"
    remote: Any = Remote(connection=where.master)  # pyspark's types set both kinds of sessions apart, its code does not
    session: SparkSession = remote
    try:
        policy = DefaultPolicy(max_retries=RETRIES, initial_backoff=FIRST_PAUSE, max_backoff=LONGEST_PAUSE)
        remote.client.set_retry_policies([policy])
        _configure(session, {**OURS, **where.conf})
    except Exception as error:
        close_session(session)
        raise SparkDidNotStart(
            f"the Spark session did not come up at {where.master}: {_reason(error)}", where=where.master
        ) from error
    return session


def _reason(error: Exception) -> str:
    """In one line: gRPC tells of itself in many, of which one says what was."""
    text = str(error)
    found = DETAILS.search(text)
    return found[1] if found else f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _configure(session: SparkSession, conf: Mapping[str, str]) -> None:
    for name, value in sorted(conf.items()):
        session.conf.set(name, value)


def close_session(session: SparkSession) -> None:
    """End the session there; the server goes on.  A server that is gone has ended it already."""
    try:
        session.client.set_retry_policies([])
        session.stop()
    except Exception:  # noqa: BLE001, S110 - we are ending it
        pass
    finally:
        os.environ.pop(MODE, None)
