"""What a confined process does is counted by the measurement of coverage, down to its last step."""

import inspect
from pathlib import Path

import pytest

from runners.harness.sandbox import isolate
from tests.doubles import footprints
from tests.unit.runners.harness.sandbox.confinement import run


def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *refused: str) -> set[tuple[int, int]]:
    """From line to line in `isolate`, by every process of one driver."""
    file = tmp_path / "footprints"
    file.touch()
    monkeypatch.setenv(footprints.FILE, str(file))
    assert run("said = 1", nested=False, refused=refused).said == 1
    return footprints.Footprints(str(file)).arcs()[isolate.__file__]


def test_the_last_step_within_all_walls_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, first = inspect.getsourcelines(isolate.drop_rights)
    last = first + len(body) - 1
    assert (last, -first) in steps(tmp_path, monkeypatch)


def test_a_branch_counts_only_when_it_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, first = inspect.getsourcelines(isolate.make_namespaces)
    network, otherwise = first + 3, first + 5
    assert "CLONE_NEWNET" in body[3]
    taken = {line for _, line in steps(tmp_path, monkeypatch, "namespaces")}
    assert otherwise in taken
    assert network not in taken
