"""Leaderboards as use cases return them: standings, placements, seasons, scaling."""

from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.board import Board
from bot.domain.confirmation import Confirmation
from bot.domain.finals import Final
from bot.domain.ids import PersonId
from bot.domain.records import FailedRun, HistoryEntry
from bot.domain.reference_times import Reference
from bot.domain.scoring import PairRatio, Score, ScoreValue, Standing, records


@dataclass(frozen=True, slots=True)
class BoardOverview:
    """A board, the number of people who submitted to it, and its best scores."""

    board: Board
    participants: int
    best: tuple[Score, ...]
    """One per GPU type that has a score of the current task version, in the board's order."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """One task version on one GPU type; `revision` grows whenever another field changes.

    `refused` has the latest ranked run that failed or was too noisy, of each person without a score
    here, with messages that everyone may read, unless a later run is in `pending`: those wait for
    their confirmation.
    """

    revision: int
    entries: tuple[Standing, ...]
    refused: tuple[FailedRun, ...]
    reference: Reference | None
    pending: tuple[Confirmation, ...] = ()


@dataclass(frozen=True, slots=True)
class BoardStandings:
    """A leaderboard as a viewer sees it: one task version on one GPU type.

    `refused` is as in `Leaderboard`. `note` is the author's note on the version.
    `speed_of_light_ns` is the least time that the card allows, and `reference` the time of the
    task's own reference; None where unknown. `reference_failure` says to the board's creator why
    the reference has no time. If `in_process`, the task's own evaluation timed the submissions,
    and nothing confirms the times.
    """

    board: Board
    version: int
    gpu: str
    entries: tuple[Standing, ...]
    refused: tuple[FailedRun, ...]
    note: str = ""
    speed_of_light_ns: float | None = None
    reference: ScoreValue | None = None
    reference_failure: str = ""
    in_process: bool = False
    pending: tuple[Confirmation, ...] = ()
    """The runs whose scores are held back until they are confirmed, oldest first."""
    final: Final | None = None
    """The newest final of this GPU type, of the shown task version."""
    quotes: bool = True
    """Whether messages of failed runs may quote exceptions."""
    revision: int = field(default=0, compare=False)
    """Grows whenever entries, refused, the runs in pending or the reference's time change."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A person's rank on one GPU type, and whether one submission of theirs earned it."""

    gpu: str
    value: ScoreValue
    rank: int
    shared: bool
    entries: int
    is_best: bool
    """Whether this is the person's best submission."""
    improved: bool
    """Whether the person had a worse score before."""
    reference: ScoreValue | None = None
    """The time of the task's own reference on this GPU type; None if unknown."""
    vs_reference: PairRatio | None = None
    """The ratio of the person's best time to the reference that was timed in turn with it."""
    best: ScoreValue | None = None
    """The person's best time, which has the rank."""
    previous: ScoreValue | None = None
    """The person's best time of an earlier submission; None if there is none, or if not read."""
    ahead: Standing | None = None
    """The next better rank; None for the first."""
    behind: Standing | None = None
    """The next lower rank; None for the last."""


@dataclass(frozen=True, slots=True)
class OwnStanding:
    """A person's standing on one GPU type among `entries`, and their scores, oldest first."""

    gpu: str
    standing: Standing
    entries: int
    scores: tuple[Score, ...]
    reference: ScoreValue | None = None
    """The time of the task's own reference on this GPU type; None if unknown."""
    shared: bool = False
    """Whether other people have the same rank."""
    ahead: Standing | None = None
    """The last entry with a better rank; None for the first."""


@dataclass(frozen=True, slots=True)
class PersonalBoard:
    """A person's standings and submissions on a board; times are of the current task version."""

    board: Board
    standings: tuple[OwnStanding, ...]
    past: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class SeasonRun:
    """A run of a season, and the earlier one that it is compared with, if there is one."""

    score: Score
    before: Score | None


@dataclass(frozen=True, slots=True)
class Season:
    """A leaderboard and its scores up to `until`, oldest first.

    A long season has every record and each person's best, but only a sample of the other scores;
    `total` counts all.
    """

    leaderboard: BoardStandings
    scores: tuple[Score, ...]
    until: datetime
    total: int

    @property
    def is_whole(self) -> bool:
        """Whether it has every score."""
        return len(self.scores) == self.total

    @property
    def records(self) -> tuple[Score, ...]:
        """The first score, and each that is ahead of the record before it."""
        return records(self.scores)

    @property
    def compared_records(self) -> tuple[SeasonRun, ...]:
        """Each record with the one before it."""
        found = self.records
        return tuple(map(SeasonRun, found, (None, *found[:-1])))

    @property
    def compared_runs(self) -> tuple[SeasonRun, ...]:
        """Each run with the same person's run before it."""
        last: dict[PersonId, Score] = {}
        runs = []
        for each in self.scores:
            runs.append(SeasonRun(each, last.get(each.person)))
            last[each.person] = each
        return tuple(runs)


@dataclass(frozen=True, slots=True)
class PersonScaling:
    """A person's best score on each GPU type."""

    person_name: str
    values: dict[str, ScoreValue]


@dataclass(frozen=True, slots=True)
class GpuScaling:
    """The GPU types with scores, fastest first, and each person's best scores on them.

    People with scores on more GPU types come first, then faster ones.
    """

    board: Board
    gpus: tuple[str, ...]
    people: tuple[PersonScaling, ...]
