"""What setup.py declares, as the installed distribution's metadata tell it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata

import pytest

from migrate.errors import PackageMissing
from migrate.model.requirements import EXTRAS, install_line, package_missing, require, requirements
from tests.lowest import declared, oldest


@pytest.fixture(autouse=True)
def _metadata_of_these_sources(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of the installation are of the day on which it was made."""
    found = declared()
    lines = [*found["install_requires"]]
    lines += [f'{one}; extra == "{extra}"' for extra, some in found["extras_require"].items() for one in some]
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    requirements.cache_clear()
    yield
    requirements.cache_clear()


@pytest.mark.slow
def test_every_requirement_is_read_with_its_bounds() -> None:
    """What every command needs first, then each extra's."""
    found = declared()
    always = [one.text for one in requirements() if not one.extra]
    assert always == found["install_requires"]
    for extra in EXTRAS:
        assert [one.text for one in requirements() if one.extra == extra] == found["extras_require"][extra]


def test_all_and_dev_bring_what_the_other_extras_bring() -> None:
    """One install line for each of them."""
    extras = declared()["extras_require"]
    everything = {one for extra in EXTRAS for one in extras[extra]}
    assert set(extras["all"]) == everything
    assert set(extras["dev"]) >= everything | set(extras["bench"]) | set(extras["docs"])


@pytest.mark.parametrize(
    ("module", "text", "why"),
    [
        ("confluent_kafka.admin", "confluent-kafka>=2.6", "it comes with the extra `lab`"),
        ("asyncssh", "asyncssh>=2.18", "it comes with the extra `lab`"),
        ("grpc", "pyspark[connect]>=4.0,<5", "it comes with the extra `connect`"),
        ("pandas", "pandas>=2.2,<3", "a plain installation has it"),
        ("pyspark", "pyspark>=4.0,<5", "a plain installation has it"),
        ("py4j.protocol", "pyspark>=4.0,<5", "a plain installation has it"),
        ("yaml", "pyyaml>=6.0", "a plain installation has it"),
    ],
)
def test_a_missing_module_is_answered_with_its_package_in_our_bounds(module: str, text: str, why: str) -> None:
    """Never with a version that we refuse."""
    error = package_missing(module)
    assert error is not None
    assert (str(error), error.why) == (f"the package {text} is not installed", why)
    assert error.next_step == f"{sys.executable} -m pip install '{text}'"


def test_a_module_of_ours_or_of_nobody_is_no_missing_package() -> None:
    """It is a defect."""
    assert package_missing("migrate.nothing") is None
    assert package_missing("no_such_module") is None


def test_nothing_is_known_without_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an unpacked tree: no line is made up."""
    requirements.cache_clear()

    def none_there(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", none_there)
    assert requirements() == ()
    assert package_missing("yaml") is None


def test_what_is_required_is_looked_for_and_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that is missing is named."""
    require("yaml", "click")
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    with pytest.raises(PackageMissing, match="asyncssh>="):
        require("yaml", "asyncssh")


def test_one_line_installs_all_of_an_extra() -> None:
    """Each quoted, for the shell."""
    line = install_line(one for one in requirements() if one.extra == "lab")
    assert line == f"{sys.executable} -m pip install 'confluent-kafka>=2.6' 'asyncssh>=2.18' 'joserfc>=1.6'"


def test_every_lower_bound_can_be_installed_alone() -> None:
    """`python -m tests lowest` does: each requirement has one, and it is of a whole version."""
    assert all(re.fullmatch(r"[\w-]+(\[\w+\])?==\d+(\.\d+)*", one) for one in oldest())
