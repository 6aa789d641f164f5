"""The library door: kernels evaluated by one awaitable call, for a trainer, over any runner."""

from runners.evaluator.config import EvaluatorConfig
from runners.evaluator.evaluator import BatchProgress, KernelEvaluator
from runners.evaluator.failures import InfrastructureError
from runners.evaluator.metrics import fast_p, geometric_mean, pass_at_k
from runners.evaluator.result import KernelResult

__all__ = [
    "BatchProgress",
    "EvaluatorConfig",
    "InfrastructureError",
    "KernelEvaluator",
    "KernelResult",
    "fast_p",
    "geometric_mean",
    "pass_at_k",
]
