"""Times as people read them: the best unit, two to four significant digits, the interval."""

import math
from collections.abc import Sequence

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_DIGITS = 4


def show_time(time_ns: float, half_width_ns: float | None = None) -> str:
    """A measured time such as `29.14 us ± 0.06`; the half-width is never rounded down."""
    scale, unit = _unit(time_ns)
    value = time_ns / scale
    if half_width_ns is None:
        return f"{value:.{_decimals(value, 3)}f} {unit}"
    half = half_width_ns / scale
    decimals = _decimals_for(value, half)
    return f"{value:.{decimals}f} {unit} ± {_round_up(half, decimals):.{decimals}f}"


def show_factor(factor: float) -> str:
    """How many times faster, with two significant digits at least, such as `3.2x` or `0.45x`."""
    return f"{factor:.{min(_decimals(factor, 2), 3)}f}x"


def common_unit(times_ns: Sequence[float]) -> tuple[float, str]:
    """Nanoseconds in the unit that suits the smallest of these times, and the unit's name."""
    return _unit(min(times_ns, default=1.0))


def _unit(time_ns: float) -> tuple[float, str]:
    for scale, unit in _UNITS:
        # 999.96 us would be shown as 1000 us, so the larger unit begins a little below 1.
        if time_ns >= 0.99995 * scale:
            return scale, unit
    return _UNITS[-1]


def _decimals(value: float, digits: int) -> int:
    """How many decimals show `value` with this many significant digits, six at most."""
    if value <= 0:
        return 0
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return min(6, max(0, digits - 1 - exponent))


def _decimals_for(value: float, half: float) -> int:
    """Four digits of the value, fewer (at least two) where the interval makes them noise."""
    decimals = _decimals(value, _DIGITS)
    fewest = _decimals(value, 2)
    while decimals > fewest and half >= 10 ** (2 - decimals):
        decimals -= 1
    return decimals


def _round_up(half: float, decimals: int) -> float:
    step = 10.0**decimals
    return math.ceil(half * step - 1e-9) / step


def show_span(seconds: float) -> str:
    """A waiting time in words that promise no more precision than there is, such as `2 min`."""
    if seconds < 0.95:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"
