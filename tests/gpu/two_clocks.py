"""Does the judge confirm honest kernels and refuse liars on this GPU? Prints a table.

Run from the repository root on a machine with a GPU:  python tests/gpu/two_clocks.py [--repeat N]
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from runners.contract.evaluation import Evaluation, EvaluationRequest, RoundPolicy  # noqa: E402
from runners.contract.task import Mode, TaskDefinition, Workload  # noqa: E402
from tests.gpu.asking import serving  # noqa: E402

ADD = """
import torch
def generate_input(n, seed):
    g = torch.Generator(device="cuda").manual_seed(seed)
    make = lambda: torch.randn(n, n, device="cuda", dtype=torch.float16, generator=g)
    return make(), make()
def ref_kernel(data):
    return data[0] + data[1]
def check_implementation(data, output):
    right = torch.equal(output, ref_kernel(data))
    return right, "" if right else "mismatch"
"""
MATMUL = """
import torch
def generate_input(n, seed):
    g = torch.Generator(device="cuda").manual_seed(seed)
    make = lambda: torch.randn(n, n, device="cuda", dtype=torch.bfloat16, generator=g)
    return make(), make()
def ref_kernel(data):
    return data[0] @ data[1]
def check_implementation(data, output):
    right = torch.allclose(output.float(), ref_kernel(data).float(), rtol=2e-2, atol=1.0)
    return right, "" if right else "mismatch"
"""
HONEST = "def custom_kernel(data):\n    return data[0] {op} data[1]\n"
SIDE = """
import torch
s = torch.cuda.Stream()
def custom_kernel(data):
    with torch.cuda.stream(s):
        out = data[0] {op} data[1]
    return out
"""
PATCHED = """
import torch
torch.cuda.Event.elapsed_time = lambda self, other: 0.002
def custom_kernel(data):
    return data[0] {op} data[1]
"""
HALF = """
import torch
real = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda self, other: real(self, other) / 2
def custom_kernel(data):
    return data[0] {op} data[1]
"""
TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def add(a, b, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(a + i, m) + tl.load(b + i, m), m)
def custom_kernel(data):
    a, b = data
    out = torch.empty_like(a)
    n = a.numel()
    add[(triton.cdiv(n, 4096),)](a, b, out, n, B=4096, num_warps=8)
    return out
"""
CASES = [
    ("add 4096 torch", ADD, 4096, HONEST, "+", "passed"),
    ("add 4096 triton", ADD, 4096, TRITON, "+", "passed"),
    ("add 1024 torch", ADD, 1024, HONEST, "+", "passed"),
    ("add 16384 torch", ADD, 16384, HONEST, "+", "passed"),
    ("matmul 4096 torch", MATMUL, 4096, HONEST, "@", "passed"),
    ("add 4096 side stream", ADD, 4096, SIDE, "+", "wrong_answer"),
    ("add 4096 patched event", ADD, 4096, PATCHED, "+", "timing_rejected"),
    ("matmul 4096 half time", MATMUL, 4096, HALF, "@", "timing_rejected"),
    ("matmul 4096 side stream", MATMUL, 4096, SIDE, "@", "wrong_answer"),
]


def request(name: str, reference: str, size: int, source: str, rounds: int) -> EvaluationRequest:
    task = TaskDefinition(
        name="two_clocks",
        lang="py",
        description="two clocks",
        files={"reference.py": reference},
        tests=(Workload(args={"n": 64, "seed": 1}), Workload(args={"n": 200, "seed": 2})),
        benchmarks=(Workload(args={"n": size, "seed": 3}),),
    )
    policy = RoundPolicy(looks=(rounds,)) if rounds else None
    return EvaluationRequest(
        request_id=name, task=task, source=source, mode=Mode.RANKED, gpu="GPU", rounds=policy
    )


def row(name: str, found: Evaluation, seconds: float, wanted: str) -> str:
    timed = [case.measurement for case in found.cases if case.measurement]
    mark = "ok " if found.verdict == wanted else "BAD"
    text = f"{mark} {name:26s} {found.verdict:16s} {seconds:6.2f} s "
    for m in timed:
        text += (
            f"value {m.time_ns / 1e3:8.2f} +- {m.half_width_ns / 1e3:5.2f} "
            f"bound {m.bound_ns / 1e3:8.2f} resolution {m.resolution_ns / 1e3:6.2f} us "
            f"{m.rounds} rounds "
        )
    return f"{text}{found.message[:200]} {found.log[-600:]}"


def bench(reference: str, size: int, op: str) -> float:
    import torch  # noqa: PLC0415 - the judge must not find a context made before it
    import triton.testing  # noqa: PLC0415 - likewise

    space: dict[str, object] = {}
    exec(reference, space)  # noqa: S102 - our own text
    data = space["generate_input"](size, 1)  # type: ignore[operator]
    run = (lambda: data[0] + data[1]) if op == "+" else (lambda: data[0] @ data[1])
    torch.cuda.synchronize()
    return float(triton.testing.do_bench(run, return_mode="median")) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=0, help="0: as a ranked run")
    parser.add_argument("--repeat", type=int, default=1)
    rounds, repeat = (vars(parser.parse_args())[key] for key in ("rounds", "repeat"))
    lines = []
    with serving() as server:
        print(server.ready[:1500])
        for name, reference, size, source, op, wanted in CASES * repeat:
            order = request(name, reference, size, source.format(op=op), rounds)
            lines.append(row(name, *server.ask(order), wanted))
            print(lines[-1], flush=True)
    bad = sum(not line.startswith("ok") for line in lines)
    for name, reference, size, _, op, _ in CASES[:5:2] + CASES[3:5]:
        print(f"do_bench median {name:20s} {bench(reference, size, op):8.2f} us")
    print(f"{len(lines) - bad} of {len(lines)} as wanted")
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
