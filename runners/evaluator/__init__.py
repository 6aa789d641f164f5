"""The library for training loops: one awaitable call evaluates kernels on any runner."""

from runners.evaluator.config import EvaluatorConfig, InfrastructureError
from runners.evaluator.evaluator import BatchProgress, KernelEvaluator
from runners.evaluator.result import KernelResult, fast_p, geometric_mean, pass_at_k

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
