"""Health of the components, metrics, statistics, how busy each GPU type is, and live workers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import structlog

from bot.domain.board import Board, Viewer
from bot.domain.costs import CostReport, day_of
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId
from bot.domain.job import JobState, UnfinishedJob, Worker
from bot.domain.records import InstallationStats, Schema, Tally
from bot.ports import Clock, Store
from bot.ports.outside import ServiceConnection
from bot.services.status import waiting_time

_log = structlog.get_logger(__name__)


class State(StrEnum):
    """The state of a component; only `FAILED` means that it is not ready."""

    READY = "ready"
    """It works."""
    PAUSED = "paused"
    """An admin has paused it."""
    WAITING = "waiting"
    """It waits for something outside this process."""
    FAILED = "failed"
    """It does not work."""


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """One component; `detail` says what is wrong and what to do, without secrets."""

    name: str
    state: State
    detail: str = ""


async def readiness(
    store: Store, *, has_runners: bool, connections: Sequence[ServiceConnection] = ()
) -> tuple[ComponentHealth, ...]:
    """Return each component of this process, the most basic first."""
    return *await _database_health(store, has_runners=has_runners), *map(_connection, connections)


async def _database_health(store: Store, *, has_runners: bool) -> tuple[ComponentHealth, ...]:
    try:
        schema = await store.operations.schema()
        judging = await _judging(store, has_runners=has_runners)
    except StoreError as error:
        _log.warning("not ready", action="not-ready", error=str(error))
        detail = "the database does not answer; see podium.log"
        return (ComponentHealth("database", State.FAILED, detail),)
    return ComponentHealth("database", State.READY), _migrations(schema), judging


def _migrations(schema: Schema) -> ComponentHealth:
    if schema.present == schema.known:
        return ComponentHealth("migrations", State.READY)
    if schema.present < schema.known:
        detail = f"{schema.present} of {schema.known} migrations are applied; run `podium migrate`"
    else:
        detail = (
            f"the database has {schema.present} migrations, but this version knows only "
            f"{schema.known}; upgrade Podium"
        )
    return ComponentHealth("migrations", State.FAILED, detail)


async def _judging(store: Store, *, has_runners: bool) -> ComponentHealth:
    """Return whether a live worker may judge queued jobs, and if not, why."""
    pause = await store.moderation.pause_notice()
    if pause is not None:
        return ComponentHealth("judging", State.PAUSED, f"submissions are paused: {pause}")
    workers = await store.workers.alive()
    if not workers:
        return _no_worker(has_runners=has_runners)
    gpus = {gpu for each in workers for gpu in each.gpus or ()}
    paused = gpus & (await store.moderation.gpu_pauses()).keys()
    if paused and paused == gpus:
        return ComponentHealth(
            "judging", State.PAUSED, f"paused by an admin: {', '.join(sorted(gpus))}"
        )
    if not gpus:
        return _no_slot(workers, has_runners=has_runners)
    broken = _out_of_service(workers)
    return ComponentHealth(
        "judging", State.READY, f"{broken}; see `podium runners`" if broken else ""
    )


def _no_worker(*, has_runners: bool) -> ComponentHealth:
    """Return that no worker is live: a failure only in a process that has its own runners."""
    if has_runners:
        detail = "its dispatcher does not respond; see podium.log, and restart it"
        return ComponentHealth("judging", State.FAILED, detail)
    return ComponentHealth(
        "judging", State.WAITING, "no worker is connected; start `podium worker`"
    )


def _no_slot(workers: Sequence[Worker], *, has_runners: bool) -> ComponentHealth:
    """Return why no live worker can take a job."""
    if any(each.gpus is None for each in workers):
        return ComponentHealth("judging", State.WAITING, "the runners have not answered yet")
    state = State.FAILED if has_runners else State.WAITING
    broken = _out_of_service(workers) or "no runner offers a slot"
    return ComponentHealth("judging", state, f"{broken}; see `podium runners`, which says why")


def _out_of_service(workers: Iterable[Worker]) -> str:
    """Return which cards are out of service, in words; empty when none is."""
    offers = (offer for worker in workers for offer in worker.offers.values())
    broken = Counter(each.gpu for offer in offers for each in offer.out_of_service)
    cards = ", ".join(f"{count} x {gpu}" for gpu, count in sorted(broken.items()))
    return f"cards out of service: {cards}" if cards else ""


def _connection(connection: ServiceConnection) -> ComponentHealth:
    if not connection.is_connected:
        return ComponentHealth(
            connection.name, State.FAILED, "not connected; Podium reconnects automatically"
        )
    return ComponentHealth(connection.name, State.READY)


MOST_GPUS = 64
"""The most GPU types as labels of metrics; board creators choose their names."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class GpuMetrics:
    """One GPU type; `waits_s` is how long the oldest due job has been queued."""

    gpu: str
    queued: int = 0
    running: int = 0
    waits_s: float = 0.0
    slots: int = 0
    out_of_service: int = 0
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Metrics:
    """Queues by GPU type, totals since the first evaluation, and the live workers."""

    gpus: tuple[GpuMetrics, ...]
    tallies: tuple[Tally, ...]
    lost_leases: Mapping[str, int]
    workers: int
    paused: bool


async def read_metrics(store: Store, clock: Clock) -> Metrics:
    """Read the metrics from the store; StoreError while it is unavailable."""
    operations, workers = store.operations, await store.workers.alive()
    return Metrics(
        gpus=await _gpu_metrics(store, clock, workers),
        tallies=await operations.tallies(),
        lost_leases=await operations.lost_leases(),
        workers=len(workers),
        paused=await store.moderation.pause_notice() is not None,
    )


async def _gpu_metrics(
    store: Store, clock: Clock, workers: Iterable[Worker]
) -> tuple[GpuMetrics, ...]:
    backlog = await store.jobs.backlog()
    since = await store.operations.waiting_since()
    pauses = await store.moderation.gpu_pauses()
    slots, out_of_service = _cards(workers)
    now = clock.now()
    return tuple(
        GpuMetrics(
            gpu=gpu,
            queued=backlog.get(gpu, {}).get(JobState.QUEUED, 0),
            running=backlog.get(gpu, {}).get(JobState.RUNNING, 0),
            waits_s=max(0.0, (now - since.get(gpu, now)).total_seconds()),
            slots=slots[gpu],
            out_of_service=out_of_service[gpu],
            paused=gpu in pauses,
        )
        for gpu in sorted({*backlog, *since, *pauses, *slots, *out_of_service})
    )


def _cards(workers: Iterable[Worker]) -> tuple[Counter[str], Counter[str]]:
    """Return, by GPU type, the slots that runners offer and the cards that are out of service."""
    slots, out_of_service = Counter[str](), Counter[str]()
    for offer in (offer for worker in workers for offer in worker.offers.values()):
        slots.update(offer.gpus)
        out_of_service.update(each.gpu for each in offer.out_of_service)
    return slots, out_of_service


DAYS = 14
"""How many days the statistics cover."""


async def stats(store: Store, clock: Clock) -> InstallationStats:
    """Return the statistics of an installation."""
    since = day_of(clock.now()) - timedelta(days=DAYS - 1)
    return InstallationStats(
        people=await store.statistics.people(),
        boards=len(await store.boards.all()),
        days=await store.statistics.days(since),
        verdicts=await store.statistics.verdicts(since),
        backlog=await store.jobs.backlog(),
        usage=await store.costs.usage(since),
        prices=store.costs.prices,
    )


async def costs(store: Store, clock: Clock, days: int) -> CostReport:
    """Return who used how much GPU time in the last `days` days (UTC), today included."""
    since = day_of(clock.now()) - timedelta(days=days - 1)
    return CostReport(days, await store.costs.usage(since), store.costs.prices)


@dataclass(frozen=True, slots=True)
class GpuQueue:
    """One GPU type: its unfinished jobs, the workers that offer it, and why it is paused."""

    gpu: str
    queued: int
    running: int
    workers: int
    paused: str | None


async def gpu_queues(store: Store) -> tuple[GpuQueue, ...]:
    """Return each GPU type that has jobs or workers, or is paused, by name."""
    backlog = await store.jobs.backlog()
    alive = await store.workers.alive()
    pauses = await store.moderation.gpu_pauses()
    offered = {gpu for worker in alive for gpu in worker.gpus or ()}
    return tuple(
        GpuQueue(
            gpu=gpu,
            queued=backlog.get(gpu, {}).get(JobState.QUEUED, 0),
            running=backlog.get(gpu, {}).get(JobState.RUNNING, 0),
            workers=sum(gpu in (worker.gpus or ()) for worker in alive),
            paused=pauses.get(gpu),
        )
        for gpu in sorted({*backlog, *offered, *pauses})
    )


LISTED_JOBS = 100
"""The most running and the most waiting jobs of a GPU type that are listed."""
_GPU_SAMPLE = 20
"""How many recent evaluations on the GPU type are used to estimate when a job ends."""


@dataclass(frozen=True, slots=True)
class JobEstimate:
    """A job that runs or waits, its board, and the expected seconds until its end, if known."""

    job: UnfinishedJob
    board: Board
    ends_in_s: float | None


async def job_estimates(
    store: Store, clock: Clock, person: PersonId | None = None
) -> tuple[JobEstimate, ...]:
    """Return the jobs of people's submissions that run or wait, by GPU type, with estimates.

    Of a long queue, return the first ones and, if given, all of `person`.
    """
    backlog = await store.jobs.backlog()
    found = await store.jobs.unfinished(sorted(backlog), LISTED_JOBS, person)
    boards = {board.id: board for board in await store.boards.all()}
    samples = {
        gpu: await store.results.gpu_durations(gpu, _GPU_SAMPLE)
        for gpu in {each.gpu for each in found}
    }
    now = clock.now()
    return tuple(
        JobEstimate(
            job,
            boards[job.board],
            _ends_in(job, samples[job.gpu], backlog[job.gpu].get(JobState.RUNNING, 0), now),
        )
        for job in found
        if job.board in boards
    )


def _ends_in(
    job: UnfinishedJob, durations: Sequence[float], running: int, now: datetime
) -> float | None:
    if job.state is JobState.QUEUED:
        return waiting_time((), durations, job.position, running)
    typical = waiting_time((), durations, 0.5, 1)  # position 0.5: nothing to wait for
    return None if typical is None else max(0.0, typical - (now - job.since).total_seconds())


def may_know(viewer: Viewer, estimate: JobEstimate) -> bool:
    """Return whether the viewer may know whose job it is and on which board."""
    return estimate.job.person == viewer.person or estimate.board.visible_to(viewer)


NAMELESS: frozenset[str] = frozenset()
"""The token labels whose workers are shown by name in a public list: none."""


async def workers_for(store: Store, viewer: Viewer) -> tuple[Worker, ...]:
    """Return the live workers by name, or numbered if the viewer may not know the name.

    Admins know every name; the creator of a worker's token knows that worker's name.
    """
    alive = await store.workers.alive()
    if viewer.sees_all:
        return alive
    tokens = await store.tokens.of_workers() if alive else ()
    return number_workers(alive, {each.label for each in tokens if each.person == viewer.person})


def number_workers(workers: Sequence[Worker], known: AbstractSet[str]) -> tuple[Worker, ...]:
    """Replace names by `worker N`, except those whose token has a `known` label."""
    return tuple(
        each if _label(each) in known else replace(each, name=f"worker {number}")
        for number, each in enumerate(workers, 1)
    )


def _label(worker: Worker) -> str:
    """Return the token's label; a remote worker is named label, colon, unique part."""
    return worker.name.partition(":")[0] if ":" in worker.name else ""
