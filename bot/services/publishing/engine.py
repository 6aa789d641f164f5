"""The only loop that checks and publishes submitted tasks: one engine for each front end.

A publication is stored before its submitter gets a response, and claimed under a lease. Each step
is stored as soon as it is done: a process that takes over neither publishes nor reports anything
twice.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias, TypeVar

import structlog

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import Draft, Publication, PublishedDraft
from bot.domain.tasks.lint import CheckStep
from bot.ports import Clock, Store
from bot.services.publishing.pipeline import Pipeline
from bot.services.publishing.publish import (
    REQUEST,
    find_interrupted_publish,
    read_competition,
    read_upload,
)
from bot.services.publishing.queued_runner import queued_runners
from bot.services.publishing.state import (
    HeldPublication,
    PublicationObserver,
    PublicationOutcome,
    PublicationState,
    TakenOverError,
    outcome_of,
    outcome_of_competition,
    outcome_of_error,
)

POLL_S = 1.0
"""Seconds between two polls for a publication that no process holds."""
SAVE_S = 0.5
"""Seconds between two stored states of one check."""
AT_ONCE = 4
"""The most publications that one engine runs at the same time."""
MAX_ATTEMPTS = 3
KEEP = timedelta(days=30)
"""How long outcomes stay readable."""
_FIRST_WAIT_S = 1.0
_MAX_WAIT_S = 60.0
_log = structlog.get_logger(__name__)

T = TypeVar("T")


Observe: TypeAlias = Callable[[HeldPublication], PublicationObserver]
"""Makes the observer of one publication."""


@dataclass(slots=True)
class PublicationEngine:
    """Checks and publishes what was submitted through one front end.

    Workers run the solutions: each run is a job of the queue.
    """

    store: Store
    clock: Clock
    door: str
    lease: timedelta
    observe: Observe
    ready: Callable[[], Awaitable[None]] | None = None
    """Awaited before the first claim."""
    keeps_zips: bool = False
    """Whether it keeps the zip of a check that published nothing, to check it again."""
    owner: str = ""
    held: dict[PublicationId, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose a name that is unique among processes."""
        self.owner = self.owner or f"{self.door}-{secrets.token_hex(6)}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Claim and publish until the block ends; then return what is unfinished to the queue."""
        task = asyncio.create_task(self._run(), name=f"publications of {self.door}")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self._return_all()

    async def _run(self) -> None:
        if self.ready is not None:
            await self.ready()
        heartbeat_s = self.lease.total_seconds() / 3
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._claim, POLL_S), name="claim publications")
            group.create_task(self._repeat(self._renew, heartbeat_s), name="renew publications")

    async def _return_all(self) -> None:
        tasks = list(self.held.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(StoreError):
            await self.store.publications.release_all(self.owner)

    async def _repeat(self, action: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            try:
                await action()
            except StoreError as error:
                _log.warning("the store is unavailable", action="releases_wait", error=str(error))
            await asyncio.sleep(seconds)

    async def _claim(self) -> None:
        free = AT_ONCE - len(self.held)
        if free <= 0:
            return
        for publication in await self.store.publications.claim(
            self.door, self.owner, self.lease, free
        ):
            task = asyncio.create_task(self._publish(publication), name=f"publish-{publication.id}")
            self.held[publication.id] = task

    async def _renew(self) -> None:
        held = dict(self.held)  # a publication claimed while the store answers is not in its answer
        renewed = set(await self.store.publications.renew(self.owner, self.lease))
        for number, task in held.items():
            if number not in renewed:
                task.cancel()

    async def _publish(self, publication: Publication) -> None:
        number = publication.id
        try:
            request = REQUEST.validate_json(publication.wish)
            held = HeldPublication(self.store, self.owner, publication, request)
            state = PublicationState.model_validate_json(publication.state)
            await _Run(self, held, self.observe(held), state).run()
        except TakenOverError:
            _log.info("a publication was taken over", action="release_lost", release=number)
        except Exception as error:  # noqa: BLE001  a bug with one must not end the others
            _log.error("a publication failed", action="incident", exc_info=error)
            with suppress(StoreError):
                await self.store.publications.finish(number, self.owner)
        finally:
            self.held.pop(number, None)


@dataclass(slots=True)
class _Run:
    """One publication, from its check to its outcome."""

    engine: PublicationEngine
    held: HeldPublication
    observer: PublicationObserver
    state: PublicationState
    """`publishing` and `outcome` are as stored."""
    steps: dict[tuple[str, str], CheckStep] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    """States are stored one after another, so that an old one never replaces a newer one."""

    async def run(self) -> None:
        """Check, publish and report; TakenOverError when another process has taken over."""
        if self.state.outcome is None:
            async with self._showing():
                outcome = await self._outcome()
            await _while_unavailable(lambda: self._save(outcome=outcome))
        await self._report(self.observer.finished)
        await _while_unavailable(self._end)

    async def _outcome(self) -> PublicationOutcome:
        try:
            return await _while_unavailable(self._check_and_publish)
        except TakenOverError:
            raise
        except Exception as error:  # noqa: BLE001 - the outermost frame of a publication
            cancelled = await _while_unavailable(self._cancellation)
            return outcome_of_error(self.held.request.title, cancelled or error)

    async def _cancellation(self) -> UserError | None:
        why = await self.engine.store.publications.cancellation(self.held.publication.id)
        if why is None:
            return None
        return UserError("cancelled", f"the check was cancelled {why}; nothing was published")

    async def _check_and_publish(self) -> PublicationOutcome:
        """Return the outcome; UserError when nothing is published."""
        publication, request, store = self.held.publication, self.held.request, self.engine.store
        await self._require_not_cancelled()
        if publication.tries > MAX_ATTEMPTS:
            raise UserError(
                "given-up",
                f"the check was started {MAX_ATTEMPTS} times, and Podium stopped each time; "
                "nothing was published; contact the person who runs Podium",
            )
        if request.competition:
            drafts, ignored = await read_competition(publication.zip, request)
            published = await self._pipeline().check_and_publish(drafts)
            return outcome_of_competition(request.name or "", published, ignored)
        bundle, parsed = await read_upload(publication.zip, request)
        interrupted = None
        if self.state.publishing:
            task = parsed.task_for(self.state.grader)
            interrupted = await find_interrupted_publish(store, request, task)
        if interrupted is not None:
            draft = PublishedDraft(interrupted, (), self.state.grading)
        else:
            (draft,) = await self._pipeline().check_and_publish(
                [Draft(bundle, parsed.task, request, parsed.grading)]
            )
        return outcome_of(draft, await self._version_before())

    def _pipeline(self) -> Pipeline:
        store, publication = self.engine.store, self.held.publication
        resumed = bool(self.state.begun)  # this process or another one started it before
        return Pipeline(
            store,
            self.engine.clock,
            (),
            self._add_line,
            self._watch,
            self._save_graded,
            lambda gpus: queued_runners(store, publication.id, gpus, resumed=resumed),
            accepted=True,
        )

    async def _save_graded(self, drafts: Sequence[Draft]) -> None:
        first = drafts[0]  # the grader is only read for a single task, see `_check_and_publish`
        await self._save(publishing=True, grader=first.task.grader, grading=first.grading.why)
        await self._require_not_cancelled()  # from here on it cannot be cancelled

    async def _require_not_cancelled(self) -> None:
        cancelled = await self._cancellation()
        if cancelled is not None:
            raise cancelled

    async def _version_before(self) -> int:
        """Return the number of the board's task version when the zip was submitted, 0 for none."""
        onto = self.held.request.onto
        version = None if onto is None else await self.engine.store.boards.version(onto)
        return 0 if version is None else version.number

    def _add_line(self, line: str) -> None:
        begun = dict.fromkeys((*self.state.begun, line))  # a competition has a line for each task
        self.state = self.state.model_copy(update={"begun": tuple(begun)})

    def _watch(self, step: CheckStep) -> None:
        self.steps[step.gpu, step.name] = step
        self.changed.set()

    def _current_state(self) -> PublicationState:
        steps = tuple(self.steps.values()) or self.state.steps
        return self.state.model_copy(update={"steps": steps})

    async def _save(self, **changes: object) -> None:
        """Store the state; `changes` take effect in this process only after they are stored."""
        async with self.saving:
            state = self._current_state().model_copy(update=changes).model_dump_json()
            publication, owner = self.held.publication, self.held.owner
            if not await self.engine.store.publications.save_state(
                publication.id, owner, state=state
            ):
                raise TakenOverError
            self.state = self.state.model_copy(update=changes)

    @asynccontextmanager
    async def _showing(self) -> AsyncIterator[None]:
        """Store and show each change of the check."""
        self.changed.set()
        task = asyncio.create_task(self._keep_showing(), name=f"show-{self.held.publication.id}")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep_showing(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            with suppress(StoreError):
                await self._save()
            await self._report(self.observer.changed)
            await asyncio.sleep(SAVE_S)

    async def _report(self, call: Callable[[PublicationState], Awaitable[None]]) -> None:
        try:
            await call(self._current_state())
        except TakenOverError:
            raise
        except Exception as error:  # noqa: BLE001 - an observer's error stops no publication
            details = {"exc_info": error} if self.state.outcome else {"error": repr(error)}
            _log.error("the observer of a publication failed", action="release_untold", **details)

    async def _end(self) -> None:
        publications, outcome = self.engine.store.publications, self.state.outcome
        number, owner = self.held.publication.id, self.held.owner
        keep_zip = self.engine.keeps_zips and outcome is not None and not outcome.published
        if not await publications.end(number, owner, keep_zip=keep_zip):
            raise TakenOverError
        await publications.delete_ended(self.engine.clock.now() - KEEP)


async def _while_unavailable(action: Callable[[], Awaitable[T]]) -> T:
    """Repeat an action while the store is unavailable, after pauses of up to a minute."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            return await action()
        except StoreError as error:
            _log.warning("the store is unavailable", action="release_waits", error=str(error))
        await asyncio.sleep(wait_s)
        wait_s = min(_MAX_WAIT_S, 2 * wait_s)
