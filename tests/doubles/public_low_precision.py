"""More problems of the public tasks' replacements: low precision, linear algebra, sequences."""

from tests.doubles.public_problems import Problem, cases

_WIDE = """

def wide(packed, scales, block):
    \"\"\"Numbers of four bits, two in a byte, with a scale for each block of them.\"\"\"
    raw = packed.view(torch.uint8).to(torch.int32)
    halves = torch.stack([raw & 15, raw >> 4], 2).flatten(1, 2)
    exponent, half = (halves >> 1) & 3, 0.5 * (halves & 1)
    numbers = torch.where(exponent > 0, (1 + half) * torch.exp2((exponent - 1).float()), half)
    numbers = numbers * (1 - 2 * (halves >> 3))
    return numbers * scales.to(torch.float32).repeat_interleave(block, 1)
"""
_DRAWN = """\
def packed(rows, deep):
    raw = torch.randint(0, 256, (deep, rows, k // 2), dtype=torch.uint8, device="cuda",
                        generator=random)
    return raw.view(torch.float4_e2m1fn_x2).permute(1, 2, 0)

def scales(rows, deep):
    raw = torch.randint(1, 4, (deep, rows, k // {block}), device="cuda", generator=random)
    return raw.float().to(torch.{scale}).permute(1, 2, 0)
"""
_MX = _DRAWN.format(block=32, scale="float8_e8m0fnu")
_NV = _DRAWN.format(block=16, scale="float8_e4m3fn")
_AITER = "import aiter"

AMD_202602 = {
    "mxfp4-mm": Problem(
        "m: int, n: int, k: int",
        f"""\
{_MX}
a, b = packed(m, 1)[..., 0], packed(n, 1)[..., 0]
return a, b, scales(m, 1)[..., 0], scales(n, 1)[..., 0]""",
        """\
a, b, a_scales, b_scales = data
return (wide(a, a_scales, 32) @ wide(b, b_scales, 32).t()).bfloat16()""",
        cases(m=(16, 32, 64), n=(16, 48, 64), k=(64, 64, 128)),
        _WIDE,
        library=_AITER,
    ),
    "moe-mxfp4": Problem(
        "tokens: int, experts: int, k: int",
        f"""\
{_MX}
rows = torch.randn(tokens, k, device="cuda", generator=random).bfloat16()
weights = dict(up=(packed(experts * k, 1)[..., 0], scales(experts * k, 1)[..., 0]))
chosen = torch.randint(0, experts, (tokens,), device="cuda", generator=random).int()
return rows, weights, chosen, dict(experts=experts)""",
        """\
rows, weights, chosen, config = data
packed, scales = weights["up"]
every = wide(packed, scales, 32).unflatten(0, (config["experts"], -1))
return (rows.float()[:, None] @ every[chosen.long()])[:, 0].bfloat16()""",
        cases(tokens=(8, 9, 32), experts=(2, 3, 4), k=(64, 64, 64)),
        _WIDE,
        library=_AITER,
    ),
    "mixed-mla": Problem(
        "batch: int, width: int",
        """\
query = torch.randn(batch, width, device="cuda", generator=random).bfloat16()
cache = torch.randn(batch, 8, width, device="cuda", generator=random)
held = dict(fp8=cache.to(torch.float8_e4m3fn), bf16=cache.bfloat16())
return query, held, dict(batch=batch, width=width)""",
        """\
query, held, config = data
cache = held["fp8"].float()
scores = (cache @ query.float()[..., None]).softmax(1)
return (scores * cache).sum(1).bfloat16()""",
        cases(batch=(2, 3, 4), width=(16, 24, 32)),
        library=_AITER,
    ),
}
TRIMUL = Problem(
    "size: int, width: int, masked: bool",
    """\
pairs = torch.randn(1, size, size, width, device="cuda", generator=random)
mask = torch.ones(1, size, size, device="cuda")
if masked:
    mask[:, ::2] = 0
weights = {
    name: torch.randn(width, width, device="cuda", generator=random) / width
    for name in ("left", "right", "out")
}
return pairs, mask, weights, {"width": width}""",
    """\
pairs, mask, weights, config = data
pairs = torch.nn.functional.layer_norm(pairs, (config["width"],)) * mask[..., None]
left, right = pairs @ weights["left"], pairs @ weights["right"]
return torch.einsum("bikd,bjkd->bijd", left, right) @ weights["out"]""",
    cases(size=(8, 13, 16), width=(8, 16, 16), masked=(True, False, True)),
)
_GEMM = "m: int, n: int, k: int, l: int"
_PERMUTED = """
def order(scale):
    return scale.float().permute(2, 0, 1).contiguous().permute(1, 2, 0).to(scale.dtype)
"""
_PRODUCT = """
def product(a, b, a_scales, b_scales):
    layers = range(a.shape[2])
    left = [wide(a[..., n], a_scales[..., n], 16) for n in layers]
    right = [wide(b[..., n], b_scales[..., n], 16) for n in layers]
    return torch.stack([one @ other.t() for one, other in zip(left, right)], 2)
"""
_SIXTEEN = _WIDE + "\n" + _PRODUCT
_OUTPUT = 'torch.zeros(l, m, {n}, dtype=torch.float16, device="cuda").permute(1, 2, 0)'
_MNKL = cases(m=(16, 32, 48), n=(16, 48, 64), k=(64, 64, 128), l=(1, 2, 1))


def _one_product(n: str, arguments: str, found: tuple[dict[str, object], ...]) -> Problem:
    """Two packed tensors, their scales in two layouts, and the output to fill."""
    return Problem(
        arguments,
        f"""\
{_NV}{_PERMUTED}
a, b, a_scales, b_scales = packed(m, l), packed({n}, l), scales(m, l), scales({n}, l)
output = {_OUTPUT.format(n=n)}
return a, b, a_scales, b_scales, order(a_scales), order(b_scales), output""",
        """\
a, b, a_scales, b_scales, _, _, output = data
output.copy_(product(a, b, a_scales, b_scales))
return output""",
        found,
        _SIXTEEN,
    )


_DUAL = Problem(
    _GEMM,
    f"""\
{_NV}{_PERMUTED}
a, first, second = packed(m, l), packed(n, l), packed(n, l)
given = [scales(m, l), scales(n, l), scales(n, l)]
output = {_OUTPUT.format(n="n")}
return a, first, second, *given, *map(order, given), output""",
    """\
a, first, second, a_scales, first_scales, second_scales, _, _, _, output = data
gate = torch.nn.functional.silu(product(a, first, a_scales, first_scales) / 64)
output.copy_(gate * product(a, second, a_scales, second_scales) / 64)
return output""",
    _MNKL,
    _SIXTEEN,
)
_GROUPS = cases(
    m=([16, 32], [48, 16], [96, 128]), n=([32, 16], [16, 32], [64, 64]), k=(64,) * 3, g=(2,) * 3
)
NVIDIA = {
    "nvfp4_gemv": _one_product(
        "1", "m: int, k: int, l: int", cases(m=(16, 48, 64), k=(64, 64, 128), l=(1, 2, 1))
    ),
    "nvfp4_gemm": _one_product("n", _GEMM, _MNKL),
    "nvfp4_dual_gemm": _DUAL,
    "modal_nvfp4_dual_gemm": _DUAL,
    "nvfp4_group_gemm": Problem(
        "m: tuple, n: tuple, k: int, g: int",
        f"""\
{_NV}{_PERMUTED}
l = 1
groups = [(packed(m[i], l), packed(n[i], l)) for i in range(g)]
given = [(scales(m[i], l), scales(n[i], l)) for i in range(g)]
ordered = [tuple(map(order, each)) for each in given]
outputs = [torch.zeros(m[i], n[i], 1, dtype=torch.float16, device="cuda") for i in range(g)]
return groups, given, ordered, outputs, [(m[i], n[i], k, l) for i in range(g)]""",
        """\
groups, given, _, outputs, sizes = data
for (a, b), (a_scales, b_scales), output in zip(groups, given, outputs):
    output.copy_(product(a, b, a_scales, b_scales))
return outputs""",
        _GROUPS,
        _SIXTEEN,
    ),
}
_CHUNKS = cases(batch=(1, 2, 2), length=(16, 24, 32), width=(8, 8, 16))


def _sequence(names: str, value: str) -> Problem:
    """Tensors of float32 over a sequence, and an output to fill."""
    drawn = "\n".join(
        f'{name} = torch.randn(batch, length, width, device="cuda", generator=random)'
        for name in names.split(", ")
    )
    return Problem(
        "batch: int, length: int, width: int",
        f"{drawn}\nreturn {names}, torch.empty_like({names.partition(',')[0]})",
        f"{names}, output = data\noutput[...] = {value}\nreturn output",
        _CHUNKS,
    )


HELION = {
    "causal_conv1d": _sequence(
        "values, kernel",
        "torch.nn.functional.pad(values, (0, 0, 1, 0))[:, :-1] * kernel[:, :1] + values",
    ),
    "fp8_quant": _sequence(
        "values, scales", "(values / scales.abs().clamp_min(1)).to(torch.float8_e4m3fn).float()"
    ),
    "gated_deltanet_chunk_fwd_h": _sequence("k, v, g", "torch.cumsum(k * v * g.sigmoid(), 1)"),
    "gated_deltanet_chunk_fwd_o": _sequence("q, k, v", "torch.cumsum(q * k, 1) * v"),
    "gated_deltanet_recompute_w_u": _sequence("k, v, beta", "k * beta.sigmoid() + v"),
}
_QR = (
    cases(n=(16, 33, 64)),
    """
def check_implementation(data, output):
    reflectors, tau = output
    wide = data.double()
    q = torch.linalg.householder_product(reflectors.double(), tau.double())
    r = reflectors.double().triu()
    if not torch.allclose(q @ r, wide, atol=1e-3):
        return False, "Q times R is not the input"
    near = torch.allclose(q.mT @ q, torch.eye(len(q), dtype=q.dtype, device=q.device), atol=1e-3)
    return near, "" if near else "Q is not orthogonal"
""",
)
_SQUARE = 'return torch.randn(n, n, device="cuda", generator=random)'
_QR_PROBLEM = Problem("n: int", _SQUARE, "return tuple(torch.geqrf(data))", _QR[0], "", _QR[1])
LINALG = {
    "qr": _QR_PROBLEM,
    "qr_v2": _QR_PROBLEM,
    "eigh": Problem(
        "n: int, kind: str",
        'given = torch.randn(n, n, device="cuda", generator=random)\nreturn given + given.mT',
        "values, vectors = torch.linalg.eigh(data)\nreturn values, vectors",
        cases(n=(16, 33, 64), kind=("dense", "rank_1", "cond_1e3")),
        "",
        """
def check_implementation(data, output):
    values, vectors = (each.double() for each in output)
    if not torch.allclose(data.double() @ vectors, vectors * values, atol=1e-2):
        return False, "these are not eigenvectors"
    return bool((values.diff() >= 0).all()), "the values are not sorted"
""",
    ),
    "cholesky": Problem(
        "n: int",
        'given = torch.randn(n, n, device="cuda", generator=random)\n'
        'return given @ given.mT + n * torch.eye(n, device="cuda")',
        "return torch.linalg.cholesky(data)",
        cases(n=(16, 33, 64)),
        "",
        """
def check_implementation(data, output):
    near = torch.allclose(output.double() @ output.double().mT, data.double(), rtol=1e-3, atol=1e-2)
    return near, f"the factor is {'accurate' if near else 'inaccurate'}"
""",
    ),
}
ENTROPY = Problem(
    "batch: int, classes: int",
    """\
def inputs(batch, classes, seed):
    random = torch.Generator(device="cuda").manual_seed(seed)
    logits = torch.randn(batch, classes, device="cuda", generator=random).bfloat16()
    targets = torch.randint(0, classes, (batch,), device="cuda", generator=random)
    return logits, targets


def expected(logits, targets):
    wide = logits.float().requires_grad_()
    loss = torch.nn.functional.cross_entropy(wide, targets, reduction="none")
    return loss.detach(), torch.autograd.grad(loss.sum(), wide)[0]""",
    """\
def cross_entropy_forward(logits, targets):
    wide = logits.float()
    return wide.logsumexp(1) - wide.gather(1, targets[:, None])[:, 0]


def cross_entropy_backward(gradient, logits, targets):
    chances = logits.float().softmax(1)
    chances[torch.arange(len(targets)), targets] -= 1
    return gradient[:, None] * chances""",
    tuple({"batch": b, "classes": c} for b, c in ((4, 16), (5, 33), (8, 64), (16, 128))),
)
