"""Competition YAML in KernelBot's form: boards, deadlines, GPU types."""

from datetime import UTC, datetime

import pytest

from bot.domain.competition import parse_competition, parse_deadline
from bot.domain.errors import UserError

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


def test_a_competition_gives_its_boards() -> None:
    competition = parse_competition(TEXT)
    add, sort = competition.problems
    assert (competition.name, competition.description) == ("Season", "words")
    assert competition.deadline == datetime(2030, 6, 30, tzinfo=UTC)
    assert (add.directory, add.name, add.gpus) == ("set/add", "add", ("H100", "CPU"))
    assert add.deadline == datetime(2030, 6, 30, 6, 59, tzinfo=UTC)
    assert (sort.directory, sort.deadline, sort.gpus) == ("set/sort", None, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-06-30 18:00", datetime(2030, 6, 30, 18, tzinfo=UTC)),
        ("2030-06-30 18:00 Europe/Berlin", datetime(2030, 6, 30, 16, tzinfo=UTC)),
        ("2030-12-30 18:00 Europe/Berlin", datetime(2030, 12, 30, 17, tzinfo=UTC)),
        ("2030-06-30T18:00Z", datetime(2030, 6, 30, 18, tzinfo=UTC)),
        ("2030-06-30 18:00 -07:30", datetime(2030, 7, 1, 1, 30, tzinfo=UTC)),
        ("2030-06-30 +0200", datetime(2030, 6, 29, 22, tzinfo=UTC)),
        ("  ", None),
    ],
)
def test_a_deadline_is_an_aware_time_in_utc(text: str, expected: datetime | None) -> None:
    assert parse_deadline(text) == expected


@pytest.mark.parametrize(
    "text",
    ["tomorrow", "2030-13-01", "2030-02-30", "2030-06-30 25:00", "2030-06-30 18:00 Mars/Base",
     "2030-06-30 18", "2030-06-30 18:00 +99:00", "9999-12-31 23:59 -12:00", "2030-06-30 1:00 ../x"],
)  # fmt: skip
def test_what_is_no_deadline_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UserError, match="YYYY-MM-DD"):
        parse_deadline(text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: add", "name: Add", ("c.yml:6", "problems.0.name")),
        ("name: sort-v2", "name: add", ("c.yml:10", "stands here again")),
        ("set/add", "../add", ("c.yml:5",)),
        ("set/add", "set/../../add", ("c.yml:5", "without '..'")),
        ("2030-06-30 6:59", "soon", ("c.yml:7", "YYYY-MM-DD")),
        ("[H100, CPU]", "H100", ("c.yml:8", "problems.0.gpus")),
        ("    gpus:", "    gpu:", ("c.yml:8", "did you mean 'gpus'?")),
        ("description:", "descriptoin:", ("c.yml:3", "did you mean 'description'?")),
        ("name: Season\n", "", ("'name' is missing",)),
    ],
)
def test_a_mistake_is_refused_with_its_line(old: str, new: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        parse_competition(TEXT.replace(old, new, 1), file="c.yml")
    for word in words:
        assert word in caught.value.message


def test_an_unknown_key_of_an_imported_set_is_a_warning() -> None:
    (warning,) = parse_competition(TEXT + "prize: much\n", file="c.yml", strict=False).warnings
    assert "c.yml:12: unknown key 'prize'" in warning


def test_a_competition_without_boards_is_refused() -> None:
    with pytest.raises(UserError, match="problems"):
        parse_competition("name: x\nproblems: []\n")
