"""Where an evaluation ran: machine, GPU, load and its effect on times, and the sandbox.

Also its raw runs, what the compiler reported, and how far the kernels of a profile used the GPU.
"""

import math
import re
from collections.abc import Iterator, Sequence
from statistics import median

from bot.domain.noise import noise_of, too_noisy
from bot.domain.status import numbered
from bot.domain.times import show_time, speed_up_in_words
from runners.contract.comparison import NOISY_MOST, is_unseen
from runners.contract.evaluation import CaseResult, Environment, Evaluation, Isolation, Measurement
from runners.contract.launch import Compiled

_TOLD_SLOWDOWN = 0.05
"""A machine that was at most this much slower or faster than usual is not mentioned."""
SHOWN = 8
"""The most rounds whose medians, and kernels whose occupancy, are shown."""


def machine_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the machine, the state of the GPU if it is known, and the sandbox, a line each."""
    yield machine_line(evaluation.environment)
    if evaluation.environment.clocks:
        yield gpu_state_line(evaluation.environment.clocks)
    yield isolation_line(evaluation.isolation)


def machine_line(environment: Environment) -> str:
    """Return the machine and its software in one line."""
    parts = [environment.gpu if environment.gpu != "CPU" else "", environment.cpu]
    parts += [f"{environment.cores} cores", environment.platform, f"Python {environment.python}"]
    parts += [f"torch {environment.torch}"] if environment.torch else []
    parts += [f"driver {environment.driver}"] if environment.driver else []
    parts += [f"input transfer: {environment.transport}"] if environment.transport != "none" else []
    parts += [f"harness {environment.harness_version}"]
    return "machine: " + ", ".join(part for part in parts if part)


def isolation_line(isolation: Isolation) -> str:
    """Return the present and the missing layers of the sandbox."""
    layers = ", ".join(isolation.layers) or "no isolation layer"
    line = f"sandbox: {isolation.outer}; {layers}"
    if not isolation.missing:
        return line
    missing = "; ".join(f"{layer}: {reason}" for layer, reason in isolation.missing.items())
    return f"{line}; missing: {missing}"


def gpu_state_line(clocks: dict[str, float]) -> str:
    """Return the clocks, power and temperature of `Environment.clocks` in one line."""
    parts = [f"{clocks['sm_mhz']:,.0f} MHz"] if "sm_mhz" in clocks else []
    parts += [f"memory {clocks['memory_mhz']:,.0f} MHz"] if "memory_mhz" in clocks else []
    if "power_w" in clocks:
        limit = f" of {clocks['power_limit_w']:.0f}" if "power_limit_w" in clocks else ""
        parts.append(f"{clocks['power_w']:.0f}{limit} W")
    parts += ["slowed by its power limit"] if clocks.get("power_capped") else []
    parts += [f"{clocks['temperature_c']:.0f} °C"] if "temperature_c" in clocks else []
    return f"GPU state: {', '.join(parts)}"


_REFERENCE_MISSED = (
    "the reference was timed in too few rounds to compare with it, which a rank needs: the kernel "
    "left it too little time, the runner's machine was busy, or the reference is too short to be "
    "timed. The result is kept and is no failure, but is not ranked; make imports and calls "
    "shorter, or submit again"
)
Noted = tuple[int, str, str]
"""The number and the spec of a benchmark, and what a note says about it."""


def combined_line(found: Sequence[Noted], words: str, several: str = "") -> Iterator[str]:
    """Yield one line with the notes on all of these benchmarks; nothing for none.

    The notes replace `{}` in `words`; those on several benchmarks in `several`, if it is given.
    """
    if len(found) == 1:
        _, spec, value = found[0]
        yield f"{spec}: {words.replace('{}', value)}"
    elif found:
        each = "; ".join(f"benchmark {number} {value}".rstrip() for number, _, value in found)
        yield (several or words).replace("{}", each)


def measured_cases(evaluation: Evaluation) -> Iterator[tuple[int, CaseResult, Measurement]]:
    """Yield the number, the case and the measurement of each benchmark that was timed."""
    for number, case in numbered(evaluation.cases):
        if case.measurement is not None:
            yield number, case, case.measurement


def _variation(share: float) -> str:
    """Return a share in percent, rounded up: 15.2 % is not the 15 % that rank."""
    return f"varies by {math.ceil(100 * share - 1e-9)}%"


def _unseen(measured: Measurement) -> str:
    """Return how much longer the kernel may have taken than the time says."""
    time, most = show_time(measured.time_ns), show_time(measured.resolution_ns)
    return f"the judge's clock measured {time}, and may have missed {most}"


def run_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the raw runs of each benchmark: number, spread, and the median of each round."""
    for case in evaluation.cases:
        rounds = () if case.measurement is None else case.measurement.samples
        every = sorted(sample for each in rounds for sample in each)
        if every:
            claimed = case.measurement is not None and case.measurement.claimed_ns is not None
            clock = " by the submission's own clock" if claimed else ""
            yield (
                f"{case.spec}: {len(every)} runs{clock}, {show_time(max(0.0, every[0]))} to"
                f" {show_time(max(0.0, every[-1]))}; median per round: {medians_in_words(rounds)}"
            )


def medians_in_words(rounds: Sequence[Sequence[float]]) -> str:
    """Return the medians of the first rounds, and how many more there are."""
    medians = [show_time(max(0.0, median(each))) for each in rounds if each]
    more = f" and {len(medians) - SHOWN} more" if len(medians) > SHOWN else ""
    return f"{', '.join(medians[:SHOWN])}{more}"


def noisy_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield why a passed ranked run on the CPU is not ranked, if its times are too noisy."""
    noisy = too_noisy(evaluation)
    found = [each for each in measured_cases(evaluation) if each[1] in noisy]
    rest = [each for each in found if not each[2].reference_missed]
    seen: list[tuple[int, CaseResult, Measurement]] = []
    unseen: list[tuple[int, CaseResult, Measurement]] = []
    for each in rest:
        hidden = is_unseen(each[2].time_ns, each[2].resolution_ns)
        (unseen if hidden else seen).append(each)
    yield from combined_line(
        [(number, case.spec, "") for number, case, each in found if each.reference_missed],
        _REFERENCE_MISSED,
        f"{{}}: {_REFERENCE_MISSED}",
    )
    yield from combined_line(
        [(number, case.spec, _unseen(each)) for number, case, each in unseen],
        "too short here: {}. The result is kept and is no failure, but is not ranked; submit "
        "again, best when the runner's machine is less busy",
    )
    yield from combined_line(
        [(number, case.spec, _variation(noise_of(measured))) for number, case, measured in seen],
        f"too noisy here: {{}}, and a rank needs {NOISY_MOST:.0%} or less. The result is kept and "
        "is no failure, but is not ranked; submit again, best when the runner's machine is less "
        "busy",
    )


def turn_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the speedup over a reference that ran in turn, and how many calls were left out."""
    timed = list(measured_cases(evaluation))
    ranks = any(each.slowdown is not None for _, _, each in timed)
    by_ratio = "; on the CPU this decides the rank" if ranks else ""
    yield from combined_line(
        [
            (number, case.spec, faster)
            for number, case, measured in timed
            if (faster := speed_up_in_words(measured))
        ],
        f"{{}} vs reference, timed in turn with it{by_ratio}",
        f"vs reference, timed in turn with it: {{}}{by_ratio}",
    )
    yield from combined_line(
        [
            (number, case.spec, f"{each.slowdown:.2g} times")
            for number, case, each in timed
            if each.slowdown is not None and abs(each.slowdown - 1) >= _TOLD_SLOWDOWN
        ],
        "the reference took {} as long as usual on this board; the time is divided by that",
        "the reference did not take as long as usual on this board: {}; times are divided by it",
    )
    checked = "they were checked, but do not count towards the time"
    yield from combined_line(
        [
            (number, case.spec, f"{each.left_out} of {each.left_out + sum(map(len, each.samples))}")
            for number, case, each in timed
            if each.left_out
        ],
        f"{{}} calls waited for a core of the machine: {checked}",
        f"calls that waited for a core of the machine: {{}}; {checked}",
    )


def compiled_line(compiled: Compiled) -> str:
    """Return what the compiler reported about a kernel of device code, in one line."""
    stores, loads = compiled.spill_stores, compiled.spill_loads
    spills = (
        f"{stores} bytes stored and {loads} loaded in spills" if stores or loads else "no spills"
    )
    constant = "" if compiled.constant is None else f", {compiled.constant} of constant"
    return (
        f"kernel: {compiled.registers} registers, {spills}, {compiled.shared} bytes of static "
        f"shared memory, {compiled.stack} of local{constant}"
    )


_KERNEL = re.compile(
    r"^  (?P<name>\S.*?) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context \d+, Stream "
)
"""Matches the start of a kernel's tables, see `runners.harness.profile.kernel_profile`."""
_PERCENT = re.compile(
    r"^\s+(?P<what>Achieved Occupancy|Theoretical Occupancy|DRAM Throughput)"
    r"\s+%\s+(?P<share>\d+(?:\.\d+)?)\s*$"
)
_NAME_MOST = 80


def kernel_lines(log: str, most: int = SHOWN) -> Iterator[str]:
    """Yield a line for each of the first `most` kernels whose occupancy is in a profile's log."""
    kernels: list[tuple[str, dict[str, str]]] = []
    for line in log.splitlines():
        if head := _KERNEL.match(line):
            kernels.append((head["name"][:_NAME_MOST], {}))
        elif kernels and (percentage := _PERCENT.match(line)):
            kernels[-1][1].setdefault(percentage["what"], percentage["share"])
    kernels = [each for each in kernels if "Achieved Occupancy" in each[1]]
    for name, shares in kernels[:most]:
        yield f"{name}: {_show_shares(shares)}"
    if len(kernels) > most:
        yield f"occupancy: and {len(kernels) - most} more"


def _show_shares(shares: dict[str, str]) -> str:
    words = f"occupancy {shares['Achieved Occupancy']} %"
    if "Theoretical Occupancy" in shares:
        words += f" of at most {shares['Theoretical Occupancy']} %"
    if "DRAM Throughput" in shares:
        words += f", {shares['DRAM Throughput']} % of the memory bandwidth"
    return words
