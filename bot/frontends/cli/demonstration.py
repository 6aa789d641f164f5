"""What `podium demo` does: who enters which board with what, and whether all went as it must."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.domain.solutions import Solution
from bot.services.standings import BoardStandings
from bot.services.status import SubmissionStatus
from runners.contract.evaluation import CPU
from runners.contract.runner import Capabilities
from runners.contract.verdict import Verdict

PEOPLE = (
    "Ada", "Barbara", "Donald", "Edsger", "Frances", "Grace", "John", "Katherine", "Ken", "Radia",
)  # fmt: skip
WRONG_PER_BOARD = 3
_NEEDS_GPU = frozenset({"cuda", "triton"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One person's kernel for one board, and the verdict that it must get."""

    person: str
    board: str
    solution: Solution

    @property
    def file_name(self) -> str:
        """The file's name without its folders."""
        return self.solution.name.rsplit("/", maxsplit=1)[-1]


def can_run(solution: Solution, gpu: str, offer: Capabilities) -> bool:
    """Whether a runner has what a solution needs."""
    return all(
        gpu != CPU if need in _NEEDS_GPU else need in offer.libraries for need in solution.needs
    )


def choose(boards: Sequence[tuple[str, Sequence[Solution]]]) -> tuple[Entry, ...]:
    """Every right solution of each board, and some wrong ones, of as many kinds as there are."""
    used: Counter[Verdict] = Counter()
    entries: list[Entry] = []
    for index, (board, solutions) in enumerate(boards):
        right = [each for each in solutions if each.expect is Verdict.PASSED]
        wrong: list[Solution] = []
        rest = [each for each in solutions if each.expect is not Verdict.PASSED]
        while rest and len(wrong) < WRONG_PER_BOARD:
            rarest = min(rest, key=lambda each: used[each.expect])
            used[rarest.expect] += 1
            rest.remove(rarest)
            wrong.append(rarest)
        people = _turned(2 * index)
        entries += [
            Entry(person, board, solution)
            for person, solution in zip(people, (*right, *wrong), strict=False)
        ]
    return tuple(entries)


def _turned(by: int) -> Iterator[str]:
    """The people, each board beginning with others, so that nobody is always first."""
    return (PEOPLE[(by + step) % len(PEOPLE)] for step in range(len(PEOPLE)))


def surprises(entry: Entry, ended: SubmissionStatus) -> tuple[str, ...]:
    """What went otherwise than it must for one entry, in words."""
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


def misplaced(entries: Sequence[Entry], leaderboard: BoardStandings) -> tuple[str, ...]:
    """Who is ranked and must not be, or is not and must be, in words."""
    board = leaderboard.board.name
    mine = [entry for entry in entries if entry.board == board]
    right = {entry.person for entry in mine if entry.solution.expect is Verdict.PASSED}
    ranked = {entry.score.person_name for entry in leaderboard.entries}
    absent = {refusal.person_name for refusal in leaderboard.refused}
    found = [f"{board}: {name} must be ranked and is not" for name in sorted(right - ranked)]
    found += [f"{board}: {name} must not be ranked and is" for name in sorted(ranked - right)]
    wrong = {entry.person for entry in mine} - right
    found += [f"{board}: {name} must be listed as absent" for name in sorted(wrong - absent)]
    times = [entry.score.value.time_ns for entry in leaderboard.entries]
    if times != sorted(times):
        found.append(f"{board}: the ranks are not in the order of the times")
    return tuple(found)
