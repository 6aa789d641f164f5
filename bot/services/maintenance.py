"""Periodic work of an installation: requeues, deletes, and times references.

The jobs of lost workers are requeued. Old events, notifications and idempotency keys are deleted.
Each task's own reference is timed once per task version and GPU type of a board. The judge times it
like every submission, in ranked mode with all rounds, so that the speedup over the reference is a
ratio of two times measured in the same way.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog

from bot.domain.accounts import SYSTEM_IDENTITY, SYSTEM_NAME
from bot.domain.errors import StoreError
from bot.domain.job import SYSTEM_PRIORITY
from bot.domain.reference_times import Untimed, reference_source
from bot.domain.submission import NewSubmission
from bot.domain.tasks.task_file import REFERENCE
from bot.ports import Store
from bot.services.parser_process import TooHardError
from bot.services.publishing.publish import TASKS
from runners.contract.task import Mode

EVENTS_KEPT = timedelta(days=7)
"""How long the events of an ended job are kept; its evaluation stays."""
NOTIFICATIONS_KEPT = timedelta(days=30)
"""How long delivered notifications are stored, so that none is sent twice."""
DELETE_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


async def recover(store: Store, stop: asyncio.Event, *, every_s: float = 5.0) -> None:
    """Requeue jobs with expired leases and update stored data, until `stop` is set."""
    loop = asyncio.get_running_loop()
    delete_at = loop.time()
    while not stop.is_set():
        await _requeue_expired(store)
        if loop.time() >= delete_at:
            await _update_data(store)
            delete_at = loop.time() + DELETE_EVERY_S
        await _wait(stop, every_s)


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """Wait this long, or until `stop` is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


async def _requeue_expired(store: Store) -> None:
    try:
        requeued = await store.jobs.requeue_expired()
    except StoreError as error:
        _log.warning("expired leases were not requeued", action="reap-failed", error=str(error))
        return
    if requeued:
        _log.info("jobs with expired leases were requeued", action="reaped", jobs=requeued)


async def _update_data(store: Store) -> None:
    """Delete old data, and add skeletons to names that have none."""
    try:
        deleted = await store.jobs.delete_events(EVENTS_KEPT)
        await store.outbox.delete_finished(NOTIFICATIONS_KEPT)
        await store.submissions.delete_expired_keys()
        await store.people.add_skeletons()
    except StoreError as error:
        _log.warning("old data was not deleted", action="forget-failed", error=str(error))
        return
    if deleted:
        _log.info("old events were deleted", action="forgotten", events=deleted)


RETRY_AFTER = timedelta(days=1)
"""How long after a reference's job failed with an internal error a new one is queued."""


async def time_references(store: Store, stop: asyncio.Event, *, every_s: float = 5.0) -> None:
    """Queue untimed references and record failures, every `every_s`, until `stop` is set."""
    while not stop.is_set():
        try:
            await _record_failures(store)
            await store.references.delete_given_up(RETRY_AFTER)
            await queue_references(store)
        except StoreError as error:
            _log.warning("references are not timed", action="references-wait", error=str(error))
        await _wait(stop, every_s)


async def queue_references(store: Store) -> int:
    """Queue a job for each reference of a board that is not timed yet; return how many.

    Several processes may call it at once: each reference is timed by one job.
    """
    queued = 0
    for untimed in await store.references.untimed():
        source = await _source(store, untimed)
        if source is None:
            await store.references.mark_untimeable(untimed.task_version, untimed.gpu)
        elif await _queue_reference(store, untimed, source):
            queued += 1
            _log.info("reference queued", action="reference-ordered", gpu=untimed.gpu)
    return queued


async def _source(store: Store, untimed: Untimed) -> str | None:
    """Return the reference's source; None if the task has none or if it cannot be read."""
    try:
        version = await store.boards.version(untimed.task_version)
        return None if version is None else await TASKS.call(reference_source, version.definition)
    except StoreError:
        raise
    except TooHardError:
        return None
    except Exception:  # noqa: BLE001  a bug with one task must not end the worker
        version_id = untimed.task_version
        _log.exception("bug in a task", action="reference-bug", task_version=version_id)
        return None


async def _queue_reference(store: Store, untimed: Untimed, source: str) -> bool:
    system = await store.people.ensure(SYSTEM_IDENTITY, SYSTEM_NAME)
    return await store.references.order(
        NewSubmission(
            person=system.id,
            board=untimed.board,
            task_version=untimed.task_version,
            file_name=REFERENCE,
            source=source,
            mode=Mode.RANKED,
            gpus=(untimed.gpu,),
            priority=SYSTEM_PRIORITY,
        )
    )


async def _record_failures(store: Store) -> None:
    for subject, reason in await store.references.record_failures():
        _log.warning("not timed", action="reference-failed", reference=subject, error=reason)
