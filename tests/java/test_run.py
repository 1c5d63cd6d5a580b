"""Starting Java programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from migrate.errors import JavaToolFailed
from migrate.java.find import Java, find_java
from migrate.java.run import end_at_end_of_input, java_argv, run_tool

IVY_MAIN = "org.apache.ivy.Main"


def test_the_class_path_stands_before_the_main_class() -> None:
    """Options of the JVM first, the program's own last."""
    argv = java_argv(Java("/java", 17, "PATH"), ["a.jar", "b.jar"], "Main", ["x"], ["-Xmx1m"])
    assert argv[0] == "/java"
    assert argv[-4:] == ("-cp", "a.jar:b.jar", "Main", "x")
    assert "-Xmx1m" in argv[:-4]


def test_a_java_that_does_not_start_is_a_typed_error() -> None:
    """With the program that it was to run."""
    with pytest.raises(JavaToolFailed, match="Main did not start"):
        run_tool(Java("/nonexistent/java", 17, "PATH"), [], "Main", [], 5)


@pytest.mark.slow
def test_a_tool_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """The wait has an end, and says how long it was."""
    binary = tmp_path / "java"
    binary.write_text("#!/bin/sh\nexec sleep 600\n")
    binary.chmod(0o755)
    with pytest.raises(JavaToolFailed, match="did not end within"):
        run_tool(Java(str(binary), 17, "PATH"), [], "Main", [], 0.2)


@pytest.mark.slow
def test_a_process_ends_at_the_end_of_its_input_or_is_killed() -> None:
    """Nothing of ours may hang on a JVM that ignores it."""
    for command, code in (("cat", 0), ("exec tail -f /dev/null", -9)):
        process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE)
        end_at_end_of_input(process, 10.0 if code == 0 else 0.2)
        assert process.returncode == code


@pytest.mark.kafka
def test_a_tools_exit_code_and_words_come_back() -> None:
    """Whatever they are: what they mean is the caller's to say."""
    done = run_tool(find_java(), [], "no.such.Main", [], 60)
    assert done.returncode == 1
    assert "no.such.Main" in done.stderr
