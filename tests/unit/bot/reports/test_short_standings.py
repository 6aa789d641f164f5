"""Tests of the standings on a narrow screen."""

from dataclasses import replace

import pytest

from bot.discord.draw import message_drafts
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import FailedRun
from bot.domain.scoring import ScoreValue
from bot.reports.blocks import Table, Text, Tone
from bot.reports.short import (
    page_names,
    page_of,
    standings_pages,
    standings_side_by_side,
)
from tests.doubles.factories import NOON, make_board, make_score, rank


def standings(people: int, failed: int = 0, name: str = "person") -> BoardStandings:
    """Return a leaderboard of people whose times are far apart."""
    scores = [
        make_score(
            number,
            1.0,
            value=ScoreValue(10_000.0 * 1.1**number, 3.0, 0.1),
            person_name=f"{number} {name}",
        )
        for number in range(1, people + 1)
    ]
    refused = tuple(
        FailedRun(
            SubmissionId(n), PersonId(900 + n), name, "CPU", "crashed", "test", "x" * 300, NOON
        )
        for n in range(failed)
    )
    return BoardStandings(make_board(), 1, "CPU", rank(scores), refused, note="n" * 900)


def test_a_row_has_medal_name_time_and_gap_and_the_viewers_own_is_marked() -> None:
    (page,) = standings_pages(standings(4), PersonId(2))
    (draft,) = message_drafts(replace(page, blocks=page.blocks[:1]))
    assert draft.content == (
        "**vectoradd on CPU**\n"
        "**🥇 1 person** · 11.00 µs ± 0.01\n"
        "**🥈 2 person (you)** · 12.10 µs ± 0.01 · +10 %\n"
        "**🥉 3 person** · 13.31 µs ± 0.01 · +21 %\n"
        "**4. 4 person** · 14.64 µs ± 0.01 · +33 %"
    )


def test_a_handle_stays_whole_when_a_long_name_is_cut() -> None:
    (page,) = standings_pages(standings(1, name=f"{'n' * 40} (@{'h' * 32})"), PersonId(1))
    row = message_drafts(page)[0].content.split("\n")[1]
    assert f"nnn… (@{'h' * 32}) (you)**" in row


def test_the_first_ones_speedup_is_below_the_ranks() -> None:
    found = replace(standings(2), reference=ScoreValue(22_000.0, 3.0, 0.1))
    (page,) = standings_pages(found)
    assert Text("1st: 2.0x vs reference", Tone.QUIET) in page.blocks
    (empty,) = standings_pages(replace(found, entries=()))
    assert not any("1st" in each.text for each in empty.blocks if isinstance(each, Text))


def test_a_shared_place_is_marked_and_a_large_gap_is_a_factor() -> None:
    tied = [make_score(n, 1_000.0, person_name=f"p{n}") for n in (1, 2)]
    far = make_score(3, 2_500.0, person_name="p3")
    found = BoardStandings(make_board(), 1, "CPU", rank([*tied, far]), ())
    (table,) = (block for block in standings_pages(found)[0].blocks if isinstance(block, Table))
    assert [(row[0], row[2]) for row in table.rows] == [
        ("🥇 1= p1", ""),
        ("🥇 1= p2", ""),
        ("🥉 p3", "2.5x"),
    ]


def test_who_passed_too_noisily_has_one_line_among_those_who_are_not_ranked() -> None:
    failed = standings(0, 1, "ada").refused[0]
    noisy = replace(failed, verdict="passed", stage=None, message="passed, but too noisy")
    (page,) = standings_pages(replace(standings(0), refused=(noisy,), note=""))
    (draft,) = message_drafts(page)
    assert draft.content == (
        "**vectoradd on CPU**\n**not ranked**\n"
        r"**ada** · passed, but too noisy to be ranked · \#0"
    )


@pytest.mark.parametrize("name", ["a person with quite a long name " * 2, "*_`" * 20])
def test_pages_hold_everyone_and_fit_into_a_message(name: str) -> None:
    found = standings(32, 10, name)
    pages = standings_pages(found)
    tables = [block for page in pages for block in page.blocks if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [10, 10, 10, 2, 8, 2]
    assert pages[1].blocks[-1] == Text("page 2 of 6", Tone.QUIET)
    drafts = [message_drafts(page) for page in pages]
    assert all(len(each) == 1 and not each[0].files for each in drafts)
    assert page_names(found) == (
        "places 1 to 10",
        "places 11 to 20",
        "places 21 to 30",
        "places 31 to 32",
        "not ranked, 1",
        "not ranked, 2",
    )


def test_a_page_with_one_place_names_it() -> None:
    assert page_names(standings(11)) == ("places 1 to 10", "place 11")


def test_the_page_of_the_viewers_rank_is_found() -> None:
    found = standings(32)
    assert [page_of(found, PersonId(n)) for n in (1, 10, 11, 32, 33)] == [0, 0, 1, 3, None]


def test_an_empty_board_has_one_page() -> None:
    (page,) = standings_pages(BoardStandings(make_board(), 1, "CPU", (), ()))
    assert page.blocks == (Text("no ranked submissions yet", Tone.QUIET),)


@pytest.mark.parametrize(("gpus", "rows"), [(2, 10), (3, 5), (5, 5)])
def test_the_best_of_several_gpu_types_fit_into_a_message(gpus: int, rows: int) -> None:
    found = [replace(standings(32, name="n" * 200), gpu=f"GPU-{n}") for n in range(gpus)]
    report = standings_side_by_side(found)
    tables = [block for block in report.blocks if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [rows] * gpus
    headings = [block.text for block in report.blocks if isinstance(block, Text)]
    assert headings == [each.gpu for each in found]  # the title has the board
    assert len(message_drafts(report)) == 1
