"""Writes metrics in the text format of Prometheus."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, core, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from typing_extensions import override

from bot.domain.records import BUCKETS_S, Tally
from bot.ports.outside import ServiceConnection
from bot.services.operations import MOST_GPUS, OTHER, GpuMetrics, Metrics

CONTENT_TYPE = CONTENT_TYPE_LATEST
_EDGES = (*(str(edge) for edge in BUCKETS_S), "+Inf")


def exposition(metrics: Metrics | None, connections: Sequence[ServiceConnection]) -> bytes:
    """Return all metrics; if `metrics` is None, the database is reported as unavailable."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Scrape(metrics, connections))
    return generate_latest(registry)


class _Scrape(Collector):
    """The metric families of one scrape."""

    def __init__(self, metrics: Metrics | None, connections: Sequence[ServiceConnection]) -> None:
        self._metrics = metrics
        self._connections = connections

    @override
    def collect(self) -> Iterator[core.Metric]:
        is_up = 0 if self._metrics is None else 1
        yield core.GaugeMetricFamily(
            "podium_database_up", "Whether the database answers", value=is_up
        )
        yield from _connection_metrics(self._connections)
        if self._metrics is not None:
            yield from _gpu_metrics(self._metrics.gpus)
            yield from _evaluation_metrics(self._metrics.tallies)
            yield _lost_leases(self._metrics)
            help_text = "Workers that send heartbeats, over all processes and machines"
            yield core.GaugeMetricFamily("podium_workers", help_text, value=self._metrics.workers)
            help_text = "Whether an admin has paused all submissions"
            yield core.GaugeMetricFamily(
                "podium_paused", help_text, value=int(self._metrics.paused)
            )


def _connection_metrics(connections: Sequence[ServiceConnection]) -> Iterator[core.Metric]:
    """Yield this process's connections; other processes report their own."""
    for each in connections:
        latency_s, name = each.latency_s, f"podium_{each.name}"
        help_text = f"Whether this process is connected to {each.name.capitalize()}"
        yield core.GaugeMetricFamily(
            f"{name}_connected", help_text, value=int(latency_s is not None)
        )
        if latency_s is not None and math.isfinite(latency_s):
            help_text = f"How long {each.name.capitalize()} takes to answer a heartbeat"
            yield core.GaugeMetricFamily(f"{name}_latency_seconds", help_text, value=latency_s)


def _gpu_metrics(gpus: Iterable[GpuMetrics]) -> Iterator[core.Metric]:
    jobs = core.GaugeMetricFamily(
        "podium_jobs", "Jobs that have not ended", labels=("gpu", "state")
    )
    waits = _by_gpu("podium_queue_wait_seconds", "For how long the oldest due job has been queued")
    slots = _by_gpu("podium_slots", "Evaluations that may run at once")
    lost = _by_gpu("podium_cards_out_of_service", "Cards that get no jobs until they work again")
    paused = _by_gpu("podium_pool_paused", "Whether an admin has paused the GPU type")
    for gpu, same in _by_label(gpus):
        jobs.add_metric((gpu, "queued"), sum(each.queued for each in same))
        jobs.add_metric((gpu, "running"), sum(each.running for each in same))
        waits.add_metric((gpu,), max(each.waits_s for each in same))
        slots.add_metric((gpu,), sum(each.slots for each in same))
        lost.add_metric((gpu,), sum(each.out_of_service for each in same))
        paused.add_metric((gpu,), int(all(each.paused for each in same)))
    yield from (jobs, waits, slots, lost, paused)


def _by_gpu(name: str, help_text: str) -> core.GaugeMetricFamily:
    return core.GaugeMetricFamily(name, help_text, labels=("gpu",))


def _by_label(gpus: Iterable[GpuMetrics]) -> Iterator[tuple[str, list[GpuMetrics]]]:
    """Yield each label with its GPU types: those beyond `MOST_GPUS` share the label `OTHER`."""
    groups: dict[str, list[GpuMetrics]] = defaultdict(list)
    for each in sorted(gpus, key=lambda one: (-one.slots, one.gpu)):
        known = each.gpu in groups or len(groups) < MOST_GPUS
        groups[each.gpu if known else OTHER].append(each)
    yield from sorted(groups.items())


def _evaluation_metrics(tallies: Sequence[Tally]) -> Iterator[core.Metric]:
    labels = _labels(tallies)
    evaluations = core.CounterMetricFamily(
        "podium_evaluations", "Evaluations by verdict", labels=("gpu", "mode", "verdict")
    )
    for (gpu, mode, verdict), count in sorted(_evaluations(tallies, labels).items()):
        evaluations.add_metric((gpu, mode, verdict), count)
    judged = core.HistogramMetricFamily(
        "podium_evaluation_seconds", "How long evaluations took", labels=("gpu",)
    )
    waited = core.HistogramMetricFamily(
        "podium_job_wait_seconds", "How long jobs were queued before they began", labels=("gpu",)
    )
    for gpu in sorted(set(labels.values())):
        same = [each for each in tallies if labels[each.gpu] == gpu]
        judged.add_metric(
            (gpu,), _buckets(each.judged for each in same), sum(each.judged_s for each in same)
        )
        waited.add_metric(
            (gpu,), _buckets(each.waited for each in same), sum(each.waited_s for each in same)
        )
    yield from (evaluations, judged, waited)


def _labels(tallies: Iterable[Tally]) -> dict[str, str]:
    """Return the label of each GPU type: those with the most evaluations get their own."""
    sizes = Counter[str]()
    for each in tallies:
        sizes[each.gpu] += each.evaluations
    labelled = {gpu for gpu, _ in sizes.most_common(MOST_GPUS)}
    return {gpu: gpu if gpu in labelled else OTHER for gpu in sizes}


def _evaluations(
    tallies: Iterable[Tally], labels: Mapping[str, str]
) -> Counter[tuple[str, str, str]]:
    counts = Counter[tuple[str, str, str]]()
    for each in tallies:
        counts[labels[each.gpu], each.mode, each.verdict] += each.evaluations
    return counts


def _buckets(counts: Iterable[Sequence[int]]) -> list[tuple[str, float]]:
    """Return cumulative buckets, as Prometheus expects."""
    sums = [sum(same) for same in zip(*counts, strict=True)]
    return list(zip(_EDGES, map(float, accumulate(sums)), strict=True))


def _lost_leases(metrics: Metrics) -> core.Metric:
    """Return the counter, 0 for GPU types without any: a rate misses a series that begins at 1."""
    leases = {**dict.fromkeys((each.gpu for each in metrics.gpus), 0), **metrics.lost_leases}
    counts = Counter[str]()
    for index, (gpu, jobs) in enumerate(sorted(leases.items(), key=lambda each: -each[1])):
        counts[gpu if index < MOST_GPUS else OTHER] += jobs
    help_text = "Leases that expired because their worker sent no heartbeat"
    lost = core.CounterMetricFamily("podium_lost_leases", help_text, labels=("gpu",))
    for gpu, jobs in sorted(counts.items()):
        lost.add_metric((gpu,), jobs)
    return lost
