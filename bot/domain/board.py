"""A board: one task, its GPU types, its deadline, who may see it, and the pools that time it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from bot.domain.errors import UserError
from bot.domain.ids import BoardId, InviteLinkId, PersonId, TaskVersionId
from runners.contract.gpus import gpu_types
from runners.contract.task import Grader, Mode, TaskDefinition

NOBODY = PersonId(0)
"""In place of an account's number: a reader without an account."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is looking, and their credentials: identity, roles, guild membership.

    A front end sets each credential, such as `discord:17`, `discord-role:5` or
    `discord-guild:123`. `sees_all` is for admins, and for people at the machine that runs Podium,
    who could read its database anyway.
    """

    person: PersonId
    credentials: frozenset[str] = frozenset()
    sees_all: bool = False


class Visibility(StrEnum):
    """Who may see a board."""

    PUBLIC = "public"
    """Everyone, or every member of its guild."""
    PRIVATE = "private"
    """Only the people and roles that are invited."""


class SourceVisibility(StrEnum):
    """When others may read a submitted source; its submitter always may."""

    AFTER_DEADLINE = "after-deadline"
    """Once the board accepts no more submissions."""
    ALWAYS = "always"
    """As soon as it is submitted."""
    NEVER = "never"
    """Not even after the deadline."""

    def statement(self, deadline: datetime | None) -> str:
        """Return the statement to which a submitter agrees, on a board with this deadline."""
        if self is SourceVisibility.NEVER:
            return "Only you and admins may read your source."
        if self is SourceVisibility.ALWAYS:
            return "Everyone who sees the board may read your source, also in exports for research."
        until = "You and admins may read your source, and the board's creator gets it in exports"
        when = "After the deadline, everyone who sees the board may read it."
        if deadline is None:
            when = "Everyone who sees the board may read it once it has closed after a deadline."
        return f"{until} for research. {when}"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may see one board; `house` and `guests` are credentials of viewers."""

    visibility: Visibility = Visibility.PUBLIC
    house: str | None = None
    """The credential that everyone who sees the board needs, such as `discord-guild:123`."""
    source: SourceVisibility = SourceVisibility.AFTER_DEADLINE
    guests: frozenset[str] = frozenset()

    def admits(self, credentials: frozenset[str]) -> bool:
        """Return whether people, or a channel, with these credentials may see the board."""
        if self.house is not None and self.house not in credentials:
            return False
        return self.visibility is Visibility.PUBLIC or bool(self.guests & credentials)

    @property
    def credentials(self) -> frozenset[str]:
        """Return the guests and, if set, the credential that everyone needs."""
        return self.guests if self.house is None else self.guests | {self.house}

    def shows_sources(
        self, *, is_open: bool, consent: SourceVisibility = SourceVisibility.ALWAYS
    ) -> bool:
        """Return whether others may read a source while the board is open, or after it closed.

        `consent` is what was stated to its submitter: a later change shows it to no more people.
        """
        rules = {self.source, consent}
        if SourceVisibility.NEVER in rules:
            return False
        return not is_open or SourceVisibility.AFTER_DEADLINE not in rules


Pins = tuple[tuple[str, str], ...]
"""For some GPU types, the only pool of machines that times their ranked jobs.

Each pair is a GPU type, listed once, and a pool as in `bot.domain.scoring.pool_of`.
"""
HIDDEN = "/"
"""The prefix of the names of the system's own boards; people can neither choose such a name nor
list or open such a board."""


@dataclass(frozen=True, slots=True)
class SeasonRules:
    """The rules of a board's season in addition to its deadline, as a competition sets them."""

    opens_at: datetime | None = None
    """When it opens to people other than its creator; a board that has opened is read with None."""
    late_runs: bool = False
    """Whether it accepts submissions in unranked modes after its deadline."""

    def at(self, now: datetime) -> "SeasonRules":
        """Return the rules at the aware time `now`: without an opening date that has passed."""
        has_opened = self.opens_at is not None and self.opens_at <= now
        return replace(self, opens_at=None) if has_opened else self


@dataclass(frozen=True, slots=True)
class NewBoard:
    """A board to store; without a deadline it stays open."""

    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    creator: PersonId
    access: Access = field(default_factory=Access)
    pins: Pins = ()
    rules: SeasonRules = SeasonRules()
    grader: Grader | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """A stored board; `task_version` judges new submissions."""

    id: BoardId
    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    creator: PersonId
    task_version: TaskVersionId
    created_at: datetime
    access: Access = field(default_factory=Access)
    pins: Pins = ()
    """The only pools that time its ranked jobs, by GPU type."""
    rules: SeasonRules = SeasonRules()
    grader: Grader | None = None
    """The grader that its creator chose for tasks with their own evaluation; None: no choice."""

    def pool_for(self, gpu: str, mode: Mode) -> str:
        """Return the only pool that takes a job of this mode; empty: any."""
        return dict(self.pins).get(gpu, "") if mode is Mode.RANKED else ""

    @property
    def is_hidden(self) -> bool:
        """Return whether it is the system's own, which is never listed or found by name."""
        return self.name.startswith(HIDDEN)

    def visible_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may see the board; its creator may see it before it opens."""
        return self.belongs_to(viewer) or (
            self.rules.opens_at is None and self.access.admits(viewer.credentials)
        )

    def announced_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may know the board's name, and when it opens."""
        return self.belongs_to(viewer) or self.access.admits(viewer.credentials)

    def belongs_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may change the board and see everything about its task."""
        return viewer.sees_all or viewer.person == self.creator

    def is_open(self, now: datetime) -> bool:
        """Return whether the season is not over at the aware time `now`."""
        return self.deadline is None or now <= self.deadline

    def accepts(self, mode: Mode, now: datetime) -> bool:
        """Return whether it accepts submissions in this mode at the aware time `now`."""
        return self.is_open(now) or (self.rules.late_runs and mode is not Mode.RANKED)


@dataclass(frozen=True, slots=True)
class TaskVersion:
    """One state of a board's task; scores of two versions are never compared."""

    id: TaskVersionId
    board: BoardId
    number: int
    digest: str
    definition: TaskDefinition
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewInviteLink:
    """A link to store; `digest` is a hash of its code."""

    board: BoardId
    creator: PersonId
    digest: str
    most: int
    """The most people who can join by it."""
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class InviteLink:
    """A link by which at most `most` people can join a private board; `uses` have joined."""

    id: InviteLinkId
    board: BoardId
    most: int
    uses: int
    created_at: datetime
    expires_at: datetime


ANY = "any"
"""In place of a pool: every pool may time the ranked jobs."""
ALL = "*"
"""In place of a GPU type: every GPU type of the board."""
_LONGEST_POOL = 80
_POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*( [A-Za-z0-9][A-Za-z0-9._-]*)?")


def parse_pins(texts: Iterable[str]) -> Pins:
    """Parse changes such as `modal` or `A100=box, H100=any`, in order; `*` stands for all types.

    UserError `bad-pool` for anything else.
    """
    parts = (part.strip() for text in texts for part in text.split(","))
    return tuple(_parse_pin(part) for part in parts if part)


def _parse_pin(part: str) -> tuple[str, str]:
    gpu, equals, pool = (each.strip() for each in part.rpartition("="))
    if (equals and not gpu) or not _POOL.fullmatch(pool) or len(pool) > _LONGEST_POOL:
        raise UserError(
            "bad-pool",
            f"{part[:100]!r} is not a pool; write a pool such as modal, or one for a GPU type "
            f"such as A100=local; {ANY} removes the restriction",
        )
    if not equals or gpu == ALL:
        return ALL, pool.lower()
    (name,) = gpu_types((gpu,))
    return name, pool.lower()


def apply_pins(present: Pins, changes: Pins, gpus: tuple[str, ...]) -> Pins:
    """Return the pins of a board with these GPU types after the changes, by GPU type.

    UserError `bad-pool` for a GPU type that the board does not have.
    """
    pins = dict(present)
    for gpu, pool in changes:
        if gpu not in (ALL, *gpus):
            raise UserError(
                "bad-pool",
                f"a pool is set for {gpu}, but the leaderboard only has {', '.join(gpus)}",
            )
        pins |= dict.fromkeys(gpus if gpu == ALL else (gpu,), pool)
    return tuple(sorted((gpu, pool) for gpu, pool in pins.items() if gpu in gpus and pool != ANY))


def show_pins(pins: Pins) -> str:
    """Return the pins in the format of `parse_pins`; empty when there are none."""
    return ", ".join(f"{gpu}={pool}" for gpu, pool in pins)


def show_target(gpu: str, pool: str) -> str:
    """Return in words what a job waits for: its GPU type, and its pool unless that is empty."""
    return f"{gpu} of pool {pool}" if pool else gpu
