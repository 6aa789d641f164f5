"""Competitions in a zip: what is found in it, its limits, and writing one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.board import SeasonRules
from bot.domain.competition import PointsRule
from bot.domain.errors import UserError
from bot.domain.tasks import competition as module
from bot.domain.tasks.bundle import TaskBundle, read_files
from bot.domain.tasks.competition import CompetitionEntry, read_competition, write_competition
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import digest
from runners.contract.task import TaskDefinition
from tests.doubles.task_zips import packed_competition, zipped

TEXT = """\
name: Cup
extra: yes
ranks: [3, 2]
problems:
  - {directory: double, name: first, opens: 2030-06-01, deadline: "2030-07-01 6:59", gpus: [CPU]}
  - {directory: triple/, name: second, late_runs: true}
"""


def read(data: bytes) -> tuple[tuple[TaskBundle, TaskDefinition, CompetitionEntry], ...]:
    parsed = read_competition(data)
    bundles, entries = parsed.bundles(read_files(data)), parsed.definition.problems
    tasks = [each.task for each in parsed.tasks]
    return tuple(zip(bundles, tasks, entries, strict=True))


def refusal(data: bytes) -> str:
    with pytest.raises(UserError) as caught:
        read_competition(data)
    return caught.value.message


def test_a_zip_has_the_task_of_each_board() -> None:
    data = packed_competition(TEXT, "double", "triple")
    (bundle, task, first), (_, other, second) = read(data)
    assert (first.name, task.name, bundle.root) == ("first", "double", "double")
    assert (second.name, other.name) == ("second", "triple")
    assert first.rules == SeasonRules(datetime(2030, 6, 1, tzinfo=UTC))
    assert second.rules == SeasonRules(late_runs=True)
    (warning,) = read_competition(data).warnings
    assert warning.startswith("set.yaml:2: unknown key 'extra'")


def test_the_file_may_lie_in_a_folder_and_its_tasks_may_share_files() -> None:
    files = {f"problems/sets/a/{name}": text for name, text in scaffold("a").items()}
    text = files["problems/sets/a/task.yml"].replace("source: reference.py", "source: ../../r.py")
    assert "../../r.py" in text
    files |= {"problems/sets/a/task.yml": text, "problems/sets/a/data.yaml": "x: 1"}
    files["problems/r.py"] = files.pop("problems/sets/a/reference.py")
    files["problems/set.yml"] = "name: x\nproblems: [{directory: sets/a, name: a}]"
    ((_, task, _),) = read(zipped(files))
    assert task.files["reference.py"] == files["problems/r.py"]


def test_unknown_keys_of_a_task_are_warnings() -> None:
    task = scaffold("double")["task.yml"]
    data = packed_competition(
        "name: x\nproblems: [{directory: double, name: a}]",
        "double",
        **{"double/task__yml": f"milestones: [1]\n{task}"},
    )
    (warning,) = read_competition(data).warnings
    assert warning.startswith("double/task.yml:1: unknown key 'milestones'")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"double/task.yml": "lang: py"}, "there is no competition in the zip"),
        ({"a.yaml": TEXT, "b.yml": TEXT}, "b.yml: a second YAML file in addition to a.yaml"),
        ({"a.yaml": TEXT}, "double/task.yml: there is no such file"),
        ({"a.yaml": "problems: ["}, "a.yaml:1: not YAML"),
        ({"a.yaml": TEXT, "double/task.yml": "lang: py"}, "double/task.yml:1: the key"),
        ({"a.yaml": TEXT, "../x": ""}, "'.', '..' or an empty part in the path"),
    ],
)
def test_what_is_no_competition_is_refused(files: dict[str, str], words: str) -> None:
    assert words in refusal(zipped(files))


def test_tasks_that_share_files_are_not_larger_together_than_a_zip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problems = ", ".join(f"{{directory: double, name: b{number}}}" for number in range(20))
    data = packed_competition(f"name: x\nproblems: [{problems}]", "double")
    assert len(read(data)) == 20
    monkeypatch.setattr(module, "MAX_UNPACKED", 10_000)
    assert "the tasks have more than 10,000 bytes together" in refusal(data)


def test_a_written_competition_is_read_as_the_same_boards() -> None:
    data = packed_competition(TEXT, "double", "triple")
    before, parsed = read(data), read_competition(data)
    written = write_competition(parsed.definition, [bundle for bundle, _, _ in before])
    again = read_competition(written)
    assert again.warnings == ()
    assert again.definition.points == PointsRule((3.0, 2.0))
    after = read(written)
    assert [replace(each, directory="") for _, _, each in after] == [
        replace(each, directory="") for _, _, each in before
    ]
    assert [digest(task) for _, task, _ in after] == [digest(task) for _, task, _ in before]
