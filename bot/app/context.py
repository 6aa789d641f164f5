"""The types that an installation and a command exchange; the system clock."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.ids import PersonId
from bot.ports import Clock, Store
from bot.ports.outside import ServiceConnection
from runners.contract.evaluation import BENCHMARK_ROUNDS, HOST_ROUNDS, RoundPolicy
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class OpenPodium:
    """An opened installation.

    `served`: a `podium up` of this data folder processes its queue. `shared`: the database is
    DATABASE_URL, so workers process its queue, not the process that submits. A process without a
    heartbeat for `lease_s` seconds counts as lost.
    """

    store: Store
    clock: Clock
    database: str
    served: bool
    shared: bool
    lease_s: float = 30.0
    confirm_places: bool = True


LinkFor = Callable[[str], str]
"""Creates a link that signs in the person with this name; the link works once."""


@dataclass(frozen=True, slots=True)
class RoundLimit:
    """Rounds that replace the mode's, only for the jobs of these people."""

    rounds: RoundPolicy
    people: frozenset[PersonId]


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """An open front end; `connection` is the one to its remote service, if it has one.

    It has `link_for` only if no other machine can reach it.
    """

    name: str
    connection: ServiceConnection | None = None
    link_for: LinkFor | None = None


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server to judge for; None values come from the settings.

    `plain_http` allows the token to be sent unencrypted to another machine.
    """

    url: str | None
    token: str | None
    plain_http: bool = False


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that Podium needs or can use here; `remedy` says how to get a missing one."""

    name: str
    found: bool
    detail: str
    remedy: str = ""
    optional: bool = False


def cap_rounds(mode: Mode, most: int) -> RoundPolicy:
    """Return the policy of a mode with at most `most` rounds: quicker, with a wider interval."""
    usual = HOST_ROUNDS if mode is Mode.RANKED else BENCHMARK_ROUNDS
    last = min(most, usual.looks[-1])
    looks = (*(look for look in usual.looks if look < last), last)
    return usual.model_copy(update={"looks": looks})


class SystemClock:
    """The machine's own clock, in UTC."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        return datetime.now(UTC)
