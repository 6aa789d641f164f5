"""A slot of the cluster, at a bridge that answers as it is told."""

import asyncio

import pytest
from typing_extensions import override

from runners.backends.ray_cluster.bridge import Bridge, ClusterUnavailableError
from runners.backends.ray_cluster.protocol import Command
from runners.backends.ray_cluster.runner import RemoteHarness
from runners.contract.runner import RunnerError, RunnerLostError


class Away(Bridge):
    """To a cluster out of reach, which is said after a while."""

    def __init__(self, after_s: float) -> None:
        super().__init__()
        self.after_s = after_s

    @override
    async def request(self, command: Command) -> str:
        await asyncio.sleep(self.after_s)
        raise ClusterUnavailableError("Ray: the actor is unavailable")


async def test_a_node_that_is_lost_before_its_slot_was_ready_costs_no_try() -> None:
    with pytest.raises(RunnerLostError, match="unavailable"):
        await RemoteHarness(Away(0), "slot").offer(within_s=60)


async def test_a_cluster_that_never_had_a_place_is_a_failure() -> None:
    with pytest.raises(RunnerError, match="no node had a slot ready") as caught:
        await RemoteHarness(Away(0.05), "slot").offer(within_s=0.01)
    assert not isinstance(caught.value, RunnerLostError)
