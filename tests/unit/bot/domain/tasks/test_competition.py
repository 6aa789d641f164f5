"""Competition YAML in KernelBot's form: boards, deadlines, GPU types."""

from datetime import UTC, datetime

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.competition import CompetitionDefinition, parse_competition

TEXT = """\
name: Season
deadline: 2030-06-30
description: words
problems:
  - directory: set/add
    name: add
    deadline: "2030-06-30 6:59"
    gpus: [H100, CPU]
  - directory: set/sort/
    name: sort-v2
    deadline: ""
"""


def parse(text: str) -> CompetitionDefinition:
    return parse_competition(text.encode(), "c.yml")


def test_a_competition_gives_its_boards() -> None:
    competition = parse(TEXT)
    add, sort = competition.problems
    assert (competition.name, competition.description) == ("Season", "words")
    assert competition.deadline == datetime(2030, 6, 30, 23, 59, tzinfo=UTC)
    assert (add.directory, add.name, add.gpus) == ("set/add", "add", ("H100", "CPU"))
    assert add.deadline == datetime(2030, 6, 30, 6, 59, tzinfo=UTC)
    assert (sort.directory, sort.deadline, sort.gpus) == ("set/sort", None, ())


@pytest.mark.parametrize("written", ["", "deadline:", "deadline: ''", "deadline: ' '"])
def test_a_board_without_a_deadline_stays_open(written: str) -> None:
    (problem,) = parse(
        f"name: x\nproblems:\n  - directory: a\n    name: a\n    {written}\n"
    ).problems
    assert problem.deadline is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: add", "name: Add", ("c.yml:6", "problems.0.name")),
        ("name: sort-v2", "name: add", ("c.yml:10", "appears twice")),
        ("set/add", "../add", ("c.yml:5",)),
        ("set/add", "set/../../add", ("c.yml:5", "without '..'")),
        ("2030-06-30 6:59", "soon", ("c.yml:7", "YYYY-MM-DD")),
        ("[H100, CPU]", "H100", ("c.yml:8", "problems.0.gpus")),
        ("[H100, CPU]", "[H100, CPU/name: ]", ("c.yml:8: problems.0.gpus.1: must be a valid",)),
        ("name: Season\n", "", ("'name' is missing",)),
    ],
)
def test_a_mistake_is_refused_with_its_line(old: str, new: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        parse(TEXT.replace(old, new, 1))
    for word in words:
        assert word in caught.value.message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    gpus:", "    gpu:", "c.yml:8: unknown key 'gpu'; did you mean 'gpus'?"),
        ("description:", "descriptoin:", "c.yml:3: unknown key 'descriptoin'; did you mean"),
    ],
)
def test_an_unknown_key_is_passed_over_with_a_warning(old: str, new: str, words: str) -> None:
    (warning,) = parse(TEXT.replace(old, new, 1)).warnings
    assert warning.startswith(words)


def test_a_competition_without_boards_is_refused() -> None:
    with pytest.raises(UserError, match="problems"):
        parse("name: x\nproblems: []\n")
