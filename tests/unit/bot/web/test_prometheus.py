"""Tests of what Prometheus is told, read back by its own parser."""

import math
from collections.abc import Sequence

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.domain.records import Tally
from bot.ports.outside import ServiceConnection
from bot.services.operations import MOST_GPUS, OTHER, GpuMetrics, Metrics
from bot.web.prometheus import exposition
from tests.doubles.memory_store.statistics import counted

Samples = dict[tuple[str, ...], float]


def tally(gpu: str, seconds: Sequence[float], mode: str = "ranked") -> Tally:
    counts = counted(seconds)
    return Tally(gpu, mode, "passed", len(seconds), sum(seconds), 2.0, counts, counts)


def read(metrics: Metrics | None, lines: Sequence[ServiceConnection] = ()) -> Samples:
    """Every sample by its name and its labels' values."""
    text = exposition(metrics, lines).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_pools_evaluations_and_leases_are_told() -> None:
    pool = GpuMetrics(
        "H100", queued=3, running=2, waits_s=1.5, slots=8, out_of_service=1, paused=True
    )
    tallies = (tally("H100", [0.05, 0.3]), tally("H100", [7.0], "test"))
    pools = (pool, GpuMetrics("L4"))
    found = read(Metrics(pools, tallies, {"H100": 4}, workers=2, paused=False))
    assert found["podium_jobs", "H100", "queued"] == 3
    assert found["podium_jobs", "H100", "running"] == 2
    assert found["podium_queue_wait_seconds", "H100"] == 1.5
    assert found["podium_slots", "H100"] == 8
    assert found["podium_cards_out_of_service", "H100"] == 1
    assert found["podium_pool_paused", "H100"] == 1
    assert found["podium_evaluations_total", "H100", "ranked", "passed"] == 2
    assert found["podium_evaluation_seconds_bucket", "H100", "0.5"] == 2
    assert found["podium_evaluation_seconds_bucket", "H100", "10.0"] == 3
    assert found["podium_evaluation_seconds_count", "H100"] == 3
    assert found["podium_evaluation_seconds_sum", "H100"] == pytest.approx(7.35)
    assert found["podium_job_wait_seconds_sum", "H100"] == 4
    assert found["podium_lost_leases_total", "H100"] == 4
    assert found["podium_lost_leases_total", "L4"] == 0  # so that the first one is a rate
    assert (found["podium_workers",], found["podium_database_up",]) == (2, 1)


def test_while_the_database_is_away_the_rest_is_told() -> None:
    found = read(None, [ServiceConnection("discord", lambda: 0.08)])
    assert found["podium_database_up",] == 0
    assert found["podium_discord_connected",] == 1
    assert found["podium_discord_latency_seconds",] == 0.08
    assert found["process_resident_memory_bytes",] > 0
    assert ("podium_workers",) not in found


@pytest.mark.parametrize(("latency_s", "connected"), [(None, 0), (math.inf, 1)])
def test_a_latency_that_nobody_measured_is_not_told(
    latency_s: float | None, connected: int
) -> None:
    found = read(None, [ServiceConnection("discord", lambda: latency_s)])
    assert found["podium_discord_connected",] == connected
    assert ("podium_discord_latency_seconds",) not in found


def test_however_many_gpu_types_there_are_the_labels_are_so_many() -> None:
    names = [f"gpu{number}" for number in range(MOST_GPUS + 50)]
    pools = tuple(GpuMetrics(name, queued=1, slots=place) for place, name in enumerate(names))
    tallies = tuple(tally(name, [1.0] * (place + 1)) for place, name in enumerate(names))
    leases = {name: place for place, name in enumerate(names)}
    found = read(Metrics(pools, tallies, leases, workers=1, paused=False))
    for family in ("podium_jobs", "podium_evaluation_seconds_count", "podium_lost_leases_total"):
        labels = {key[1] for key in found if key[0] == family}
        assert len(labels) == MOST_GPUS + 1
        assert OTHER in labels
        assert names[-1] in labels
    assert found["podium_jobs", OTHER, "queued"] == 50
    assert sum(v for k, v in found.items() if k[0] == "podium_evaluations_total") == sum(
        range(1, MOST_GPUS + 51)
    )
