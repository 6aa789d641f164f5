"""One kernel to evaluate, and its requests to a runner."""

import hashlib
import json
import math
import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from runners.contract.evaluation import EvaluationRequest, RoundPolicy
from runners.contract.task import (
    PYTHON,
    REFERENCE_FUNCTION,
    REFERENCE_MODEL,
    Mode,
    TaskDefinition,
    TaskFormat,
    Workload,
)
from runners.evaluator.config import EvaluatorConfig, JobError

SOURCE_MOST = 1 << 20
"""The most characters of a source."""

_FUNCTION = re.compile(r"^def[ \t]+forward\b|^forward[ \t]*=", re.MULTILINE)
_MODEL = re.compile(r"^class[ \t]+Model\b|^Model[ \t]*=|\bimport\b.*\bModel\b", re.MULTILINE)

Source = Annotated[str, StringConstraints(min_length=1, max_length=SOURCE_MOST)]


class KernelJob(BaseModel):
    """One job; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    ref_code: Source
    kernel_code: Source
    backend: Literal["cuda", "triton", "tilelang", "cute", "thunderkittens", "hip"] = "triton"
    """What the kernel is written in; the judge does not use it."""
    num_correct_trials: Annotated[int, Field(ge=1, le=200)] = 5
    measure_performance: bool = False
    num_perf_trials: Annotated[int, Field(ge=1, le=10_000)] = 100
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"


def read_job(raw: Mapping[str, Any]) -> KernelJob:
    """The job in a dict; JobError if it is invalid."""
    try:
        return KernelJob.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the job"
        raise JobError(f"{where}: {first['msg']}") from error


def cache_key(config: EvaluatorConfig, job: KernelJob, gpu: str, harness: str) -> str:
    """A hash of everything that can make the results of two evaluations differ."""
    content = [
        job.model_dump(), gpu, harness, config.timeout, config.rounds,
        config.limits.model_dump(), config.secret.hex(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def kernel_request(config: EvaluatorConfig, job: KernelJob, gpu: str) -> EvaluationRequest:
    """The request to evaluate the kernel: all trials, then its time if requested.

    Its seeds are derived from the configuration's secret and both sources. Inputs cannot be
    predicted without the secret, and the same kernel always gets the same inputs.
    """
    return _request(config, job, gpu, share_reference=False)


def baseline_job(job: KernelJob) -> KernelJob:
    """The job that times the reference; it does not depend on the kernel."""
    return job.model_copy(
        update={
            "kernel_code": _reference_submission(job.ref_code),
            "num_correct_trials": 1,
            "measure_performance": True,
        }
    )


def baseline_request(config: EvaluatorConfig, job: KernelJob, gpu: str) -> EvaluationRequest:
    """The request to evaluate the reference as a kernel."""
    return _request(config, baseline_job(job), gpu, share_reference=True)


def _reference_submission(ref_code: str) -> str:
    """The submission that is the reference itself.

    The text of `ref_code` decides between model and function, because this process runs no code.
    """
    is_function = _FUNCTION.search(ref_code) and not _MODEL.search(ref_code)
    return REFERENCE_FUNCTION if is_function else REFERENCE_MODEL


def _request(
    config: EvaluatorConfig, job: KernelJob, gpu: str, *, share_reference: bool
) -> EvaluationRequest:
    seeds = _Seeds(config.secret, job)
    task = TaskDefinition(
        name="kernelbench",
        lang=PYTHON,
        description="A KernelBench problem.",
        format=TaskFormat.KERNELBENCH,
        files={"reference.py": job.ref_code},
        shared_files=("reference.py",) if share_reference else (),
        tests=tuple(_case(job, seeds, trial) for trial in range(job.num_correct_trials)),
        benchmarks=(_case(job, seeds, job.num_correct_trials),),
        test_timeout=math.ceil(config.timeout),
        ranked_timeout=math.ceil(config.timeout),
    )
    samples = max(3, -(-job.num_perf_trials // config.rounds))
    return EvaluationRequest(
        request_id=f"kernel-{secrets.token_hex(8)}",
        task=task,
        source=job.kernel_code,
        mode=Mode.RANKED if job.measure_performance else Mode.TEST,
        gpu=gpu,
        nonce=seeds.hex("nonce"),
        rounds=RoundPolicy(looks=(config.rounds,), samples=samples),
        limits=config.limits,
    )


class _Seeds:
    """Seeds derived from a secret and a job; unpredictable without the secret."""

    def __init__(self, secret: bytes, job: KernelJob) -> None:
        self.secret = secret
        self.sources = f"{job.ref_code}\0{job.kernel_code}\0{job.precision}\0".encode()

    def hex(self, name: str) -> str:
        """A seed of 64 hexadecimal digits."""
        text = self.sources + name.encode()
        return hashlib.blake2b(text, key=self.secret, digest_size=32).hexdigest()

    def number(self, name: str) -> int:
        """A seed of 31 bits."""
        return int(self.hex(name)[:8], 16) & 0x7FFFFFFF


def _case(job: KernelJob, seeds: _Seeds, trial: int) -> Workload:
    return Workload(
        args={
            "precision": job.precision,
            "weights": seeds.number("weights"),
            "seed": seeds.number(f"trial {trial}"),
        }
    )
