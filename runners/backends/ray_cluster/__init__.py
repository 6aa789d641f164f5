"""Runs the harness on the GPUs of a Ray cluster of one's own: warm slots on its nodes.

Ray's client is imported in a process of its own (`driver`), never in this one.
"""

import importlib.util
from collections.abc import Mapping

from runners.backends.ray_cluster.bridge import Bridge
from runners.backends.ray_cluster.runner import RayRunner
from runners.contract.runner import Runner, RunnerError


def create(
    *, slots: Mapping[str, int] | None = None, version: str | None = None, strict: bool = False
) -> Runner:
    """A runner over the cluster at RAY_ADDRESS.

    `slots` says how many evaluations may run at once by GPU type: a cluster has other users.
    `version` is the harness version that its nodes must have; `strict` has a harness refuse to run
    where a layer of the sandbox is missing. ModuleNotFoundError without Ray.
    """
    if importlib.util.find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    if not slots:
        raise RunnerError("Ray has no slots; set PODIUM_RUNNERS to how many, as in ray:H100=4")
    return RayRunner(Bridge(), slots, version, strict=strict)
