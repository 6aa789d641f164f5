"""Tests of the report of a leaderboard."""

from dataclasses import replace

from bot.domain.board import Board
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import FailedRun
from bot.domain.scoring import PairRatio, ScoreValue, Standing
from bot.reports.blocks import Table, Text, Tone
from bot.reports.short import standings_pages
from bot.reports.standings import (
    gaps,
    page_notes,
    standings_csv,
    standings_notes,
    standings_report,
)
from runners.contract.evaluation import CPU
from tests.doubles.factories import NOON, make_board, make_score, rank


def _standings(
    *,
    board: Board | None = None,
    version: int = 1,
    entries: tuple[Standing, ...] = (),
    refused: tuple[FailedRun, ...] = (),
    note: str = "",
    speed_of_light_ns: float | None = None,
    reference: ScoreValue | None = None,
    reference_failure: str = "",
    in_process: bool = False,
) -> BoardStandings:
    return BoardStandings(
        board=board or make_board(),
        version=version,
        gpu="CPU",
        entries=entries,
        refused=refused,
        note=note,
        speed_of_light_ns=speed_of_light_ns,
        reference=reference,
        reference_failure=reference_failure,
        in_process=in_process,
    )


def _refusal(message: str) -> FailedRun:
    return FailedRun(
        SubmissionId(9), PersonId(8), "mallory", "CPU", "wrong_answer", "test", message, NOON
    )


def _tables(leaderboard: BoardStandings) -> dict[str, Table]:
    report = standings_report(leaderboard)
    return {block.title: block for block in report.blocks if isinstance(block, Table)}


def test_people_are_ranked_by_time_with_interval_and_distance() -> None:
    entries = rank([make_score(1, 20_000.0, 40.0), make_score(2, 10_000.0, 10.0)])
    rows = _tables(_standings(entries=entries))["standings"].rows
    assert [row[:5] for row in rows] == [
        ("1", "person 2", "10.00 µs ± 0.01", "1.00x", "1"),
        ("2", "person 1", "20.00 µs ± 0.04", "2.00x", "1"),
    ]


def test_the_claim_stands_beside_the_judges_own_time_and_notes_say_what_they_mean() -> None:
    honest = make_score(1, 1, value=ScoreValue(5_800.0, 20.0, 900.0, 5_750.0))
    equal = make_score(2, 1, value=ScoreValue(6_100.0, 20.0, 900.0, 6_200.0))
    liar = make_score(3, 1, value=ScoreValue(5_870.0, 20.0, 4_120.0, 2_800.0))
    report = standings_report(_standings(entries=rank([liar, equal, honest])))
    *notes, table = report.blocks
    assert isinstance(table, Table)
    assert [each.name for each in table.columns[:5]] == [
        "rank", "who", "time", "claimed", "vs first",
    ]  # fmt: skip
    assert [row[:5] for row in table.rows] == [
        ("1=", "person 1", "5.80 µs ± 0.92", "5.75 µs", "1.00x"),
        ("1=", "person 2", "6.10 µs ± 0.92", "6.20 µs", "1.04x"),
        ("3", "person 3", "5.9 µs ± 4.2", "2.80 µs", "1.49x"),
    ]
    assert [note.text for note in notes if isinstance(note, Text)] == [
        "time: by the judge's clock; it counts at the upper end of its ±",
        "claimed: by the submission's own clock; it decides nothing",
        "= shared rank: times that the judge cannot tell apart",
    ]


def test_a_time_that_no_clock_of_the_judge_confirms_is_marked() -> None:
    entries = rank([make_score(1, 1, value=ScoreValue(5_800.0, 20.0, None))])
    note, table = standings_report(_standings(entries=entries)).blocks
    assert isinstance(table, Table)
    assert table.rows[0][2] == "5.800 µs ± 0.020*"
    assert note == Text(
        "* not confirmed by the judge's clock; counts as it was reported", Tone.QUIET
    )


def test_a_speed_up_over_the_reference_has_its_interval() -> None:
    entries = rank([make_score(1, 1, value=ScoreValue(10_000.0, 100.0, 900.0))])
    reference = ScoreValue(32_000.0, 100.0, 1_500.0)
    table = _tables(_standings(entries=entries, reference=reference))["standings"]
    assert table.rows[0][3] == "3.2x (2.8 to 3.7)"


def test_on_the_cpu_a_board_says_that_times_are_ratios() -> None:
    usual = "the ratio to the reference times its usual time on this board"
    words = f"time: {usual}; it counts at the upper end of its ±"
    in_turn = rank([make_score(1, 1_000.0, 5.0, vs_reference=PairRatio(0.96, 0.01))])
    apart = rank([make_score(1, 1_000.0, 5.0)])
    for gpu, entries, told in ((CPU, in_turn, True), (CPU, apart, False), ("H100", in_turn, False)):
        leaderboard = replace(_standings(entries=entries), gpu=gpu)
        assert (words in [note.text for note in standings_notes(leaderboard)]) is told


def test_a_reference_that_was_timed_in_turn_decides_the_speedup() -> None:
    in_turn = make_score(1, 1_000.0, 5.0, vs_reference=PairRatio(0.96, 0.01))
    apart, reference = make_score(2, 2_000.0, 5.0), ScoreValue(990.0, 5.0)
    alone = _standings(entries=rank([in_turn]))
    assert _tables(alone)["standings"].columns[3].name == "vs reference"
    both = _standings(entries=rank([in_turn, apart]), reference=reference)
    for leaderboard, cells in (
        (alone, ["1.04x (1.03 to 1.05)"]),
        (both, ["1.04x (1.03 to 1.05)", "~0.49x (0.49 to 0.50)"]),
    ):
        assert [row[3] for row in _tables(leaderboard)["standings"].rows] == cells
        notes = [note.text for note in standings_notes(leaderboard)]
        assert "vs reference: timed in turn with it (~: by its own run)" in notes
    line = "1.04x (1.03 to 1.05) vs reference, timed in turn with it"
    assert gaps(both, both.entries[0]) == (line,)
    assert Text(f"1st: {line}", Tone.QUIET) in standings_pages(both)[0].blocks
    csv = standings_csv([both]).splitlines()
    assert [each.rpartition(",")[2] for each in csv] == ["vs_reference_in_turn", "True", "False"]


def test_where_the_speed_of_light_is_known_each_time_is_compared_with_it() -> None:
    entries = rank([make_score(1, 20_000.0), make_score(2, 10_000.0)])
    leaderboard = _standings(entries=entries, speed_of_light_ns=9_000.0)
    table = _tables(leaderboard)["standings"]
    assert table.columns[4].name == "speed of light"
    assert [row[4] for row in table.rows] == ["90%", "45%"]
    (words,) = (block for block in standings_report(leaderboard).blocks if isinstance(block, Text))
    assert words.text.startswith("speed of light 9.00 µs")


def test_where_the_reference_is_timed_each_time_is_compared_with_it() -> None:
    entries = rank([make_score(1, 20_000.0), make_score(2, 10_000.0)])
    leaderboard = _standings(entries=entries, reference=ScoreValue(32_000.0, 10.0))
    table = _tables(leaderboard)["standings"]
    assert table.columns[3].name == "vs reference"
    assert [row[3] for row in table.rows] == ["3.2x", "1.60x"]
    words = standings_report(leaderboard).blocks[0]
    assert words == Text("reference: 32.00 µs ± 0.01", Tone.QUIET)


def test_who_is_slower_than_the_reference_sees_by_how_much() -> None:
    entries = rank([make_score(1, 20_000.0)])
    leaderboard = _standings(entries=entries, reference=ScoreValue(900, 1))
    assert _tables(leaderboard)["standings"].rows[0][3] == "0.045x"


def test_why_there_is_no_time_of_the_reference_is_said_in_one_line() -> None:
    report = standings_report(_standings(reference_failure="crashed: exit 1\nTraceback"))
    assert report.blocks[0] == Text(
        "reference: no time (crashed: exit 1); only you, the creator, can see this", Tone.QUIET
    )


def test_where_unlike_machines_serve_one_card_each_time_says_whose_it_is() -> None:
    scores = [make_score(n, 10_000.0 * n, pool=pool) for n, pool in enumerate(("box", ""), 1)]
    table = _tables(_standings(entries=rank(scores)))["standings"]
    place = [column.name for column in table.columns].index("timed by")
    assert [row[place] for row in table.rows] == ["box", "unknown"]
    alike = rank([make_score(n, 10_000.0 * n, pool="box") for n in (1, 2)])
    table = _tables(_standings(entries=alike))["standings"]
    assert "timed by" not in [column.name for column in table.columns]


def test_a_shared_rank_is_marked() -> None:
    entries = rank([make_score(1, 10_000.0), make_score(2, 10_001.0), make_score(3, 30_000.0)])
    rows = _tables(_standings(entries=entries))["standings"].rows
    assert [row[0] for row in rows] == ["1=", "1=", "3"]


def test_a_board_whose_times_nobody_confirmed_says_so() -> None:
    head = [b.text for b in standings_report(_standings(in_process=True)).blocks[:1]
            if isinstance(b, Text)]  # fmt: skip
    assert head[0].startswith("in-process timing")
    assert next(page_notes(_standings(in_process=True))) == Text(head[0], Tone.QUIET)


def test_absent_people_are_listed_with_verdict_and_one_line_of_reason() -> None:
    leaderboard = _standings(refused=(_refusal("1 of 16 differ\nsecond line"),))
    assert _tables(leaderboard)["not ranked"].rows == (
        ("mallory", "wrong answer", "1 of 16 differ", "#9"),
    )


def test_who_passed_too_noisily_is_listed_as_not_ranked_without_a_second_reason() -> None:
    noisy = replace(_refusal("passed, but too noisy to be ranked"), verdict="passed")
    assert _tables(_standings(refused=(noisy,)))["not ranked"].rows == (
        ("mallory", "passed, but too noisy to be ranked", "", "#9"),
    )


def test_a_long_reason_is_shortened_visibly() -> None:
    reason = _tables(_standings(refused=(_refusal("x" * 300),)))["not ranked"].rows[0][2]
    assert len(reason) == 100
    assert reason.endswith("…")


def test_an_empty_board_says_so() -> None:
    assert standings_report(_standings()).blocks == (Text("no ranked submissions yet", Tone.QUIET),)


def test_the_deadline_and_a_later_task_version_are_named() -> None:
    board = make_board(deadline=NOON)
    report = standings_report(_standings(board=board, version=3, note="faster cases"))
    assert report.title == "vectoradd on CPU (task version 3)"
    assert report.blocks[:2] == (
        Text("deadline: 2026-11-01 12:00 UTC", Tone.QUIET),
        Text("task version 3: faster cases", Tone.QUIET),
    )


def test_the_pool_that_alone_times_ranked_runs_is_named() -> None:
    board = replace(make_board(), pins=(("CPU", "box"),))
    note = Text("ranked runs on CPU are timed only by pool box", Tone.QUIET)
    assert note in standings_report(_standings(board=board)).blocks
    assert note not in standings_report(replace(_standings(board=board), gpu="H100")).blocks


def test_ranks_that_the_times_do_not_explain_say_that_a_comparison_decided() -> None:
    words = "where times overlap: the runs were compared, and the ratio decides their ranks"
    first, second = make_score(1, 100.0, 20.0), make_score(2, 110.0, 20.0)
    compared = replace(second, met=((first.submission, PairRatio(1.1, 0.01)),))
    for each, shown in ((second, False), (compared, True)):
        notes = standings_notes(_standings(entries=rank([first, each])))
        assert (words in [note.text for note in notes]) is shown


def test_the_gaps_to_the_next_rank_and_to_the_reference_are_shown() -> None:
    entries = rank([make_score(1, 20_000.0, 40.0), make_score(2, 10_000.0, 10.0)])
    leaderboard = _standings(entries=entries, reference=ScoreValue(30_000.0, 10.0))
    first, second = (gaps(leaderboard, each) for each in entries)
    assert len(first) == 1
    assert first[0].endswith(" vs reference")
    assert second[0].startswith("2.0x as long as 1st, person 2: 10.0 µs more")
