"""Notifications, displayed submissions, and people's requests to a front end."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from bot.domain.ids import JobId, NotificationId, PersonId, SubmissionId
from bot.domain.notifications import Delivery, Notification, NotificationKind
from bot.domain.records import InteractionRequest, OpenRequest, Question, UnannouncedScore
from bot.domain.submission import Display, KeptAnswer, ThreadKey, UntoldOutcome


class Listeners(Protocol):
    """Addressees, such as `discord:17`, and the kinds of notifications each subscribed to."""

    async def listen(self, addressee: str, kinds: frozenset[NotificationKind]) -> None:
        """Notify this addressee of exactly these kinds from now on."""

    async def kinds(self, addressee: str) -> frozenset[NotificationKind]:
        """Return the kinds that this addressee is notified of."""

    async def to(self, kind: NotificationKind) -> tuple[str, ...]:
        """Return the addressees that are notified of this kind, in order."""


class Outbox(Protocol):
    """Notifications waiting for delivery, each held by one process under a lease."""

    async def unannounced(self, limit: int = 100) -> tuple[UnannouncedScore, ...]:
        """Return scores that are not announced yet, in the order of acceptance.

        The statement that accepts a score also adds it here, so none is lost when the process is
        killed.
        """

    async def mark_announced(self, job: JobId, notifications: Sequence[Notification]) -> bool:
        """Store a score's notifications and remove the score, atomically; False if it is gone."""

    async def put(self, notifications: Sequence[Notification]) -> int:
        """Store notifications whose keys were never stored; return how many."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Delivery, ...]:
        """Claim a front end's due notifications that no process holds, oldest first."""

    async def mark_sent(self, notification: NotificationId, owner: str) -> bool:
        """Mark it delivered; False when another owner has taken over."""

    async def mark_refused(self, notification: NotificationId, owner: str, why: str) -> bool:
        """Mark it as never to be delivered; False when another owner has taken over."""

    async def retry_later(self, notification: NotificationId, owner: str, wait: timedelta) -> bool:
        """Let it be claimed again after that time; False when another owner has taken over."""

    async def delete_finished(self, age: timedelta) -> int:
        """Delete those finished this long ago; return how many."""


class Displays(Protocol):
    """Where front ends show submissions, each held by one process under a lease."""

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1000
    ) -> tuple[Display, ...]:
        """Claim unfinished displays that no process holds, oldest first."""

    async def renew(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        """Renew the owner's leases; return what it still holds."""

    async def save_state(self, submission: SubmissionId, owner: str, place: str) -> bool:
        """Store the display's progress; False when another owner has taken over."""

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        """Mark it as finished; False when another owner has taken over."""

    async def release_all(self, owner: str) -> int:
        """Let others claim the owner's displays; return how many."""

    async def find(self, submission: SubmissionId) -> Display | None:
        """Return the display of a submission, finished or not."""

    async def save_conversation(self, person: PersonId, conversation: str) -> None:
        """Store the conversation in which a front end and the person exchange direct messages."""

    async def conversation(self, person: PersonId) -> str | None:
        """Return that conversation; None if they have exchanged no direct messages."""


class BoardThreads(Protocol):
    """The threads that front ends have per board, each created by one process under a lease."""

    async def find(self, key: ThreadKey) -> str | None:
        """Return the thread, if it was created."""

    async def claim(
        self, key: ThreadKey, owner: str, lease: timedelta, lost: str | None = None
    ) -> int | None:
        """Claim its creation, or its replacement if it is `lost`; return the number of claims.

        None when it exists, or when another owner holds it.
        """

    async def renew(self, key: ThreadKey, owner: str, lease: timedelta) -> bool:
        """Renew the lease; False when another owner has taken over."""

    async def save(self, key: ThreadKey, owner: str, thread: str) -> bool:
        """Store the created thread and end the claim; False when another owner has taken over."""

    async def release(self, key: ThreadKey, owner: str) -> bool:
        """End the claim without a thread; False when another owner has taken over."""

    async def use(self, key: ThreadKey) -> bool:
        """Record that it is used now; False if it is unknown."""

    async def idle(self, door: str, guild: str) -> tuple[str, ...]:
        """Return the private threads without unfinished displays, least recently used first."""


class Interactions(Protocol):
    """Commands, clicks and forms by id, stored until they are done."""

    async def claim(self, request: InteractionRequest, owner: str, lease: timedelta) -> bool:
        """Store it and claim it; False when it is done, or another owner holds it."""

    async def claim_unfinished(
        self, door: str, owner: str, lease: timedelta, silent: timedelta
    ) -> tuple[OpenRequest, ...]:
        """Claim a few whose lease expired this long ago, oldest first; it counts as no attempt."""

    async def begin(self, interaction: str, owner: str, lease: timedelta) -> bool:
        """Count an attempt, and renew the lease; False when another owner has taken over."""

    async def renew(self, interaction: str, owner: str, lease: timedelta) -> bool:
        """Renew a lease, even an expired one; False when another owner has taken over."""

    async def release(self, interaction: str, owner: str, pause: timedelta) -> bool:
        """Let others claim it after that time; this owner's attempt does not count."""

    async def save_request(self, interaction: str, owner: str, request: str) -> bool:
        """Replace what is stored of the request; False when another owner has taken over."""

    async def finish(
        self,
        interaction: str,
        owner: str,
        *,
        keep_token: bool = False,
        told: bool = False,
        untold: UntoldOutcome | None = None,
    ) -> bool:
        """Mark it done and delete request and token; False when another owner has taken over.

        A kept token is deleted by `drop_token`, or when it expires. If `told`, what it took by
        `take_untold` is deleted. Its own outcome, if `untold`, is stored for a day.
        """

    async def take_untold(self, addressee: str, interaction: str) -> str | None:
        """Return the oldest outcome that this person was not told, for the answer to one request.

        No other request gets it unless this one ends without having told it.
        """

    async def answer_of(self, interaction: str) -> KeptAnswer:
        """Return whether it is done, and its token if that is stored and has not expired."""

    async def drop_token(self, interaction: str) -> bool:
        """Delete the token of a finished request; False if there is none."""

    async def ask(self, question: Question) -> None:
        """Store a question, unless this interaction has one already."""

    async def question(self, interaction: str) -> Question | None:
        """Return the question of an interaction; None once it has expired."""

    async def choose(self, interaction: str, offered: Sequence[str], chosen: Sequence[str]) -> None:
        """Store which of the `offered` are chosen; choices that were not offered stay."""

    async def answer_question(self, interaction: str, by: str) -> bool:
        """Record that an interaction answers the question; False if another one did before."""

    async def delete_finished(self) -> int:
        """Delete expired tokens and questions, old outcomes, and requests that were done long ago.

        Return how many.
        """
