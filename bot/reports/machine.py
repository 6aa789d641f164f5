"""Where an evaluation ran: machine, GPU, load and its effect on times, and the sandbox.

Also how far the kernels of a profile used the GPU.
"""

import re
from collections.abc import Iterator

from bot.domain.noise import too_noisy
from bot.domain.times import describe_speed_up, speed_up_of
from runners.contract.comparison import NOISY_MOST
from runners.contract.evaluation import Environment, Evaluation, Isolation


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


def noisy_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield why a passed ranked run on the CPU is not ranked, if its times are too noisy."""
    for case in too_noisy(evaluation):
        if (measured := case.measurement) is not None:
            yield (
                f"{case.spec}: too noisy here: ± {measured.half_width_ns / measured.time_ns:.0%},"
                f" and a rank needs ± {NOISY_MOST:.0%} or less. The result is kept and is no"
                " failure, but is not ranked; submit again when the runner's machine is less busy"
            )


def turn_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the speedup over a reference that ran in turn, and how many calls were left out."""
    for case in evaluation.cases:
        measured = case.measurement
        if measured is not None and measured.vs_reference is not None:
            speedup = describe_speed_up(speed_up_of(measured.vs_reference))
            yield f"{case.spec}: {speedup} vs reference, timed in turn with it"
        if measured is not None and measured.left_out:
            calls = measured.left_out + sum(map(len, measured.samples))
            yield (
                f"{case.spec}: {measured.left_out} of {calls} calls waited for a core of the"
                " machine: they were checked, but do not count towards the time"
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


def kernel_lines(log: str, most: int) -> Iterator[str]:
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
