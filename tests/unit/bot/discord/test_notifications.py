"""The news of a board fits one message, pings nobody, and tells its time in the reader's zone."""

from datetime import UTC, datetime

import pytest

from bot.discord.escaping import MESSAGE_LIMIT
from bot.discord.notifications import announcement, closing_line, gpu_words
from bot.domain.board import Board
from bot.domain.ids import BoardId, PersonId, TaskVersionId
from tests.doubles.factories import make_task

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def board(*gpus: str) -> Board:
    return Board(BoardId(1), "a" * 64, gpus, NOON, PersonId(1), TaskVersionId(1), NOON)


def test_a_deadline_is_a_time_of_discord() -> None:
    assert closing_line(NOON) == "It closes <t:1777636800:F> (<t:1777636800:R>)."
    assert closing_line(None) == "It has no deadline."


@pytest.mark.parametrize("word", ["*", "_", "<@1>", "x\n", "@everyone ", "`" * 3])
def test_any_description_fits_and_is_harmless(word: str) -> None:
    gpus = [f"G_{'*' * 28}{number}" for number in range(60)]
    text = announcement(board(*gpus), make_task(description=word * 3000))
    assert len(text) <= MESSAGE_LIMIT
    assert "<@1>" not in text.replace("\\<", "")
    assert "@everyone" not in text
    assert text.endswith("(`/leaderboard task` has all of it)")


def test_a_long_description_ends_with_a_whole_line() -> None:
    lines = [f"line {number:03} of the task" for number in range(100)]
    text = announcement(board("CPU"), make_task(description="\n".join(lines)))
    *_, last, more = text.splitlines()
    assert last in lines
    assert more == "(`/leaderboard task` has all of it)"


def test_a_short_description_is_told_whole() -> None:
    text = announcement(board("CPU", "H100"), make_task(description="Add.\nFast."))
    assert text.endswith(
        "on CPU, H100\nIt closes <t:1777636800:F> (<t:1777636800:R>).\nAdd.\nFast."
    )


def test_many_gpu_types_are_counted() -> None:
    kinds = [f"G{number}" for number in range(10)]
    assert gpu_words(kinds[:8]) == "G0, G1, G2, G3, G4, G5, G6, G7"
    assert gpu_words(kinds) == "G0, G1, G2, G3, G4, G5, G6 and 3 more"
