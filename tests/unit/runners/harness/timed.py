"""Rounds with raw numbers as a test wants them."""

from runners.harness.timing.rounds import Round

MS = 1e6


def make_round(
    window: float = 1.1 * MS,
    overheads_during: float = 0.1 * MS,
    claim: float = 1.0 * MS,
    overheads_before: float | None = None,
    noise: float = 0.0,
    own_overheads: float | None = None,
    *,
    claimed: bool = False,
    on_gpu: bool = True,
) -> Round:
    """A round; all calibrations are like the one beside its calls, unless they are given."""
    spread = [index * noise for index in (-2, -1, 0, 1, 2)]
    overheads_before = overheads_during if overheads_before is None else overheads_before
    own_overheads = overheads_before if own_overheads is None else own_overheads
    return Round(
        on_gpu=on_gpu,
        windows=[window + each for each in spread],
        claims=[claim + each for each in spread],
        overheads_during=[overheads_during + each for each in spread],
        overheads_before=[overheads_before + each for each in spread],
        own_overheads=[own_overheads + each for each in spread],
        claimed=claimed,
    )
