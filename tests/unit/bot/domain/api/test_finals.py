"""Finals as the API answers them."""

from datetime import UTC, datetime

from bot.domain.api.finals import FinalBody, RatioBody
from bot.domain.finals import Final, FinalRow
from bot.domain.ids import BoardId, FinalId, SubmissionId, TaskVersionId
from bot.domain.scoring import PairRatio

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
BEGUN = Final(FinalId(1), BoardId(2), TaskVersionId(3), "H100", 10, NOW)


def test_a_final_has_no_rows_until_it_has_ended() -> None:
    body = FinalBody.of(BEGUN)

    assert (body.gpu, body.top, body.entries, body.rows, body.ended_at) == (
        "H100", 10, None, None, None,
    )  # fmt: skip


def test_each_row_has_the_ratio_to_the_entry_before() -> None:
    first = FinalRow(1, SubmissionId(7), "ada", 20_000.0, 100.0)
    second = FinalRow(2, SubmissionId(5), "bob", 20_200.0, 110.0, PairRatio(1.01, 0.004))
    entries = SubmissionId(7), SubmissionId(5)
    ended = Final(
        BEGUN.id, BEGUN.board, BEGUN.task_version, "H100", 10, NOW, entries, (first, second), NOW, 1
    )

    body = FinalBody.of(ended)

    assert (body.entries, body.compared) == (2, 1)
    assert body.rows is not None
    assert [(each.rank, each.person, each.submission, each.ratio) for each in body.rows] == [
        (1, "ada", 7, None),
        (2, "bob", 5, RatioBody(ratio=1.01, half_width=0.004)),
    ]
