"""Tests of capping rounds."""

import pytest

from bot.app.context import cap_rounds
from runners.contract.evaluation import HOST_ROUNDS
from runners.contract.task import Mode


@pytest.mark.parametrize(
    ("most", "looks"),
    [(1, (1,)), (3, (3,)), (5, (5,)), (8, (5, 8)), (9, (5, 8, 9)), (40, HOST_ROUNDS.looks)],
)
def test_looks_beyond_the_cap_are_left_out(most: int, looks: tuple[int, ...]) -> None:
    assert cap_rounds(Mode.RANKED, most).looks == looks


def test_the_rest_of_the_policy_is_the_modes_own() -> None:
    assert cap_rounds(Mode.RANKED, 3).samples == HOST_ROUNDS.samples
    assert cap_rounds(Mode.TEST, 3).samples == 15
