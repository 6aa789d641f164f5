from datetime import timedelta

import pytest

from bot.domain.ids import PersonId, SubmissionId
from bot.domain.notifications import (
    NotificationKind,
    StandingsChange,
    closes_soon,
    deadline_notification,
    loss_notification,
    record_notification,
    standings_change,
)
from bot.domain.scoring import Score
from tests.doubles.factories import NOON, make_board, make_score


def changed(*scores: Score) -> StandingsChange:
    """What the last of these scores has changed."""
    change = standings_change(scores[-1].submission, scores)
    assert change is not None
    return change


def test_a_record_is_first_or_faster_beyond_doubt() -> None:
    assert changed(make_score(1, 100)).is_record
    assert changed(make_score(1, 100), make_score(2, 90)).is_record
    assert changed(make_score(1, 100), make_score(1, 90)).is_record
    assert not changed(make_score(1, 100), make_score(2, 99.8)).is_record
    assert not changed(make_score(1, 100), make_score(2, 90, 20)).is_record
    assert changed(make_score(1, 100, 20), make_score(2, 90)).is_record
    assert not changed(make_score(1, 100), make_score(2, 200)).is_record


def test_who_is_pushed_down_has_lost_a_rank() -> None:
    change = changed(make_score(1, 100), make_score(2, 200), make_score(3, 300), make_score(4, 150))
    assert [
        (loss.standing.score.person, loss.standing.rank, loss.rank) for loss in change.losses
    ] == [
        (PersonId(2), 2, 3),
        (PersonId(3), 3, 4),
    ]


def test_who_makes_way_to_oneself_or_shares_a_rank_has_lost_nothing() -> None:
    assert changed(make_score(1, 100), make_score(1, 50)).losses == ()
    assert changed(make_score(1, 100), make_score(2, 100.1)).losses == ()


def test_below_the_tenth_nobody_is_told() -> None:
    before = [make_score(number, 100 * number) for number in range(1, 13)]
    change = changed(*before, make_score(20, 50))
    assert len(change.losses) == 10


def test_a_score_that_is_not_ranked_changes_nothing() -> None:
    assert standings_change(SubmissionId(99_999), [make_score(1, 100)]) is None


def test_the_words_name_board_people_and_times() -> None:
    change = changed(make_score(1, 100, 1), make_score(2, 50, 1))
    board = make_board()
    news = record_notification(change, board, "discord:9")
    assert (news.kind, news.addressee, news.board) == (
        NotificationKind.RECORD,
        "discord:9",
        board.id,
    )
    assert news.text == (
        "Record on vectoradd (CPU): person 2 takes 50.0 ns ± 1.0, 2.0x (1.9 to 2.1) as fast as "
        "person 1 (100.0 ns ± 1.0)."
    )
    (loss,) = change.losses
    lost = loss_notification(loss, change, board, "discord:1")
    assert lost.text == (
        "You went from rank 1 to 2 on vectoradd (CPU): person 2 takes 50.0 ns ± 1.0, "
        "you take 100.0 ns ± 1.0."
    )
    assert len({news.key, lost.key, record_notification(change, board, "discord:8").key}) == 3
    first = record_notification(changed(make_score(1, 100)), board, "discord:9")
    assert first.text.endswith("person 1 takes 100.0 ns ± 0.0.")


@pytest.mark.parametrize(
    ("hours", "soon"), [(-1, False), (0, True), (24, True), (24.1, False), (None, False)]
)
def test_a_board_is_reminded_of_within_a_day(*, hours: float | None, soon: bool) -> None:
    deadline = None if hours is None else NOON + timedelta(hours=hours)
    assert closes_soon(make_board(deadline=deadline), NOON) is soon


def test_a_moved_deadline_is_news_again() -> None:
    board, other = make_board(), NOON + timedelta(hours=1)
    first = deadline_notification(board, NOON, "discord:9")
    assert first.text == "Leaderboard vectoradd closes at 2026-11-01 12:00 UTC."
    assert first.key != deadline_notification(board, other, "discord:9").key
