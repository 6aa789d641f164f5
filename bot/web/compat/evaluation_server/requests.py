"""The evaluation server's two requests: one kernel by itself, or one against its reference."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from bot.domain.errors import UserError
from bot.web.compat.evaluation_server.io_contract import IOContract
from runners.contract.io_contract import NAME_MOST

TRIALS = range(1, 10_001)
TIMEOUTS_S = range(5, 601)
TOLERANCE = 1e-2
"""The default absolute and relative tolerance."""
MAX_WORDS = 256
"""The most compiler options, or instances of a template."""
_NAMES = ("function_name", "class_name", "method_name", "kernel_name", "entry_point")
_LISTS = ("compiler_options", "name_expressions")

Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class KernelType(StrEnum):
    """How the source of a kernel is loaded and called."""

    TORCH = "torch"
    """Python: a named function, a named method, or `Model` with `get_inputs`."""
    TORCH_CUDA = "torch_cuda"
    """Python with CUDA that is compiled inline; it has `ModelNew`."""
    TRITON = "triton"
    """Python with one Triton kernel, which is launched with the arguments of `io`."""
    CUDA = "cuda"
    """One CUDA kernel, which is launched with the arguments of `io`."""
    MULTI_KERNEL = "multi_kernel"
    """Python whose entry point is called with the arguments of `io`."""


class KernelCode(BaseModel):
    """A kernel and what it is called with; this is the only model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_code: str
    kernel_type: KernelType
    io: IOContract | None = None
    metadata: dict[str, JsonValue] | None = None

    @field_validator("metadata")
    @classmethod
    def _has_short_texts(cls, metadata: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        """Check the keys that are used; other keys may have any value."""
        for key in (*_NAMES, *_LISTS):
            value = (metadata or {}).get(key)
            words = value if isinstance(value, list) else [value]
            if len(words) > MAX_WORDS:
                raise ValueError(f"{key} has at most {MAX_WORDS} words")
            if any(len(str(word)) > NAME_MOST for word in words):
                raise ValueError(f"{key} has words of at most {NAME_MOST:,} characters")
        return metadata

    def named(self, key: str) -> str | None:
        """Return a text of the metadata; None if it is absent or not a text."""
        value = (self.metadata or {}).get(key)
        return value if isinstance(value, str) and value else None


class _Request(BaseModel):
    """The common fields: the number of timed samples, and the caller's timeout in seconds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    num_trials: int = 100
    timeout: int = 120
    gpu: str | None = None
    """Podium's extension: the GPU type, such as `H100`; None: the first that a runner offers."""
    device_metrics: bool = False
    """Podium's extension: also count with `ncu` after the timing, if the machine permits it."""


class EvaluateRequest(_Request):
    """Whether a kernel runs, and how long it takes."""

    kernel: KernelCode


class CompareRequest(_Request):
    """Whether a kernel returns what its reference returns, and how long both take."""

    ref_kernel: KernelCode
    custom_kernel: KernelCode
    atol: Tolerance | None = TOLERANCE
    rtol: Tolerance | None = TOLERANCE


Request = EvaluateRequest | CompareRequest


class LegacyRequest(BaseModel):
    """The older form of a comparison: only the texts of a torch model and an inline CUDA model."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ref_code: str
    custom_code: str
    num_trials: int = 100
    timeout: int = 30

    @property
    def as_comparison(self) -> CompareRequest:
        """Return the same request in the current form."""
        return CompareRequest(
            ref_kernel=KernelCode(source_code=self.ref_code, kernel_type=KernelType.TORCH),
            custom_kernel=KernelCode(
                source_code=self.custom_code, kernel_type=KernelType.TORCH_CUDA
            ),
            num_trials=self.num_trials,
            timeout=self.timeout,
        )


class BadRequestError(UserError):
    """A well-formed but invalid request; `details` are for programs."""

    def __init__(self, message: str, details: dict[str, JsonValue]) -> None:
        super().__init__("bad-request", message)
        self.details = details


def require_limits(request: Request) -> None:
    """BadRequestError for a number out of range, or a Triton kernel without arguments."""
    for name, value, allowed in (
        ("num_trials", request.num_trials, TRIALS),
        ("timeout", request.timeout, TIMEOUTS_S),
    ):
        if value not in allowed:
            low, high = allowed[0], allowed[-1]
            raise BadRequestError(
                f"{name} must be between {low} and {high}",
                {"field": name, "value": str(value), "min": low, "max": high},
            )
    for kernel in kernels_of(request):
        if kernel.kernel_type is KernelType.TRITON and kernel.io is None:
            raise BadRequestError(
                "Triton kernels require io_contract to be specified",
                {"field": "io", "kernel_type": kernel.kernel_type.value},
            )


def kernels_of(request: Request) -> tuple[KernelCode, ...]:
    """Return the kernels of a request, the judged one last."""
    match request:
        case EvaluateRequest(kernel=kernel):
            return (kernel,)
        case CompareRequest(ref_kernel=reference, custom_kernel=custom):
            return reference, custom
