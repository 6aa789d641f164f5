"""Tests of what the demo does and how it checks itself."""

from dataclasses import replace

from bot.cli.demo_script import DemoSubmission, choose, short_selection, wrong_standings
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import FailedRun
from bot.domain.tasks.bundle import Solution
from runners.contract.evaluation import CPU
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board, make_score, rank


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
        FailedRun(SubmissionId(9), PersonId(8), name, CPU, "crashed", None, "", NOON)
        for name in absent
    )
    return BoardStandings(make_board(), 1, CPU, rank(scores), refused)


def _entries() -> list[DemoSubmission]:
    return [
        DemoSubmission("Ada", "vectoradd", _solution("right")),
        DemoSubmission("Ken", "vectoradd", _solution("bad", Verdict.CRASHED)),
    ]


HERS, HIS = PersonId(1), PersonId(2)
PEOPLE = frozenset({HERS, HIS, PersonId(8)})


def test_right_standings_are_not_complained_about() -> None:
    assert wrong_standings(_entries(), PEOPLE, _leaderboard(("Ada",), ("Ken",))) == ()


def test_every_kind_of_wrong_standing_is_noticed() -> None:
    assert wrong_standings(_entries(), PEOPLE, _leaderboard((), ("Ken",))) == (
        "vectoradd: Ada must be ranked and is not",
    )
    assert wrong_standings(_entries(), PEOPLE, _leaderboard(("Ada", "Ken"), ("Ken",))) == (
        "vectoradd: Ken must not be ranked and is",
    )
    assert wrong_standings(_entries(), PEOPLE, _leaderboard(("Ada",), ())) == (
        "vectoradd: Ken must be listed as not ranked",
    )


def test_who_is_too_noisy_to_be_ranked_may_be_missing() -> None:
    noisy = [each for each in _entries() if each.person == "Ada"]
    assert wrong_standings(_entries(), PEOPLE, _leaderboard((), ("Ken",)), noisy) == ()
    elsewhere = [replace(each, board="sort") for each in noisy]
    assert wrong_standings(_entries(), PEOPLE, _leaderboard((), ("Ken",)), elsewhere) == (
        "vectoradd: Ada must be ranked and is not",
    )


def test_what_others_did_on_its_boards_is_nothing_of_the_demo_s() -> None:
    found = _leaderboard(("Ada", "Grace"), ("Ken",))
    assert wrong_standings(_entries(), PEOPLE - {HIS}, found) == ()


def test_the_story_has_every_way_to_fail_once_and_places_to_look_at() -> None:
    slow = (_solution("a"), _solution("b"), _solution("crash", Verdict.CRASHED))
    entries = choose([("sort", SHIPPED), ("matmul", slow), ("plain", (_solution("only"),))])
    told = short_selection(entries, {"sort": 10, "matmul": 60, "plain": 1})
    assert [(each.board, each.file_name) for each in told] == [
        ("sort", "right.py"), ("sort", "slow.py"), ("sort", "wrong1.py"), ("sort", "hangs.py"),
        ("matmul", "a.py"), ("matmul", "crash.py"),
    ]  # fmt: skip


def test_the_story_is_a_dozen_however_many_tasks_there_are() -> None:
    boards = [(f"b{number}", SHIPPED) for number in range(40)]
    assert len(short_selection(choose(boards), dict.fromkeys(dict(boards), 1))) <= 12


def test_right_kernels_alone_are_a_story_too() -> None:
    entries = choose([("sort", (_solution("a"), _solution("b")))])
    assert short_selection(entries, {"sort": 1}) == entries


def test_a_kernel_s_heading_names_the_demo_s_board() -> None:
    source = "#!PODIUM leaderboard sort\n#!PODIUM needs cuda\nimport torch  # leaderboard sort\n"
    entry = DemoSubmission("Ada", "demo-sort", Solution("x.py", source, Verdict.PASSED))
    assert entry.source == source.replace("board sort\n#!", "board demo-sort\n#!")
