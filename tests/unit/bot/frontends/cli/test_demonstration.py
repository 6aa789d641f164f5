"""Tests of what the demo does and how it checks itself."""

from bot.domain.ids import PersonId, SubmissionId
from bot.domain.ranking import rank
from bot.domain.solutions import Solution
from bot.frontends.cli.demonstration import Entry, choose, misplaced
from bot.ports import Refusal
from bot.services.standings import BoardStandings
from runners.contract.evaluation import CPU
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board, make_score


def _solution(name: str, expect: Verdict = Verdict.PASSED, *needs: str) -> Solution:
    return Solution(f"solutions/x/{name}.py", "source", expect, needs)


SHIPPED = (
    _solution("right"),
    _solution("slow"),
    _solution("wrong1", Verdict.WRONG_ANSWER),
    _solution("wrong2", Verdict.WRONG_ANSWER),
    _solution("wrong3", Verdict.WRONG_ANSWER),
    _solution("hangs", Verdict.TIMED_OUT),
)


def test_every_right_solution_enters_with_wrong_ones_of_many_kinds() -> None:
    entries = choose([("sort", SHIPPED)])
    names = [entry.file_name for entry in entries]
    assert names == ["right.py", "slow.py", "wrong1.py", "hangs.py", "wrong2.py"]


def test_on_one_board_every_entry_is_another_person() -> None:
    entries = choose([("sort", SHIPPED), ("matmul", SHIPPED)])
    for board in ("sort", "matmul"):
        people = [entry.person for entry in entries if entry.board == board]
        assert len(set(people)) == len(people) == 5
    assert entries[0].person != entries[5].person


def _leaderboard(ranked: tuple[str, ...], absent: tuple[str, ...]) -> BoardStandings:
    scores = [
        make_score(number, 1_000.0 * number, person_name=name)
        for number, name in enumerate(ranked, start=1)
    ]
    refused = tuple(
        Refusal(SubmissionId(9), PersonId(8), name, CPU, "crashed", None, "", NOON)
        for name in absent
    )
    return BoardStandings(make_board(), 1, CPU, rank(scores), refused)


def _entries() -> list[Entry]:
    return [
        Entry("Ada", "vectoradd", _solution("right")),
        Entry("Ken", "vectoradd", _solution("bad", Verdict.CRASHED)),
    ]


def test_right_standings_are_not_complained_about() -> None:
    assert misplaced(_entries(), _leaderboard(("Ada",), ("Ken",))) == ()


def test_every_kind_of_wrong_standing_is_noticed() -> None:
    assert misplaced(_entries(), _leaderboard((), ("Ken",))) == (
        "vectoradd: Ada must be ranked and is not",
    )
    assert misplaced(_entries(), _leaderboard(("Ada", "Ken"), ("Ken",))) == (
        "vectoradd: Ken must not be ranked and is",
    )
    assert misplaced(_entries(), _leaderboard(("Ada",), ())) == (
        "vectoradd: Ken must be listed as absent",
    )
