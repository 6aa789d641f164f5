import re
from pathlib import Path

import pytest

from runners.harness.toolchains import version_of

PRINTED = re.compile(r"^Version (\S+)", re.MULTILINE)


def program(folder: Path, script: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_program_is_run_once_for_its_version(tmp_path: Path) -> None:
    asked = program(tmp_path, "echo $1 >> asked; echo name; echo Version 2025.3.1.0 more")
    asked.write_text(asked.read_text().replace("asked;", f"{tmp_path}/asked;"))
    assert [version_of(asked, PRINTED) for _ in range(2)] == ["2025.3.1.0"] * 2
    assert (tmp_path / "asked").read_text() == "--version\n"


@pytest.mark.parametrize("script", ["echo Version 1; exit 1", "echo none"])
def test_a_program_that_fails_or_prints_something_else_has_no_version(
    tmp_path: Path, script: str
) -> None:
    assert version_of(program(tmp_path, script), PRINTED) is None


def test_a_program_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert version_of(tmp_path / "nowhere", PRINTED) is None
