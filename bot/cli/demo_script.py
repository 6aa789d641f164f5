"""The script of `podium demo`: who submits what to which board, and the expected results."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.domain.ids import PersonId
from bot.domain.leaderboard import BoardStandings
from bot.domain.scoring import is_ahead
from bot.domain.status import SubmissionStatus
from bot.domain.tasks.bundle import Solution
from bot.reports.machine import noisy_lines
from runners.contract.verdict import Verdict

PEOPLE = (
    "Ada", "Barbara", "Donald", "Edsger", "Frances", "Grace", "John", "Katherine", "Ken", "Radia",
)  # fmt: skip
WRONG_PER_BOARD = 3
DOZEN = 12
_HEADER_BOARD = re.compile(r"^(\s*(?:#|//)!(?:PODIUM|POPCORN)\s+leaderboard\s+)\S+", re.MULTILINE)
PREFIX = "demo-"
"""The prefix of the demo's board names; a board with the plain name of the task stays possible."""


@dataclass(frozen=True, slots=True)
class DemoSubmission:
    """One person's kernel for one board, and its expected verdict."""

    person: str
    board: str
    solution: Solution

    @property
    def file_name(self) -> str:
        """Return the file's name without its folders."""
        return self.solution.name.rsplit("/", maxsplit=1)[-1]

    @property
    def source(self) -> str:
        """Return the shipped file, with the demo's board in its header instead of the task's."""
        return _HEADER_BOARD.sub(rf"\g<1>{self.board}", self.solution.source, count=1)


def choose(boards: Sequence[tuple[str, Sequence[Solution]]]) -> tuple[DemoSubmission, ...]:
    """Return every correct solution of each board, and some wrong ones of different kinds."""
    used: Counter[Verdict] = Counter()
    entries: list[DemoSubmission] = []
    for index, (board, solutions) in enumerate(boards):
        right = [each for each in solutions if each.expect is Verdict.PASSED]
        wrong = _rarest([each for each in solutions if each.expect is not Verdict.PASSED], used)
        people = _rotated_people(2 * index)
        entries += [
            DemoSubmission(person, board, solution)
            for person, solution in zip(people, (*right, *wrong), strict=False)
        ]
    return tuple(entries)


def short_selection(
    entries: Sequence[DemoSubmission], limits: Mapping[str, int]
) -> tuple[DemoSubmission, ...]:
    """Return a dozen of the entries: one for each kind of failure, and few slow correct ones.

    The correct ones are all those of one board, to fill its standings, and one of each other board.
    `limits` has the seconds that each board allows a kernel; boards with short limits come first.
    """
    failing: dict[Verdict, DemoSubmission] = {}
    right: dict[str, list[DemoSubmission]] = {}
    for entry in entries:
        if entry.solution.expect is Verdict.PASSED:
            right.setdefault(entry.board, []).append(entry)
        else:
            failing.setdefault(entry.solution.expect, entry)
    boards = {entry.board for entry in failing.values()} & right.keys() or right.keys()
    quick = sorted(boards, key=lambda board: (limits[board], board))
    most = max(quick, key=lambda board: len(right[board]), default="")
    others = [right[board][0] for board in quick if board != most]
    chosen = [*failing.values(), *right.get(most, ()), *others][:DOZEN]
    return tuple(entry for entry in entries if entry in chosen)


def _rarest(wrong: list[Solution], used: Counter[Verdict]) -> list[Solution]:
    """Return a few wrong solutions, of the verdicts used least so far; count them in `used`."""
    chosen: list[Solution] = []
    while wrong and len(chosen) < WRONG_PER_BOARD:
        rarest = min(wrong, key=lambda each: used[each.expect])
        used[rarest.expect] += 1
        wrong.remove(rarest)
        chosen.append(rarest)
    return chosen


def _rotated_people(by: int) -> Iterator[str]:
    """Yield all people, starting with the one at index `by`."""
    return (PEOPLE[(by + step) % len(PEOPLE)] for step in range(len(PEOPLE)))


def unexpected_results(entry: DemoSubmission, ended: SubmissionStatus) -> tuple[str, ...]:
    """Return the unexpected results of one entry, in words."""
    found = []
    for job in ended.jobs:
        got = job.job.state.value if job.evaluation is None else job.evaluation.verdict.value
        if got != entry.solution.expect.value:
            reason = job.job.error if job.evaluation is None else job.evaluation.message
            found.append(
                f"{entry.board}: {entry.person}'s {entry.file_name} on {job.job.gpu} must be "
                f"{entry.solution.expect}, is {got} ({reason})"
            )
    return tuple(found)


def noisy_results(entry: DemoSubmission, ended: SubmissionStatus) -> tuple[str, ...]:
    """Return the results of one entry that are right but too noisy to be ranked, in words."""
    return tuple(
        f"{entry.board}: {entry.person}'s {entry.file_name}: {line}"
        for job in ended.jobs
        if job.evaluation is not None
        for line in noisy_lines(job.evaluation)
    )


def wrong_standings(
    entries: Sequence[DemoSubmission],
    people: Collection[PersonId],
    leaderboard: BoardStandings,
    noisy: Collection[DemoSubmission] = (),
) -> tuple[str, ...]:
    """Return how a leaderboard differs from the expected one, in words.

    Who submitted one of `noisy`, which have `noisy_results`, may be missing.
    """
    board = leaderboard.board.name
    right, wrong = _expected(entries, board)
    unsure = {entry.person for entry in noisy if entry.board == board}
    ranked = {
        entry.score.person_name for entry in leaderboard.entries if entry.score.person in people
    }
    absent = {each.person_name for each in leaderboard.refused if each.person in people}
    faults = (
        (right - ranked - unsure, "must be ranked and is not"),
        (ranked - right, "must not be ranked and is"),
        (wrong - absent, "must be listed as not ranked"),
    )
    found = [f"{board}: {name} {fault}" for names, fault in faults for name in sorted(names)]
    values = [entry.score.value for entry in leaderboard.entries]
    if any(is_ahead(later, earlier) for earlier, later in pairwise(values)):
        found.append(f"{board}: the ranks are not in the order of the times")
    return tuple(found)


def _expected(entries: Sequence[DemoSubmission], board: str) -> tuple[set[str], set[str]]:
    """Return who must be ranked on a board, and who must not."""
    own = [entry for entry in entries if entry.board == board]
    right = {entry.person for entry in own if entry.solution.expect is Verdict.PASSED}
    return right, {entry.person for entry in own} - right
