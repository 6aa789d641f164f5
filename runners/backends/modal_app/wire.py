"""What travels to a container and back, as JSON."""

from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.runner import Capabilities
from runners.contract.wire import Wire

ANSWER_MAX = 16 << 20
"""Bytes of the longest answer that is taken."""


class Order(Wire):
    """What a container is to do: evaluate a request, or only say what it offers."""

    request: EvaluationRequest | None = None
    gpus: int = 0
    """How many GPUs the container was asked to have."""
    limit_s: float = 0.0
    """After how long its harness counts as hanging, once it was ready."""
    asked_at: float
    """When Modal was asked, in seconds since 1970."""


class Answer(Wire):
    """What came of an order; times in seconds."""

    ready: Capabilities | None = None
    evaluation: Evaluation | None = None
    error: str | None = None
    """Why there is no evaluation, where the fault is ours."""
    cold: bool
    """Whether the container was begun for this order."""
    waited_s: float
    """Between the asking and the container's taking it: the queue, and a cold start."""
    ready_s: float = 0.0
    """What the harness took to be ready."""
    used_s: float
    """For how long the container worked on it."""
