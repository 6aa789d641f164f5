"""The evaluator: evaluates each job once and returns its result."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.runner import Runner
from runners.evaluator.config import ErrorKind, EvaluatorConfig, InfrastructureError, JobError
from runners.evaluator.job import (
    KernelJob,
    baseline_job,
    baseline_request,
    cache_key,
    kernel_request,
    read_job,
)
from runners.evaluator.pool import DeduplicatingCache, EvaluatorPool, run_evaluation
from runners.evaluator.result import Baseline, KernelResult, baseline_of, no_result, result_of

_BASELINES = 4096
"""The most references whose times are cached."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The progress of a batch after one more job is done."""

    done: int
    total: int
    index: int
    """Its index in the batch."""
    result: KernelResult


class KernelEvaluator:
    """Evaluates KernelBench kernels on a runner, in one event loop; close it with `aclose`.

    It can replace the Modal evaluator of a training environment: it has a settable `config` and the
    two methods that such an environment calls.
    """

    def __init__(self, config: EvaluatorConfig | None = None, runner: Runner | None = None) -> None:
        self._config = config or EvaluatorConfig()
        self._pool = EvaluatorPool(runner)
        self._results = DeduplicatingCache[KernelResult](_is_cacheable)
        self._baselines = DeduplicatingCache[Baseline](lambda it: it.kind is not _INFRASTRUCTURE)

    @property
    def config(self) -> EvaluatorConfig:
        """The settings of future evaluations."""
        return self._config

    @config.setter
    def config(self, other: object) -> None:
        self._config = self._config.updated(other)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the runner unless the caller passed it in; no evaluation can start any more."""
        await self._pool.aclose()

    async def evaluate_single(  # noqa: PLR0913, PLR0917 - the environment's own signature
        self,
        ref_code: str,
        kernel_code: str,
        backend: str = "triton",
        num_correct_trials: int = 5,
        measure_performance: bool = False,  # noqa: FBT001, FBT002 - as above
        num_perf_trials: int = 100,
        precision: str = "fp32",
    ) -> KernelResult:
        """Evaluate one kernel.

        InfrastructureError or JobError if there is no evaluation and `return_exceptions` is off.
        """
        job = {
            "ref_code": ref_code,
            "kernel_code": kernel_code,
            "backend": backend,
            "num_correct_trials": num_correct_trials,
            "measure_performance": measure_performance,
            "num_perf_trials": num_perf_trials,
            "precision": precision,
        }
        return await self._evaluate(self._config, job)

    evaluate_single_batched = evaluate_single

    async def evaluate_batch(
        self,
        jobs: Sequence[Mapping[str, Any]],
        *,
        progress: Callable[[BatchProgress], None] | None = None,
    ) -> list[KernelResult]:
        """Evaluate many kernels at once; results are in the order of the jobs.

        With `return_exceptions` off, the first InfrastructureError or JobError stops the batch and
        is raised.
        """
        config, done = self._config, 0

        async def evaluate(index: int, job: Mapping[str, Any]) -> KernelResult:
            nonlocal done
            result = await self._evaluate(config, job)
            done += 1
            if progress is not None:
                progress(BatchProgress(done, len(jobs), index, result))
            return result

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(evaluate(*each)) for each in enumerate(jobs)]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return [task.result() for task in tasks]

    async def _evaluate(self, config: EvaluatorConfig, raw: Mapping[str, Any]) -> KernelResult:
        """Return the result; with `return_exceptions` on, an error becomes a result too."""
        started = time.perf_counter()
        try:
            job = read_job(raw)
            result, was_cached = await self._cached(config, job)
        except (InfrastructureError, JobError) as error:
            if not config.return_exceptions:
                raise
            kind = ErrorKind.REQUEST if isinstance(error, JobError) else _INFRASTRUCTURE
            trials = raw.get("num_correct_trials", 0)
            total = trials if isinstance(trials, int) else 0
            result = no_result(raw.get("kernel_code"), total, kind, error)
            was_cached = False
        metadata = result["metadata"]
        metadata["cache_hit"] = was_cached
        metadata.setdefault("timings", {})["total_eval_s"] = time.perf_counter() - started
        return result

    async def _cached(self, config: EvaluatorConfig, job: KernelJob) -> tuple[KernelResult, bool]:
        gpu, harness = await self._pool.offer(config)
        key = cache_key(config, job, gpu, harness)
        result, was_cached = await self._results.get(
            key, lambda: self._evaluate_job(config, job), config.cache_size
        )
        if not config.return_exceptions and result["metadata"]["error_kind"] == _INFRASTRUCTURE:
            raise InfrastructureError(result["error_message"])
        return deepcopy(result), was_cached

    async def _evaluate_job(self, config: EvaluatorConfig, job: KernelJob) -> KernelResult:
        """The result of the kernel's evaluation, and of the reference's if times are requested."""
        gpu, _ = await self._pool.offer(config)
        request = kernel_request(config, job, gpu)
        if not job.measure_performance:
            return result_of(job, await self._run(config, request), None)
        try:
            async with asyncio.TaskGroup() as group:
                baseline = group.create_task(self._baseline(config, job))
                judged = group.create_task(self._run(config, request))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return result_of(job, judged.result(), baseline.result())

    async def _baseline(self, config: EvaluatorConfig, job: KernelJob) -> Baseline:
        """The reference's time, measured once for all kernels of a problem."""
        gpu, harness = await self._pool.offer(config)
        key = cache_key(config, baseline_job(job), gpu, harness)

        async def measure() -> Baseline:
            try:
                return baseline_of(await self._run(config, baseline_request(config, job, gpu)))
            except InfrastructureError as error:
                return Baseline(None, f"the reference could not be timed: {error}", _INFRASTRUCTURE)

        baseline, _ = await self._baselines.get(key, measure, _BASELINES)
        return baseline

    async def _run(self, config: EvaluatorConfig, request: EvaluationRequest) -> Evaluation:
        async with self._pool.slot(config) as runner:
            return await run_evaluation(runner, request, config.attempts)


_INFRASTRUCTURE = ErrorKind.INFRASTRUCTURE


def _is_cacheable(result: KernelResult) -> bool:
    """Whether a result would be the same if the kernel were evaluated again."""
    return bool(result["metadata"]["error_kind"] != _INFRASTRUCTURE)
