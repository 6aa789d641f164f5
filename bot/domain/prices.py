"""The price of a second on a GPU, set by the owner of an installation."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from bot.domain.status import JobStatus, SubmissionStatus
from runners.contract.gpus import gpu_types

Prices = Mapping[str, float]
"""The price of one second on one GPU, by GPU type, in the owner's currency."""
NO_PRICES: Prices = MappingProxyType({})


def parse_prices(texts: Iterable[str]) -> dict[str, float]:
    """Parse prices such as `A100=0.000583`; ValueError for anything else."""
    prices: dict[str, float] = {}
    for text in texts:
        gpu, _, price = (each.strip() for each in text.partition("="))
        try:
            value = float(price)
        except ValueError:
            value = math.nan
        if not gpu or not 0 <= value < math.inf:
            raise ValueError(f"{text!r} is not a price per GPU second; write it as A100=0.000583")
        prices |= dict.fromkeys(gpu_types((gpu,)), value)
    return prices


def cost(prices: Prices, gpu: str, seconds: float) -> float | None:
    """Return the cost of GPU seconds; None without a known price."""
    price = prices.get(gpu)
    return None if price is None else price * seconds


def show_cost(value: float | None) -> str:
    """Return a cost with four significant digits; a dash for None."""
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def with_costs(found: SubmissionStatus, prices: Prices) -> SubmissionStatus:
    """Return the status with the cost of each job that has an evaluation."""
    return replace(found, jobs=tuple(_with_cost(each, prices) for each in found.jobs))


def _with_cost(job: JobStatus, prices: Prices) -> JobStatus:
    if job.evaluation is None:
        return job
    return replace(job, cost=cost(prices, job.job.gpu, job.evaluation.gpu_s))
