"""Clusters whose views a test holds, compared as executors compare those that they read."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Sequence
from datetime import date

from pyspark.sql import SparkSession

from migrate.diff.compare import Question
from migrate.diff.fleet import Read, compare_clusters
from migrate.model.difference import DiffReport
from migrate.model.inventory import NotRead


def compare_many(spark: SparkSession, questions: Sequence[Question], *, today: date) -> list[DiffReport]:
    """The report of each, in their order."""

    def read(place: str) -> Read:  # nested: executors do not know the tests' modules
        return Read(pickle.loads(base64.b64decode(place)))

    places = [base64.b64encode(pickle.dumps(question)).decode() for question in questions]
    found = [answer for _, answer in compare_clusters(spark, places, read, today=today)]
    assert not [answer for answer in found if isinstance(answer, NotRead)], found
    return [answer.report for answer in found if not isinstance(answer, NotRead)]
