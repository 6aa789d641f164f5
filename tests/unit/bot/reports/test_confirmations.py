from dataclasses import replace

import pytest

from bot.domain.confirmation import Confirmation, ConfirmationState
from bot.domain.finals import Final, FinalRow
from bot.domain.ids import (
    BoardId,
    ConfirmationId,
    FinalId,
    PersonId,
    SubmissionId,
    TaskVersionId,
)
from bot.domain.scoring import PairRatio, ScoreValue
from bot.reports.blocks import Table, Tone
from bot.reports.confirmations import (
    confirmation_line,
    final_line,
    final_table,
    finals_report,
    pending_table,
    short_finals_report,
)
from tests.doubles.factories import NOON

WAITING = Confirmation(
    ConfirmationId(1), SubmissionId(9), PersonId(2), "bob", TaskVersionId(1), "H100", 1,
    ConfirmationState.PENDING, NOON, held=ScoreValue(28_000, 50, 40),
)  # fmt: skip
MET = replace(WAITING, rival=SubmissionId(7), rival_name="ada", run=SubmissionId(-3))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (WAITING, "confirmation pending: it would take 1st place; it is compared"),
        (
            MET,
            "1st place from #7 by ada; both are timed in turns on the same machine",
        ),
        (replace(MET, alone=SubmissionId(7)), "#7 by ada failed in the comparison and is compared"),
        (
            replace(MET, state=ConfirmationState.CONFIRMED, ratio=PairRatio(0.988, 0.001)),
            "confirmed: 1.21 % ± 0.10 faster than #7 by ada",
        ),
        (
            replace(MET, state=ConfirmationState.TIED, ratio=PairRatio(0.999, 0.002)),
            "tied with #7 by ada: the ratio of their times is 0.9990 ± 0.0020, so both share",
        ),
        (
            replace(MET, state=ConfirmationState.SLOWER, ratio=PairRatio(1.01, 0.002)),
            "not confirmed: 1.00 % ± 0.20 slower than #7 by ada, who keeps the place",
        ),
        (replace(MET, state=ConfirmationState.REFUSED, reason="it crashed"), "not ranked: it"),
        (replace(MET, state=ConfirmationState.UNDECIDED, reason="no"), "which keeps its place"),
        (replace(MET, state=ConfirmationState.DROPPED, reason="late"), "no confirmation: late"),
    ],
)
def test_a_comparison_says_how_it_ended(found: Confirmation, words: str) -> None:
    text = confirmation_line(found)
    assert words in text.text
    assert text.text.startswith("H100: ")
    assert (text.tone is Tone.BAD) is (found.state is ConfirmationState.REFUSED)


def test_what_waits_is_listed_with_the_place_that_it_would_take() -> None:
    (row,) = pending_table([WAITING]).rows
    assert row == ("bob", "28.00 µs ± 0.09", "would take 1st", "#9")


def test_a_final_says_how_far_it_is_and_then_its_table() -> None:
    waits = Final(FinalId(1), BoardId(1), TaskVersionId(1), "H100", 10, NOON)
    assert "waits for runs" in final_line(waits)
    runs = replace(waits, entries=(SubmissionId(7), SubmissionId(9), SubmissionId(8)), compared=1)
    assert final_line(runs) == "final of the first 3 on H100: 1 of at least 2 comparisons made"
    timed = final_line(replace(runs, comparison_s=180.0))
    assert timed.endswith("1 of at least 2 comparisons made, about 3 min left")
    assert final_table(runs) is None
    rows = (
        FinalRow(1, SubmissionId(9), "bob", 100, 1, resolution_ns=2),
        FinalRow(2, SubmissionId(7), "ada", 101, 1, PairRatio(1.01, 0.002)),
        FinalRow(2, SubmissionId(8), "eve", 101, 1, PairRatio(1.0, 0.002)),
        FinalRow(4, SubmissionId(6), "dan", 110, 1),
    )
    ended = replace(runs, rows=rows, ended_at=NOON)
    report = finals_report("softmax", (ended,))
    (table,) = [each for each in report.blocks if isinstance(each, Table)]
    assert [row[0] for row in table.rows] == ["1", "2=", "2=", "4"]
    assert [row[2] for row in table.rows][:2] == ["100.0 ns ± 3.0", "101.0 ns ± 1.0"]
    shown = [row[3] for row in table.rows]
    assert shown == ["", "1.00 % ± 0.20 slower", "tied: 0.00 % ± 0.20 slower", "not comparable"]
    assert finals_report("softmax", ()).blocks

    short = short_finals_report("softmax", (ended,))
    (table,) = [each for each in short.blocks if isinstance(each, Table)]
    assert table.rows == (
        ("🥇 bob", "100.0 ns ± 3.0"),
        ("🥈 2= ada", "+1.00 % ± 0.20"),
        ("🥈 2= eve", "tied"),
        ("4. dan", "not comparable"),
    )
    assert "ended on 2026-11-01 12:00 UTC" in str(short.blocks[-1])
    assert "1 of at least 2" in str(short_finals_report("softmax", (runs,)).blocks)
