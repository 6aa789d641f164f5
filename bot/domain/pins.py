"""Pins: the GPU types of a board whose ranked jobs only one pool of machines times."""

import re
from collections.abc import Iterable

from bot.domain.errors import UserError
from runners.contract.gpus import gpu_types

Pins = tuple[tuple[str, str], ...]
"""Pairs of a GPU type, listed once, and a pool as in `bot.domain.scoring.pool_of`."""

ANY = "any"
"""Stands for a pool and means that every pool may time the ranked jobs."""
ALL = "*"
"""Stands for a GPU type and means every GPU type of the board."""
MOST_CHARACTERS = 80
_POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*( [A-Za-z0-9][A-Za-z0-9._-]*)?")


def parse_pins(texts: Iterable[str]) -> Pins:
    """Parse changes such as `modal` or `A100=box, H100=any`, in order; `*` stands for all types.

    UserError `bad-pool` for anything else.
    """
    parts = (part.strip() for text in texts for part in text.split(","))
    return tuple(_parsed(part) for part in parts if part)


def _parsed(part: str) -> tuple[str, str]:
    gpu, equals, pool = (each.strip() for each in part.rpartition("="))
    if (equals and not gpu) or not _POOL.fullmatch(pool) or len(pool) > MOST_CHARACTERS:
        raise UserError(
            "bad-pool",
            f"{part[:100]!r} is not a pool; write a pool such as modal, or one for a GPU type "
            f"such as A100=local; {ANY} removes the restriction",
        )
    if not equals or gpu == ALL:
        return ALL, pool.lower()
    (name,) = gpu_types((gpu,))
    return name, pool.lower()


def pinned(present: Pins, changes: Pins, gpus: tuple[str, ...]) -> Pins:
    """Return the pins of a board with these GPU types after the changes, by GPU type.

    UserError `bad-pool` for a GPU type that the board does not have.
    """
    pins = dict(present)
    for gpu, pool in changes:
        if gpu not in (ALL, *gpus):
            raise UserError(
                "bad-pool",
                f"a pool is set for {gpu}, but the leaderboard only has {', '.join(gpus)}",
            )
        pins |= dict.fromkeys(gpus if gpu == ALL else (gpu,), pool)
    return tuple(sorted((gpu, pool) for gpu, pool in pins.items() if gpu in gpus and pool != ANY))


def show_pins(pins: Pins) -> str:
    """Return the pins in the format of `parse_pins`; empty when there are none."""
    return ", ".join(f"{gpu}={pool}" for gpu, pool in pins)


def awaited_words(gpu: str, pool: str) -> str:
    """Return in words what a job waits for: its GPU type, and its pool unless that is empty."""
    return f"{gpu} of pool {pool}" if pool else gpu
