"""The problems of the replacements for KernelBot's public tasks: small formulas on values of the
same kinds, written for this suite."""

from dataclasses import dataclass

Case = dict[str, object]
MATCHING = "check_implementation = matching(ref_kernel, rtol=2e-2, atol=2e-2)"


@dataclass(frozen=True, slots=True)
class Problem:
    """A formula as the bodies of two functions: `inputs` has a generator `random`."""

    arguments: str
    inputs: str
    answer: str
    cases: tuple[Case, ...]
    """Two tests, then the benchmarks."""
    types: str = ""
    """What task.py defines besides the types of the data and the answer."""
    check: str = MATCHING
    library: str = ""
    """The line of the reference that imports a library which a machine may lack."""


def cases(**numbers: tuple[object, ...]) -> tuple[Case, ...]:
    """The cases with these values of each argument, each with a seed of its own."""
    rows = enumerate(zip(*numbers.values(), strict=True))
    return tuple(dict(zip(numbers, row, strict=True)) | {"seed": 4242 + 17 * n} for n, row in rows)


@dataclass(frozen=True, slots=True)
class _Formula:
    """A problem of pmpp and pmpp_v2: the names of its inputs, and the value made of them."""

    names: str
    value: str
    arguments: str
    inputs: str
    cases: tuple[Case, ...]
    target: str = ""
    """The output to fill, which in pmpp_v2 most problems have after the inputs."""

    @property
    def first(self) -> Problem:
        """The problem as pmpp has it: its data are only the inputs."""
        given = f"{self.inputs}\nreturn ({self.names},)"
        return Problem(
            self.arguments, given, f"({self.names},) = data\nreturn {self.value}", self.cases
        )

    @property
    def second(self) -> Problem:
        """The problem as pmpp_v2 has it, with the output to fill after the inputs."""
        if not self.target:
            return self.first
        given = f"{self.inputs}\noutput = {self.target}\nreturn {self.names}, output"
        answer = f"{self.names}, output = data\noutput[...] = {self.value}\nreturn output"
        return Problem(self.arguments, given, answer, self.cases)


_SIZES = cases(size=(15, 127, 130, 200))
_PMPP = {
    "conv2d": _Formula(
        "image, kernel",
        "torch.nn.functional.conv2d(image, kernel)",
        "size: int, channels: int",
        'image = torch.randn(1, channels, size, size, device="cuda", generator=random)\n'
        'kernel = torch.randn(channels, channels, 3, 3, device="cuda", generator=random)',
        cases(size=(8, 17, 20, 32), channels=(2, 3, 4, 4)),
    ),
    "grayscale": _Formula(
        "image",
        "(image * torch.tensor([0.2989, 0.587, 0.114], device=image.device)).sum(-1)",
        "size: int",
        'image = torch.rand(size, size, 3, device="cuda", generator=random)',
        _SIZES,
        'torch.empty(size, size, device="cuda")',
    ),
    "histogram": _Formula(
        "values",
        "torch.bincount(values.flatten().long(), minlength=256)",
        "size: int, contention: int",
        "values = torch.randint(0, 256, (size,), dtype=torch.uint8, "
        'device="cuda", generator=random)\nvalues[: size * contention // 100] = 7',
        cases(size=(500, 1001, 2000, 4000), contention=(10, 40, 10, 90)),
        'torch.empty(256, dtype=torch.int64, device="cuda")',
    ),
    "matmul": _Formula(
        "a, b",
        "a @ b",
        "m: int, n: int, k: int",
        'a = torch.randn(m, k, device="cuda", generator=random).half()\n'
        'b = torch.randn(k, n, device="cuda", generator=random).half()',
        cases(m=(16, 33, 64, 96), n=(16, 31, 64, 96), k=(16, 35, 64, 96)),
        'torch.empty(m, n, dtype=torch.float16, device="cuda")',
    ),
    "prefixsum": _Formula(
        "values",
        "torch.cumsum(values.double(), 0).float()",
        "size: int",
        'values = torch.randn(size, device="cuda", generator=random)',
        _SIZES,
        'torch.empty(size, device="cuda")',
    ),
    "sort": _Formula(
        "values",
        "torch.sort(values).values",
        "size: int",
        'values = torch.randn(size, device="cuda", generator=random) + 7',
        _SIZES,
        'torch.empty(size, device="cuda")',
    ),
    "vectoradd": _Formula(
        "a, b",
        "a + b",
        "size: int",
        'a = torch.randn(size, size, device="cuda", generator=random).half()\n'
        'b = torch.randn(size, size, device="cuda", generator=random).half()',
        _SIZES,
        'torch.empty(size, size, dtype=torch.float16, device="cuda")',
    ),
    "vectorsum": _Formula(
        "values",
        "values.double().sum().float()",
        "size: int",
        'values = 3 + torch.randn(size, device="cuda", generator=random)',
        _SIZES,
        'torch.empty((), device="cuda")',
    ),
}
PMPP = {name: formula.first for name, formula in _PMPP.items()}
PMPP_V2 = {name: formula.second for name, formula in _PMPP.items()}

AMD = {
    "fp8-mm": Problem(
        "m: int, n: int, k: int",
        """\
def drawn(rows):
    wide = torch.randn(k, rows, device="cuda", generator=random)
    return wide.to(torch.float8_e4m3fnuz).t()

a_scales = torch.rand(k // 128, m, device="cuda", generator=random).t()
b_scales = torch.rand(k // 128, n // 128, device="cuda", generator=random).t()
output = torch.zeros(m, n, dtype=torch.bfloat16, device="cuda")
return drawn(m), drawn(n), a_scales, b_scales, output""",
        """\
a, b, a_scales, b_scales, output = data
left = a.float() * a_scales.repeat_interleave(128, 1)
right = b.float() * b_scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
output[...] = (left @ right.t()).bfloat16()
return output""",
        cases(m=(64, 96, 128), n=(128, 128, 256), k=(128, 256, 256)),
    ),
    "identity": Problem(
        "size: int",
        'data = torch.randn(size, device="cuda", generator=random).half()\n'
        "return data, torch.empty_like(data)",
        "given, output = data\noutput[...] = given\nreturn output",
        _SIZES,
    ),
    "moe": Problem(
        "hidden: int, experts: int, tokens: int",
        """\
tokens_of = torch.randn(1, tokens, hidden, device="cuda", generator=random).half()
weights = {
    f"experts.{n}": torch.randn(hidden, hidden, device="cuda", generator=random).half() / hidden
    for n in range(experts)
}
weights["router"] = torch.randn(experts, hidden, device="cuda", generator=random).half()
return tokens_of, weights, {"hidden": hidden, "experts": experts}""",
        """\
tokens, weights, config = data
scores = (tokens.float() @ weights["router"].float().t()).softmax(-1)
parts = [
    scores[..., n, None] * (tokens.float() @ weights[f"experts.{n}"].float())
    for n in range(config["experts"])
]
return torch.stack(parts).sum(0).half(), {"aux": scores.mean((0, 1))}""",
        cases(hidden=(16, 24, 32), experts=(2, 3, 4), tokens=(8, 17, 64)),
    ),
    "mla-decode": Problem(
        "batch: int, width: int",
        """\
weight = torch.randn(width, width, device="cuda", generator=random).bfloat16() / width
cache = Cache((batch, 4, width)).to("cuda")
new = torch.randn(batch, 1, width, device="cuda", generator=random).bfloat16()
return Config(batch, width, weight), new, cache""",
        """\
config, new, cache = data
held = torch.cat([cache.data, new @ config.weight], 1)
scores = (held.float() @ new.float().transpose(1, 2)).softmax(1)
return (scores * held.float()).sum(1).bfloat16(), held""",
        cases(batch=(2, 3, 4), width=(16, 24, 64)),
        """

@dataclasses.dataclass
class Config:
    batch: int
    width: int
    weight: torch.Tensor


class Cache(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.register_buffer("data", torch.zeros(shape, dtype=torch.bfloat16))
""",
    ),
}
_RANKED_INPUTS = """\
def drawn(*shape):
    return torch.randn(shape, device=of_rank("cuda", rank), generator=random).bfloat16() / 8

random = seeded(seed + rank, of_rank("cuda", rank))
bias = drawn({bias}) if has_bias else None
return drawn({left}), drawn({right}), bias"""
_RANKS = cases(
    world_size=(8, 8, 8), m=(16, 32, 64), n=(16, 24, 32), k=(16, 32, 64),
    has_bias=(True, False, True),
)  # fmt: skip
_OF_RANKS = "rank: int, world_size: int, m: int, n: int, k: int, has_bias: bool"
AMD_DISTRIBUTED = {
    "ag-gemm": Problem(
        _OF_RANKS,
        _RANKED_INPUTS.format(bias="n", left="m // world_size, k", right="n, k"),
        """\
own, weight, bias = data
parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(parts, own)
return torch.nn.functional.linear(torch.cat(parts), weight, bias)""",
        _RANKS,
    ),
    "gemm-rs": Problem(
        _OF_RANKS,
        _RANKED_INPUTS.format(bias="n", left="m, k", right="n, k"),
        """\
own, weight, bias = data
whole = torch.nn.functional.linear(own, weight, bias)
dist.all_reduce(whole)
return whole.chunk(dist.get_world_size())[dist.get_rank()].clone()""",
        _RANKS,
    ),
    "all2all": Problem(
        "rank: int, world_size: int, tokens: int, hidden: int",
        """\
random = seeded(seed + rank, of_rank("cuda", rank))
device = of_rank("cuda", rank)
rows = torch.randn(tokens, hidden, device=device, generator=random).half()
chosen = torch.randint(0, world_size, (tokens,), device=device, generator=random).int()
return Settings(tokens, hidden), Routed(rows, chosen), rank, world_size""",
        """\
settings, routed, rank, world_size = data
total = torch.zeros_like(routed.rows)
total += routed.rows * (1 + routed.chosen[:, None])
dist.all_reduce(total)
return total""",
        cases(world_size=(8, 8, 8), tokens=(4, 8, 16), hidden=(8, 16, 32)),
        """

@dataclasses.dataclass
class Settings:
    tokens: int
    hidden: int


class Routed:
    def __init__(self, rows, chosen):
        self.rows, self.chosen = rows, chosen
""",
    ),
}
