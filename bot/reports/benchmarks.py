"""Computes what pages draw of benchmarks: samples, the times of other runs, and a roofline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.noise import too_noisy
from bot.domain.reference_times import OtherRun, OtherTimes, Times, Work
from bot.domain.scoring import ScoreValue, case_times, combine, judged
from bot.domain.tasks.grading import ranked_by
from bot.domain.times import show_factor, show_rate, show_score, speed_up_in_words
from bot.reports.figures import Histogram, Scale, histogram
from bot.reports.machine import medians_in_words
from runners.contract.comparison import SLOWER_MOST
from runners.contract.evaluation import CaseKind, Evaluation, Measurement, StopReason
from runners.contract.task import Mode, TaskDefinition
from runners.contract.verdict import Verdict

_SCALE_MARGIN = 1.15
"""The factor by which a scale extends beyond its outermost marks."""


_STOPPED = {
    StopReason.PRECISE: "then precise enough",
    StopReason.ROUND_CAP: "which is the maximum",
    StopReason.TIME_CAP: "until shortly before the time limit",
    StopReason.TASK: "as the task decides",
    StopReason.BUDGET: "in the seconds that a run on the CPU may take",
    StopReason.SLOW: f"as it is more than {SLOWER_MOST} times slower than the reference",
}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One timed case, and its time by the judge's own clock."""

    number: int
    spec: str
    measured: Measurement
    value: ScoreValue
    drawing: Histogram | None

    @property
    def stopped(self) -> str:
        """Return why there were no more rounds, in words."""
        return _STOPPED[self.measured.stop_reason]

    @property
    def medians(self) -> str:
        """Return the median of each of the first rounds, in words."""
        return medians_in_words(self.measured.samples)

    @property
    def speed_up(self) -> str:
        """Return how many times faster than the reference it is; empty if that is unknown."""
        return speed_up_in_words(self.measured)


def benchmarks_of(evaluation: Evaluation) -> tuple[Benchmark, ...]:
    """Return the timed cases, with the numbers of their report."""
    timed = [each for each in evaluation.cases if each.kind is CaseKind.BENCHMARK]
    return tuple(
        _benchmark(number, each.spec, each.measurement)
        for number, each in enumerate(timed, start=1)
        if each.measurement is not None
    )


def _benchmark(number: int, spec: str, measured: Measurement) -> Benchmark:
    samples = [each for taken in measured.samples for each in taken]
    value = judged(measured)
    marks = [("time", value.time_ns)]
    if value.claimed_ns is not None:
        marks.append(("claimed", value.claimed_ns))
    return Benchmark(number, spec, measured, value, histogram(samples, marks))


@dataclass(frozen=True, slots=True)
class OtherRunMark:
    """Another run's time, how many times faster this run is, and that time's position `at`."""

    time_ns: float
    factor: str
    at: float


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One benchmark: its time, other runs' times by name, and its percentage of speed of light."""

    number: int
    spec: str
    value: ScoreValue
    against: Mapping[str, OtherRunMark]
    share: float | None


@dataclass(frozen=True, slots=True)
class BenchmarkTable:
    """All benchmarks, the other runs, and the scale, with this run's position `here`."""

    rows: tuple[BenchmarkRow, ...]
    others: tuple[OtherRun, ...]
    here: float
    low: str
    high: str

    @property
    def has_shares(self) -> bool:
        """Whether the speed of light of a benchmark is known."""
        return any(each.share is not None for each in self.rows)


Timed = Sequence[tuple[int, str, ScoreValue]]
"""The number, the spec and the time of each benchmark."""


def benchmark_table(timed: Timed, found: OtherTimes) -> BenchmarkTable:
    """Return the table of the benchmarks, next to the other runs that have any of them."""
    specs, known = {spec for _, spec, _ in timed}, found.work or {}
    others = tuple(each for each in found.others if specs & each.times.keys())
    ratios = [
        other.times[spec].time_ns / value.time_ns
        for other in others
        for _, spec, value in timed
        if spec in other.times
    ]
    low, high = min([1.0, *ratios]) / _SCALE_MARGIN, max([1.0, *ratios]) * _SCALE_MARGIN
    scale = Scale(low, high, logarithmic=True)
    rows = tuple(
        BenchmarkRow(
            number,
            spec,
            value,
            {
                each.name: _against(value, each.times[spec], scale)
                for each in others
                if spec in each.times
            },
            _share(value, known.get(spec)),
        )
        for number, spec, value in timed
    )
    return BenchmarkTable(rows, others, scale(1.0), show_factor(low), show_factor(high))


def _against(value: ScoreValue, other: ScoreValue, scale: Scale) -> OtherRunMark:
    ratio = other.time_ns / value.time_ns
    return OtherRunMark(other.time_ns, show_factor(ratio), scale(ratio))


def _share(value: ScoreValue, work: Work | None) -> float | None:
    floor = None if work is None else work.floor_ns
    return None if floor is None else 100 * floor / value.time_ns


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """One benchmark on a roofline: its rates per second in words, and in percent of the card's."""

    number: int
    x: float
    y: float
    intensity: float
    operations: str
    bytes: str
    of_fp32: float
    of_memory: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roofs of a card and the benchmarks below them, in a picture of `WIDTH` by `HEIGHT`."""

    points: tuple[RoofPoint, ...]
    roofs: tuple[tuple[str, str], ...]
    """The CSS class and the SVG path of each roof: of the narrowest type, and of FP32."""
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    """The position and the text of each tick of both axes."""
    memory: str
    fp32: str
    fastest: str
    """The card's nominal rates: of its memory, in FP32, and in the narrowest type."""


WIDTH, HEIGHT = 360, 220
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 10, 16, 26


@dataclass(frozen=True, slots=True)
class _Plane:
    """Two logarithmic axes: operations per byte from `low`, operations per second from `least`."""

    low: float
    high: float
    least: float
    most: float

    def position(self, intensity: float, rate: float) -> tuple[float, float]:
        x = Scale(self.low, self.high, logarithmic=True)(intensity) / 100
        y = Scale(self.least, self.most, logarithmic=True)(rate) / 100
        width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        return round(_LEFT + width * x, 1), round(_TOP + height * (1 - y), 1)

    def roof(self, rate: float, bytes_per_s: float) -> str:
        left = max(self.low, self.least / bytes_per_s)
        ends = ((left, left * bytes_per_s), (rate / bytes_per_s, rate), (self.high, rate))
        return "M" + "L".join(f"{x} {y}" for x, y in (self.position(*each) for each in ends))


def roofline(timed: Timed, known: Mapping[str, Work] | None) -> Roofline | None:
    """Return the roofline of the benchmarks whose work is known; None if there are none."""
    found = [
        (number, value.time_ns / 1e9, work)
        for number, spec, value in timed
        if (work := (known or {}).get(spec)) is not None and work.flops > 0 and work.bytes > 0
    ]
    if not found:
        return None
    peak = found[0][2].peak
    ridges = [rate / peak.bytes_per_s for rate in (peak.fp32_per_s, peak.fastest_per_s)]
    plane = _Plane(
        *_decades(*ridges, *(work.flops / work.bytes for _, _, work in found)),
        *_decades(peak.fastest_per_s, *(work.flops / seconds for _, seconds, work in found)),
    )
    roofs = (("fastest", peak.fastest_per_s), ("fp32", peak.fp32_per_s))
    return Roofline(
        tuple(_roof_point(plane, *each) for each in found),
        tuple((name, plane.roof(rate, peak.bytes_per_s)) for name, rate in roofs),
        tuple(
            (plane.position(each, plane.least)[0], f"{each:g}")
            for each in _powers(plane.low, plane.high)
        ),
        tuple(
            (plane.position(plane.low, each)[1], show_rate(each))
            for each in _powers(plane.least, plane.most)
        ),
        *map(show_rate, (peak.bytes_per_s, peak.fp32_per_s, peak.fastest_per_s)),
    )


def _roof_point(plane: _Plane, number: int, seconds: float, work: Work) -> RoofPoint:
    intensity, rate, moved = work.flops / work.bytes, work.flops / seconds, work.bytes / seconds
    shares = (100 * rate / work.peak.fp32_per_s, 100 * moved / work.peak.bytes_per_s)
    words = (show_rate(rate), show_rate(moved))
    return RoofPoint(number, *plane.position(intensity, rate), intensity, *words, *shares)


def _decades(*values: float) -> tuple[float, float]:
    """Return the powers of ten around all values."""
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))


def _powers(low: float, high: float) -> Iterator[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    yield from (10.0**each for each in range(first, last + 1, 1 + (last - first) // 6))


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The benchmarks of one run, next to those of others, and their roofline."""

    benchmarks: tuple[Benchmark, ...]
    table: BenchmarkTable
    roofline: Roofline | None
    combined: str
    """By what the task ranks, and that time; empty for one benchmark."""


def benchmark_report(evaluation: Evaluation, found: OtherTimes) -> BenchmarkReport:
    """Return what is drawn of a run's benchmarks."""
    timed = benchmarks_of(evaluation)
    times = [(each.number, each.spec, each.value) for each in timed]
    others = tuple(
        each if each.submission else replace(each, times={**each.times, **_in_turn(timed)})
        for each in found.others
    )
    table = benchmark_table(times, replace(found, others=others))
    return BenchmarkReport(
        timed, table, roofline(times, found.work), _combined(evaluation, found.task)
    )


def _combined(evaluation: Evaluation, task: TaskDefinition | None) -> str:
    if task is None or evaluation.mode is not Mode.RANKED or not (words := ranked_by(task)):
        return ""
    times = case_times(task, evaluation)
    passed = evaluation.verdict is Verdict.PASSED and not too_noisy(evaluation)
    if not passed or len(times) != len(task.benchmarks):
        return words
    return f"{words}: {show_score(combine(task.ranking_by, times))}"


def _in_turn(timed: Sequence[Benchmark]) -> Times:
    """Return the reference's times, by benchmark, that follow from being timed in turn with it."""
    return {
        each.spec: replace(each.value, time_ns=each.value.time_ns / found.ratio)
        for each in timed
        if (found := each.measured.vs_reference) is not None
    }
