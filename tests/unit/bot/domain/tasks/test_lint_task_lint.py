"""Remarks on a task that need no run."""

import pytest

from bot.domain.tasks.bundle import TaskBundle, solutions
from bot.domain.tasks.lint import lint
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import parse_task


def remarks(*changes: tuple[str, str], without: str = "nothing") -> list[str]:
    files = {path: text for path, text in scaffold("a").items() if without not in path}
    for old, new in changes:
        assert old in files["task.yml"]
        files["task.yml"] = files["task.yml"].replace(old, new)
    bundle = TaskBundle({f"a/{path}": text.encode() for path, text in files.items()}, "a")
    return [finding.message for finding in lint(parse_task(bundle), solutions(bundle))]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("# a", "about", "no heading"),
        ("templates:\n  Python: template.py\n", "", "no template"),
        ("size: 127, seed: 2", "size: 1, seed: 2", "repeats the arguments"),
        ("size: 1000003, seed: 4", "size: 1000, seed: 4", "not larger than the test 'size: 1000;"),
    ],
)
def test_each_weakness_is_remarked_upon_and_nothing_else(old: str, new: str, word: str) -> None:
    (remark,) = remarks((old, new))
    assert word in remark


def test_sizes_that_never_leave_a_rest_are_remarked_upon() -> None:
    (remark,) = remarks(("size: 127,", "size: 128,"), ("size: 1,", "size: 16,"), ("1000,", "1024,"))
    assert "multiple of 16" in remark


@pytest.mark.parametrize("kind", ["solutions/correct", "solutions/wrong"])
def test_missing_solutions_are_remarked_upon(kind: str) -> None:
    (remark,) = remarks(without=kind)
    assert kind in remark
