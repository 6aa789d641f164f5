"""Fewer rounds than a mode asks for, where a quick look is worth more than a narrow interval."""

from runners.contract.evaluation import BENCHMARK_ROUNDS, RANKED_ROUNDS, RoundPolicy
from runners.contract.task import Mode


def cap_rounds(mode: Mode, most: int) -> RoundPolicy:
    """The policy of a mode with at most so many rounds."""
    usual = RANKED_ROUNDS if mode is Mode.RANKED else BENCHMARK_ROUNDS
    looks = tuple(look for look in usual.looks if look <= most) or (most,)
    return usual.model_copy(update={"looks": looks})
