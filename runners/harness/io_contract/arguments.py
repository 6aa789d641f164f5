"""Creates the arguments that a contract describes, in the judge: random, literal or scalar."""

import base64
import hashlib
import math
import secrets
import zlib
from collections.abc import Sequence
from typing import Any

import torch

from runners.contract import io_contract
from runners.contract.verdict import Verdict
from runners.harness.protocol.values import DTYPES
from runners.harness.verdicts import VerdictError

MAX_INTEGER = 1_000_000
"""By default, the largest absolute value of a random 64-bit integer."""
UNIFORM_HIGH = 100
"""By default, the largest integer of a uniform fill."""


def create_arguments(
    arguments: Sequence[io_contract.Argument],
    seed: int,
    names: frozenset[str],
    device: torch.device,
) -> list[Any]:
    """The values of the arguments of a call, in order.

    The trial with seed `GIVEN_SEED` uses the seeds of the contract. Every other trial derives its
    own. Equal seeds give equal values, so kernels with the same description get the same input.
    `names` are the tensors that both kernels read. If a tensor has no seed, one is derived from its
    name if that is in `names`, otherwise from its index among the tensors that the kernel reads.
    """
    values: list[Any] = []
    index = 0
    for argument in arguments:
        if isinstance(argument, io_contract.ContractScalar):
            values.append(argument.value)
            continue
        key = argument.name if argument.name in names else f"#{index}"
        index += argument.role is not io_contract.Role.OUTPUT
        values.append(_tensor(argument, seed, key, device))
    return values


def size_of(arguments: Sequence[io_contract.Argument]) -> int:
    """The bytes of all tensors of a call."""
    tensors = (
        argument for argument in arguments if isinstance(argument, io_contract.TensorArgument)
    )
    return sum(math.prod(argument.shape) * _dtype(argument).itemsize for argument in tensors)


def unwritten(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of NaN or a random number, which shows the elements that no kernel wrote.

    Truths alternate, because one of them is right for most of some outputs.
    """
    tensor = torch.empty(shape, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        return tensor.fill_(math.nan)
    if dtype == torch.bool:
        tensor.fill_(secrets.randbelow(2)).flatten()[::2].logical_not_()
        return tensor
    number = secrets.token_bytes(dtype.itemsize)
    return tensor.fill_(int.from_bytes(number, "little", signed=dtype.is_signed))


def _dtype(argument: io_contract.TensorArgument) -> torch.dtype:
    dtype = DTYPES.get(argument.dtype)
    if dtype is None:
        raise _invalid(argument, f"there is no dtype {argument.dtype!r}")
    return dtype


def _invalid(argument: io_contract.TensorArgument, reason: str) -> VerdictError:
    return VerdictError(Verdict.TASK_ERROR, f"argument {argument.name!r} cannot be made: {reason}")


def _tensor(
    argument: io_contract.TensorArgument, seed: int, key: str, device: torch.device
) -> torch.Tensor:
    dtype = _dtype(argument)
    try:
        if argument.literals is not None:
            return _literal(argument.literals, argument.shape, dtype).to(device)
        if argument.fill is None:
            return unwritten(argument.shape, dtype, device)
        filled = _FilledTensor(argument.fill, argument.shape, dtype, device)
        return filled.tensor(_seed(argument.fill.seed, seed, key))
    except (ValueError, OverflowError, RuntimeError) as error:
        raise _invalid(argument, str(error)) from error


def _seed(contract_seed: int | None, trial: int, key: str) -> int:
    if contract_seed is not None and trial == io_contract.GIVEN_SEED:
        return contract_seed % (1 << 63)
    origin = key if contract_seed is None else f"seed {contract_seed}"
    digest = hashlib.blake2b(f"{origin}\0{trial}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _literal(
    literals: io_contract.Literals, shape: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """A tensor of the given bytes, in C order; ValueError if they do not fit shape and dtype."""
    size = math.prod(shape) * dtype.itemsize
    data = base64.b64decode(literals.data, validate=True)
    if literals.zipped:
        data = _unzipped(data, size)
    if len(data) != size:
        raise ValueError(f"its data has {len(data)} bytes, and its shape takes {size}")
    if not data:
        return torch.empty(tuple(shape), dtype=dtype)
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return flat.view(dtype).reshape(tuple(shape))


def _unzipped(data: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(f"zlib cannot unpack its data: {error}") from error


class _FilledTensor:
    """Creates one tensor that a `Fill` describes; an omitted number has the default of its kind."""

    def __init__(
        self, fill: io_contract.Fill, shape: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> None:
        self.fill, self.shape, self.dtype, self.device = fill, tuple(shape), dtype, device
        self.floats = dtype.is_floating_point or dtype.is_complex

    def tensor(self, seed: int) -> torch.Tensor:
        """The tensor, created on the device with a generator of that device."""
        match self.fill.kind:
            case "randn":
                return self._normal(seed)
            case "uniform":
                return self._uniform(seed)
            case "arange":
                return self._arange()
            case "zeros" | "ones" | "full":
                return self._constant()

    def _constant(self) -> torch.Tensor:
        values = {"zeros": 0, "ones": 1, "full": self.fill.value or 0}
        return torch.full(self.shape, values[self.fill.kind], dtype=self.dtype, device=self.device)

    def _normal(self, seed: int) -> torch.Tensor:
        if not self.floats:
            return self._integers(seed, *self._range())
        random = torch.randn(self.shape, **self._random_options(seed))
        std = 1.0 if self.fill.std is None else self.fill.std
        return random.mul_(std).add_(self.fill.mean or 0.0).to(self.dtype)

    def _uniform(self, seed: int) -> torch.Tensor:
        low = 0.0 if self.fill.low is None else self.fill.low
        if not self.floats:
            high = float(UNIFORM_HIGH) if self.fill.high is None else self.fill.high
            top = 1 if self.dtype == torch.bool else int(high)
            return self._integers(seed, min(int(low), top), top)
        high = 1.0 if self.fill.high is None else self.fill.high
        random = torch.rand(self.shape, **self._random_options(seed))
        return random.mul_(high - low).add_(low).to(self.dtype)

    def _integers(self, seed: int, low: int, high: int) -> torch.Tensor:
        """Random integers from `low` to `high`, both included."""
        random = torch.randint(
            low, high + 1, self.shape, generator=self._generator(seed), device=self.device
        )
        return random.to(self.dtype)

    def _range(self) -> tuple[int, int]:
        if self.dtype == torch.bool:
            return 0, 1
        if self.dtype.itemsize == torch.int64.itemsize:
            return -MAX_INTEGER, MAX_INTEGER
        limits = torch.iinfo(self.dtype)
        return limits.min, limits.max

    def _arange(self) -> torch.Tensor:
        """`arange` along the last dimension, the same for all other indices."""
        start = self.fill.start or 0.0
        step = 1.0 if self.fill.step is None else self.fill.step
        count = self.shape[-1] if self.shape else 1
        exact = torch.float64 if self.floats or step % 1 or start % 1 else torch.int64
        row = torch.arange(count, dtype=exact, device=self.device)
        row = row * (step if exact.is_floating_point else int(step))
        row = (row + (start if exact.is_floating_point else int(start))).to(self.dtype)
        return row.expand(self.shape).contiguous() if self.shape else row.reshape(())

    def _random_options(self, seed: int) -> dict[str, Any]:
        """Arguments of `torch.rand`; its dtype is float64 for float64, otherwise float32."""
        dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
        return {"generator": self._generator(seed), "device": self.device, "dtype": dtype}

    def _generator(self, seed: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed)
