"""Competition YAML in KernelBot's form: boards, deadlines, GPU types."""

import json
from datetime import UTC, datetime

import pytest

from bot.domain.board import SeasonRules
from bot.domain.competition import PointsRule
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


def test_the_deadline_of_the_competition_is_that_of_each_board_without_its_own() -> None:
    add, sort = parse(TEXT.replace('    deadline: ""\n', "")).problems
    assert add.deadline == datetime(2030, 6, 30, 6, 59, tzinfo=UTC)
    assert sort.deadline == datetime(2030, 6, 30, 23, 59, tzinfo=UTC)
    with pytest.raises(UserError, match=r"c.yml:11: the board closes before it opens"):
        parse(TEXT.replace('deadline: ""', "opens: 2031-01-01"))


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
        ("name: Season", "name: ' / '\nopens: soon", ("c.yml:2", "YYYY-MM-DD")),
        ("name: Season", "name: ' . '", ("c.yml:1", "letters or digits")),
        ("deadline: 2030", "points: best\ndeadline: 2030", ("c.yml:2", "points")),
        ("deadline: 2030", "ranks: [3, -1]\ndeadline: 2030", ("c.yml:2", "ranks.1")),
        ("deadline: 2030", "ranks: [1]\npoints: ratio\ndeadline: 2030", ("c.yml:2", "not both")),
        (
            "deadline: 2030",
            "opens: 2030-06-30 6:59\ndeadline: 2030",
            ("c.yml:8", "before it opens"),
        ),
        ("    gpus:", "    late_runs: 3\n    gpus:", ("c.yml:8", "late_runs")),
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


def test_boards_open_with_the_competition_unless_they_say_otherwise() -> None:
    text = TEXT.replace("deadline: 2030", "opens: 2030-06-01\nlate_runs: true\ndeadline: 2030", 1)
    own = "    opens: 2030-06-03 12:00 UTC\n    late_runs: false\n    gpus:"
    competition = parse(text.replace("    gpus:", own))
    add, sort = competition.problems
    first = datetime(2030, 6, 1, tzinfo=UTC)
    assert add.rules == SeasonRules(datetime(2030, 6, 3, 12, tzinfo=UTC), late_runs=False)
    assert sort.rules == SeasonRules(first, late_runs=True)
    assert competition.opens_at == first
    assert parse(TEXT).opens_at is None
    assert parse(TEXT.replace("    gpus:", own)).opens_at is None


def test_points_are_the_ratio_of_times_or_a_list() -> None:
    assert parse(TEXT).points == parse(f"points: ratio\n{TEXT}").points == PointsRule()
    assert parse(f"ranks: [25, 18.5]\n{TEXT}").points == PointsRule((25.0, 18.5))


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("Spring cup 2030", "Spring cup 2030"),
        ("A/B \\ C", "A-B - C"),
        ("  two\n  lines ", "two lines"),
        ("x" * 300, "x" * 100),
    ],
)
def test_a_name_that_no_address_may_have_is_changed_with_a_warning(
    written: str, stored: str
) -> None:
    competition = parse(TEXT.replace("Season", json.dumps(written)))
    assert competition.name == stored
    changed = f"c.yml:1: the name is stored as {stored!r}"
    assert competition.warnings == (() if written == stored else (changed,))


def test_a_competition_has_at_most_100_boards() -> None:
    problems = "".join(f"  - directory: a\n    name: b{number}\n" for number in range(101))
    with pytest.raises(UserError, match="at most 100"):
        parse(f"name: x\nproblems:\n{problems}")


def test_a_competition_has_a_limit_of_leaderboards() -> None:
    gpus = ", ".join(f"GPU{each}" for each in range(64))
    problem = "  - {{directory: set/a{0}, name: a{0}, gpus: [{1}]}}\n"

    def problems(count: int) -> str:
        return "name: Season\nproblems:\n" + "".join(problem.format(i, gpus) for i in range(count))

    assert len(parse(problems(7)).problems) == 7
    with pytest.raises(UserError, match="at most 500 pairs of a board and a GPU type"):
        parse(problems(8))
    with pytest.raises(UserError, match="gpus"):
        parse("name: Season\nproblems:\n" + problem.format(1, f"{gpus}, H100"))
