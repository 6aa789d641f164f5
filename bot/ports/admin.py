"""Accounts, moderation, statistics, and the state of the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from bot.domain.accounts import Person, Rights
from bot.domain.alerts import AlertMessage, RankedSource
from bot.domain.board import InviteLink, NewInviteLink
from bot.domain.costs import GpuTime, Prices, Quota, QuotaKey, Usage
from bot.domain.ids import BoardId, InviteLinkId, PersonId, SubmissionId
from bot.domain.records import DayCount, RightsGrant, Schema, Tally
from bot.domain.submission import Ban, Exclusion, RateLimit
from runners.contract.task import Mode
from runners.contract.verdict import Verdict


class People(Protocol):
    """Accounts."""

    async def ensure(self, identity: str, name: str, handle: str = "") -> Person:
        """Return the person with this identity, created if new; a changed name is stored.

        An empty handle leaves the stored one as it is. The stored name stays if an admin reset one
        that looks like `name`, or if the person chose their name with `rename`.
        """

    async def rename(self, person: PersonId, name: str, pause: timedelta) -> Person | None:
        """Store the name that the person chose.

        None if they chose one less than `pause` ago, or if an admin reset one that looks like it.
        """

    async def get(self, person: PersonId) -> Person | None: ...

    async def find(self, identity: str) -> Person | None: ...

    async def reset_name(self, person: Person) -> Person | None:
        """Replace the name with the handle, or the identity; None if the name has just changed.

        The person cannot choose a name like the old one again.
        """

    async def offer_notifications(self, person: PersonId, submission: SubmissionId) -> bool:
        """Offer notifications of results below this submission, unless another one has the offer.

        Returns whether this one has it.
        """

    async def add_skeletons(self) -> int:
        """Store the skeletons of names that have none, from an earlier version; return how many."""

    async def deleted(self) -> frozenset[PersonId]:
        """Return the deleted accounts, of which only scores are left."""

    async def erase(self, person: Person) -> tuple[str, ...]:
        """Delete what belongs to the person, except for scores and GPU time without their name.

        Returns the front end's ids of the person's private threads.
        """


class InviteLinks(Protocol):
    """Links by which people join private boards."""

    async def add(self, link: NewInviteLink) -> InviteLink:
        """Store a new link."""

    async def of(self, board: BoardId) -> tuple[InviteLink, ...]:
        """Return a board's links that are neither revoked nor expired, oldest first."""

    async def revoke(self, board: BoardId, link: InviteLinkId) -> bool:
        """Revoke a link of this board; False if it is unknown, revoked or expired."""

    async def find(self, digest: str) -> InviteLink | None:
        """Return the link with this digest, even if it is used up; None if revoked or expired."""

    async def use(self, digest: str, identity: str) -> BoardId | None:
        """Invite this identity to the link's board, and count it; None if the link is not valid.

        An identity that is invited already does not count.
        """


class Moderation(Protocol):
    """Bans, limits, exclusions and pauses."""

    async def ban(self, person: PersonId, ban: Ban) -> None:
        """Keep a person from submitting; a new ban replaces the old one.

        After it returns, no submission of the person is stored.
        """

    async def unban(self, person: PersonId) -> bool:
        """Lift the ban; False when the person was not banned."""

    async def ban_of(self, person: PersonId) -> Ban | None:
        """Return why the person may not submit; None if they may, also after the ban's end."""

    async def bans(self) -> dict[PersonId, Ban]:
        """Return why each banned person may not submit."""

    async def exclude(self, exclusion: Exclusion) -> None:
        """Take a submission off its board; a new reason replaces the old one."""

    async def include(self, submission: SubmissionId) -> bool:
        """Rank a submission again; False when it was not excluded."""

    async def exclusion_of(self, submission: SubmissionId) -> Exclusion | None: ...

    async def pause(self, notice: str) -> None:
        """Accept no submissions until `resume`; `notice` says why."""

    async def resume(self) -> bool:
        """Accept submissions again; False when they were not paused."""

    async def pause_notice(self) -> str | None:
        """Return why no submissions are accepted; None while they are."""

    async def pause_board(self, board: BoardId, notice: str) -> None:
        """Accept no submissions to one board until `resume_board`."""

    async def resume_board(self, board: BoardId) -> bool:
        """Accept submissions to the board again; False when it was not paused."""

    async def board_pauses(self) -> dict[BoardId, str]:
        """Return the notice of each paused board."""

    async def pause_gpu(self, gpu: str, notice: str) -> None:
        """Start no more jobs on a GPU type until `resume_gpu`; running ones continue."""

    async def resume_gpu(self, gpu: str) -> bool:
        """Start the GPU type's jobs again and notify the workers; False when it was not paused."""

    async def gpu_pauses(self) -> dict[str, str]:
        """Return the notice of each paused GPU type."""

    async def open_channel(self, guild: str, channel: str) -> None:
        """Accept submissions in this channel of a guild."""

    async def close_channel(self, guild: str, channel: str) -> bool:
        """Stop accepting submissions in this channel; False when none were accepted there."""

    async def channels(self, guild: str) -> tuple[str, ...]:
        """Return the channels where submissions are accepted; empty when none was ever set."""

    async def claim_part(self, guild: str, kind: str, lease: timedelta) -> bool:
        """Claim the creation of a guild's role or channel for a purpose.

        False if it was ever created, or while another process holds the claim.
        """

    async def keep_part(self, guild: str, kind: str, part: str) -> None:
        """Store which role or channel of a guild is used for a purpose."""

    async def parts(self) -> dict[tuple[str, str], str]:
        """Return the roles and channels by guild and purpose, even deleted ones."""

    async def set_limit(self, limit: RateLimit) -> None:
        """Set the limit of this board, mode and person."""

    async def drop_limit(
        self, board: BoardId | None, mode: Mode | None, person: PersonId | None = None
    ) -> bool:
        """Remove a limit; False when there is none, or it has ended."""

    async def limits(self) -> tuple[RateLimit, ...]:
        """Return every limit that has not ended, the wider ones first."""

    async def limited_by(
        self, person: PersonId, board: BoardId, mode: Mode, now: datetime
    ) -> tuple[RateLimit, datetime] | None:
        """Return a reached limit, and when the oldest submission that it counts was made."""


class Costs(Protocol):
    """GPU time, and the quotas that limit it.

    While a job runs, the most that it may use is reserved: `Jobs.claim` starts no job for which a
    quota has no room. When its attempt ends, or its lease expires, what it used counts instead.
    """

    @property
    def prices(self) -> Prices:
        """Return what a second of each GPU type costs."""

    async def set_quota(self, quota: Quota) -> None:
        """Set the quota of this key."""

    async def drop_quota(self, key: QuotaKey) -> bool:
        """Remove a quota; False when there was none."""

    async def quotas(self) -> tuple[Quota, ...]:
        """Return every quota, the wider ones first."""

    async def counted(self, since: datetime) -> tuple[GpuTime, ...]:
        """Return what counts for quotas: used since then, and reserved by running jobs."""

    async def usage(self, since: datetime, person: PersonId | None = None) -> tuple[Usage, ...]:
        """Return the GPU time of attempts that ended since then, of one person or of everyone.

        Those of deleted boards are included.
        """


class Alerts(Protocol):
    """Alerts for admins, the messages about them, and fingerprints of sources."""

    async def begin(self, key: str, text: str, again_within: timedelta) -> None:
        """Begin an alert unless it is active; one that ended within this time is resumed."""

    async def end_except(self, keys: Sequence[str]) -> int:
        """End all alerts but these; return how many."""

    async def report_once(self, key: str, text: str) -> None:
        """Begin an alert that never ends, unless one with its key was ever reported."""

    async def claim(
        self, addressees: Sequence[str], owner: str, lease: timedelta
    ) -> tuple[AlertMessage, ...]:
        """Claim messages to send, and those to edit because their alert ended or was resumed."""

    async def mark_sent(self, claimed: AlertMessage, owner: str, message: str) -> bool:
        """Store that `message` was sent or edited; False when another owner has taken over."""

    async def retry_later(self, claimed: AlertMessage, owner: str, wait: timedelta) -> bool:
        """Let it be claimed again after `wait`; False when another owner has taken over."""

    async def without_fingerprint(self) -> tuple[RankedSource, ...]:
        """Return the oldest ranked submissions of the last day that have no fingerprint."""

    async def fingerprints_of_others(
        self, board: BoardId, person: PersonId, length: int
    ) -> tuple[tuple[RankedSource, frozenset[int]], ...]:
        """Return others' newest fingerprints on a board, of half to twice this length."""

    async def save_fingerprint(self, of: RankedSource, fingerprint: frozenset[int]) -> None:
        """Store the fingerprint of a submission's source."""


class Statistics(Protocol):
    """Counts, computed by the store so that no rows are loaded for them."""

    async def people(self) -> int:
        """Return the number of accounts."""

    async def participants(self) -> Mapping[BoardId, int]:
        """Return how many people have submitted to each board; boards without any are absent."""

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        """Return the days since then with submissions, oldest first."""

    async def verdicts(self, since: datetime) -> Mapping[Verdict, int]:
        """Return how often each verdict was given since then; those never given are absent."""


class Operations(Protocol):
    """Counters that only grow, and other cheap queries."""

    async def schema(self) -> Schema:
        """Return the database's schema version; StoreError while it does not answer."""

    async def tallies(self) -> tuple[Tally, ...]:
        """Return the counts of all evaluations so far, by GPU type, mode and verdict.

        They include evaluations deleted since: the counts are for rates, which must not be
        negative.
        """

    async def lost_leases(self) -> Mapping[str, int]:
        """Return how many leases have expired so far, by GPU type."""

    async def waiting_since(self) -> Mapping[str, datetime]:
        """Return when the oldest queued job that is due was stored, by GPU type."""


class RightsStore(Protocol):
    """Rights as last reported by each source, such as `discord-guild:123`."""

    async def replace(self, person: PersonId, source: str, rights: Rights) -> None:
        """Replace the rights from this source; the time of the report is stored to the minute."""

    async def remove(self, person: PersonId, source: str) -> bool:
        """Remove the rights from this source; False when there were none."""

    async def of(self, person: PersonId) -> Rights:
        """Return the rights from all sources together."""

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        """Return at most `limit` grants of `kind:...` unconfirmed for this long, oldest first."""
