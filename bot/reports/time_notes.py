"""What a report says of times on the CPU: the speedup, calls left out, and what is too noisy."""

from collections.abc import Iterator

from bot.domain.noise import too_noisy
from bot.domain.speedups import of_ratio, show
from bot.reports.blocks import Text, Tone
from runners.contract.comparison import NOISY_MOST
from runners.contract.evaluation import Evaluation


def time_notes(evaluation: Evaluation) -> Iterator[Text]:
    """Yield why a time is not ranked, the speedup over the reference, and the calls left out."""
    for line in noisy_lines(evaluation):
        yield Text(line, Tone.BAD)
    for line in _speed_ups(evaluation):
        yield Text(line, Tone.QUIET)


def noisy_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield why a passed ranked run on the CPU is not ranked, if its times are too noisy."""
    for case in too_noisy(evaluation):
        if (measured := case.measurement) is not None:
            yield (
                f"{case.spec}: too noisy here: ± {measured.half_width_ns / measured.time_ns:.0%},"
                f" and a rank needs ± {NOISY_MOST:.0%} or less. The result is kept and is no"
                " failure, but is not ranked; submit again when the runner's machine is less busy"
            )


def _speed_ups(evaluation: Evaluation) -> Iterator[str]:
    for case in evaluation.cases:
        measured = case.measurement
        if measured is not None and measured.vs_reference is not None:
            speedup = show(of_ratio(measured.vs_reference))
            yield f"{case.spec}: {speedup} vs reference, timed in turn with it"
        if measured is not None and measured.left_out:
            calls = measured.left_out + sum(map(len, measured.samples))
            yield (
                f"{case.spec}: {measured.left_out} of {calls} calls waited for other processes of"
                " the machine: they were checked, and do not count into the time"
            )
