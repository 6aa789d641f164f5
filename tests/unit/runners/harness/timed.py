"""Rounds with raw numbers as a test wants them."""

from runners.harness.timing.rounds import Round

MS = 1e6


def make_round(
    window: float = 1.1 * MS,
    beside: float = 0.1 * MS,
    claim: float = 1.0 * MS,
    steady: float | None = None,
    noise: float = 0.0,
    own: float | None = None,
    *,
    claimed: bool = False,
    on_gpu: bool = True,
) -> Round:
    """A round; all calibrations are like the one beside its calls, unless they are given."""
    spread = [index * noise for index in (-2, -1, 0, 1, 2)]
    steady = beside if steady is None else steady
    own = steady if own is None else own
    return Round(
        on_gpu=on_gpu,
        windows=[window + each for each in spread],
        claims=[claim + each for each in spread],
        beside=[beside + each for each in spread],
        steady=[steady + each for each in spread],
        own=[own + each for each in spread],
        claimed=claimed,
    )
