"""What an installation needs periodically, beside the jobs of people.

The jobs of lost workers are requeued; old events, notifications and idempotency keys are deleted.
Each task's own reference is timed once per task version and GPU type of a board. The judge times it
like every submission, in ranked mode with all rounds, so that the speedup over the reference is a
ratio of two times measured in the same way.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.errors import StoreError
from bot.domain.job import SYSTEM_PRIORITY
from bot.domain.reference_times import Untimed, reference_source
from bot.domain.submission import NewSubmission
from bot.domain.tasks.task_file import REFERENCE
from bot.ports import Store
from bot.services.apart import TooHardError
from bot.services.publishing.publish import TASKS
from runners.contract.task import Mode

KEPT = timedelta(days=7)
"""How long the events of an ended job are kept; its evaluation stays."""
NEWS_KEPT = timedelta(days=30)
"""How long delivered notifications are remembered, so that none is sent twice."""
FORGET_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


async def recover(store: Store, stop: asyncio.Event, *, every_s: float = 5.0) -> None:
    """Requeue jobs with expired leases and delete old data, periodically, until `stop` is set."""
    loop = asyncio.get_running_loop()
    forget_at = loop.time()
    while not stop.is_set():
        await _reap(store)
        if loop.time() >= forget_at:
            await _forget(store)
            forget_at = loop.time() + FORGET_EVERY_S
        await _rest(stop, every_s)


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    """Wait this long, or until `stop` is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


async def _reap(store: Store) -> None:
    try:
        reaped = await store.jobs.reap()
    except StoreError as error:
        _log.warning("reap failed", action="reap-failed", error=str(error))
        return
    if reaped:
        _log.info("leases ran out", action="reaped", jobs=reaped)


async def _forget(store: Store) -> None:
    try:
        forgotten = await store.jobs.forget_events(KEPT)
        await store.outbox.forget(NEWS_KEPT)
        await store.submissions.forget_keys()
    except StoreError as error:
        _log.warning("nothing forgotten", action="forget-failed", error=str(error))
        return
    if forgotten:
        _log.info("old steps were removed", action="forgotten", events=forgotten)


AGAIN_AFTER = timedelta(days=1)
"""How long after a job failed through our own fault a new one is queued for its reference."""
_NAME = "Podium"


async def time_references(store: Store, stop: asyncio.Event, *, every_s: float = 5.0) -> None:
    """Record failures and queue what is not timed yet, every `every_s`, until `stop` is set."""
    while not stop.is_set():
        try:
            await _note_failures(store)
            await store.references.forget_given_up(AGAIN_AFTER)
            await order_references(store)
        except StoreError as error:
            _log.warning("references have to wait", action="references-wait", error=str(error))
        await _rest(stop, every_s)


async def order_references(store: Store) -> int:
    """Queue a job for each reference of a board that is not timed yet; return how many.

    Several processes may do so at once: each reference is timed by one job.
    """
    ordered = 0
    for untimed in await store.references.untimed():
        source = await _source(store, untimed)
        if source is None:
            await store.references.mark_untimeable(untimed.task_version, untimed.gpu)
        elif await _order(store, untimed, source):
            ordered += 1
            _log.info("reference queued", action="reference-ordered", gpu=untimed.gpu)
    return ordered


async def _source(store: Store, untimed: Untimed) -> str | None:
    """Return the source to time; None for a task without one or one that is unreadable (logged)."""
    try:
        version = await store.boards.version(untimed.task_version)
        return None if version is None else await TASKS.do(reference_source, version.definition)
    except StoreError:
        raise
    except TooHardError:
        return None
    except Exception:  # noqa: BLE001  a bug with one task must not end the worker
        version_id = untimed.task_version
        _log.exception("bug in a task", action="reference-bug", task_version=version_id)
        return None


async def _order(store: Store, untimed: Untimed, source: str) -> bool:
    house = await store.people.ensure(SYSTEM_IDENTITY, _NAME)
    return await store.references.order(
        NewSubmission(
            person=house.id,
            board=untimed.board,
            task_version=untimed.task_version,
            file_name=REFERENCE,
            source=source,
            mode=Mode.RANKED,
            gpus=(untimed.gpu,),
            priority=SYSTEM_PRIORITY,
        )
    )


async def _note_failures(store: Store) -> None:
    for subject, reason in await store.references.note_failures():
        _log.warning("no time", action="reference-failed", reference=subject, error=reason)
