"""The evaluator: takes jobs and returns each result as soon as it is there."""

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
    digest,
    kernel_request,
    read_job,
)
from runners.evaluator.pool import EvaluatorPool, Shared, evaluation
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
        self._results = Shared[KernelResult](_is_cacheable)
        self._baselines = Shared[Baseline](lambda found: found.kind is not _INFRASTRUCTURE)

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

        async def one(index: int, job: Mapping[str, Any]) -> KernelResult:
            nonlocal done
            result = await self._evaluate(config, job)
            done += 1
            if progress is not None:
                progress(BatchProgress(done, len(jobs), index, result))
            return result

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(*each)) for each in enumerate(jobs)]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return [task.result() for task in tasks]

    async def _evaluate(self, config: EvaluatorConfig, raw: Mapping[str, Any]) -> KernelResult:
        """Return the result; with `return_exceptions` on, an error becomes a result too."""
        begin = time.perf_counter()
        try:
            job = read_job(raw)
            result, known = await self._cached(config, job)
        except (InfrastructureError, JobError) as error:
            if not config.return_exceptions:
                raise
            kind = ErrorKind.REQUEST if isinstance(error, JobError) else _INFRASTRUCTURE
            trials = raw.get("num_correct_trials", 0)
            total = trials if isinstance(trials, int) else 0
            result = no_result(raw.get("kernel_code"), total, kind, error)
            known = False
        metadata = result["metadata"]
        metadata["cache_hit"] = known
        metadata.setdefault("timings", {})["total_eval_s"] = time.perf_counter() - begin
        return result

    async def _cached(self, config: EvaluatorConfig, job: KernelJob) -> tuple[KernelResult, bool]:
        gpu, harness = await self._pool.offer(config)
        name = digest(config, job, gpu, harness)
        found, known = await self._results.get(
            name, lambda: self._judged(config, job), config.cache_size
        )
        if not config.return_exceptions and found["metadata"]["error_kind"] == _INFRASTRUCTURE:
            raise InfrastructureError(found["error_message"])
        return deepcopy(found), known

    async def _judged(self, config: EvaluatorConfig, job: KernelJob) -> KernelResult:
        """The kernel's evaluation, and the reference's if times are requested."""
        gpu, _ = await self._pool.offer(config)
        request = kernel_request(config, job, gpu)
        if not job.measure_performance:
            return result_of(job, await self._run(config, request), None)
        try:
            async with asyncio.TaskGroup() as group:
                timed = group.create_task(self._baseline(config, job))
                judged = group.create_task(self._run(config, request))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return result_of(job, judged.result(), timed.result())

    async def _baseline(self, config: EvaluatorConfig, job: KernelJob) -> Baseline:
        """The reference's time, measured once for all kernels of a problem."""
        gpu, harness = await self._pool.offer(config)
        name = digest(config, baseline_job(job), gpu, harness)

        async def timed() -> Baseline:
            try:
                return baseline_of(await self._run(config, baseline_request(config, job, gpu)))
            except InfrastructureError as error:
                return Baseline(None, f"the reference could not be timed: {error}", _INFRASTRUCTURE)

        found, _ = await self._baselines.get(name, timed, _BASELINES)
        return found

    async def _run(self, config: EvaluatorConfig, request: EvaluationRequest) -> Evaluation:
        async with self._pool.slot(config) as runner:
            return await evaluation(runner, request, config.attempts)


_INFRASTRUCTURE = ErrorKind.INFRASTRUCTURE


def _is_cacheable(result: KernelResult) -> bool:
    """Whether a result would be the same if the kernel were evaluated again."""
    return bool(result["metadata"]["error_kind"] != _INFRASTRUCTURE)
