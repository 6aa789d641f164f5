"""Runs the harness on the operator's own Ray cluster, in warm slots on its nodes.

Ray's client is imported only in a separate process (`driver`), never in this one.
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

    `slots` is GPU type -> number of concurrent evaluations; it is required, because a cluster has
    other users (RunnerError without). `version` is the harness version that its nodes must have.
    With `strict` the harness refuses to run if a sandbox layer is missing. ModuleNotFoundError
    without Ray.
    """
    if importlib.util.find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    if not slots:
        raise RunnerError("Ray has no slots; set PODIUM_RUNNERS to how many, as in ray:H100=4")
    return RayRunner(Bridge(), slots, version, strict=strict)
