"""Small tasks in KernelBot's form, as their authors would write them: each with its own eval.py."""

from typing import Any

from runners.contract.task import Device, Grader, TaskDefinition, Workload

UTILS = """
import torch


def seeded(seed, device):
    return torch.Generator(device=device).manual_seed(seed)
"""
TASK = """
import torch

input_t = tuple[torch.Tensor, torch.Tensor]
output_t = torch.Tensor
"""
REFERENCE = """
import torch
from task import input_t, output_t
from utils import seeded


def generate_input(size: int, seed: int) -> input_t:
    generator = seeded(seed, "DEVICE")
    data = torch.randn(size, device="DEVICE", generator=generator)
    return data, torch.empty_like(data)


def ref_kernel(data: input_t) -> output_t:
    return 2 * data[0] + 1


def check_implementation(data: input_t, output: output_t):
    expected = ref_kernel(data)
    if output.shape != expected.shape:
        return CHECKED_SHAPE
    if not torch.allclose(output, expected):
        return CHECKED_VALUES
    return CHECKED_RIGHT
"""
CHECKS = {
    "pair": ('(False, "another shape")', '(False, "mismatch\\nhere")', '(True, "")'),
    "text": ('"another shape"', '"mismatch\\nhere"', '""'),
}
"""The two forms of a check's answer."""

EVAL = """
import math, multiprocessing, os, sys, time

import torch


def cases_of(path, seed):
    cases = []
    for line in open(path):
        case = {}
        for part in line.strip().split(";"):
            key, value = (word.strip() for word in part.split(":"))
            case[key] = int(value) if value.lstrip("-").isdigit() else value
        if seed is not None and "seed" in case:
            both = case["seed"] + seed
            case["seed"] += both * (both + 1) // 2
        cases.append(case)
    return cases


def settle():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def answer(found):
    return found if isinstance(found, tuple) else (not found, found)


def tried(case):
    from reference import check_implementation, generate_input
    from submission import custom_kernel

    data = generate_input(**case)
    output = custom_kernel(data)
    settle()
    return answer(check_implementation(data, output))


def timed(job):
    from reference import check_implementation, generate_input
    from submission import custom_kernel

    case, recheck = job
    durations = []
    custom_kernel(generate_input(**case))  # it may compile
    for number in range(20):
        data = generate_input(**dict(case, seed=case["seed"] + 13 * number * recheck))
        settle()
        begin = time.perf_counter_ns()
        output = custom_kernel(data)
        settle()
        durations.append(time.perf_counter_ns() - begin)
        if recheck or number == 0:
            right, why = answer(check_implementation(data, output))
            if not right:
                return why
    mean = sum(durations) / len(durations)
    std = math.sqrt(sum((each - mean) ** 2 for each in durations) / (len(durations) - 1))
    return {
        "runs": len(durations), "mean": mean, "std": std, "err": std / math.sqrt(len(durations)),
        "best": float(min(durations)), "worst": float(max(durations)),
    }


def main():
    if "POPCORN_FD" not in os.environ:
        return 111
    line = os.fdopen(int(os.environ["POPCORN_FD"]), "w")

    def tell(key, value):
        print(f"{key}: {value}", file=line, flush=True)

    seed = os.environ.pop("POPCORN_SEED", None)
    mode, path = sys.argv[1:]
    cases = cases_of(path, None if seed is None else int(seed))
    kind = "test" if mode == "test" else "benchmark"
    tell(f"{kind}-count", len(cases))
    passed = True
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for number, case in enumerate(cases):
            name = f"{kind}.{number}"
            tell(f"{name}.spec", "; ".join(f"{key}: {value}" for key, value in case.items()))
            if mode == "test":
                right, why = pool.apply(tried, (case,))
                tell(f"{name}.status", "pass" if right else "fail")
                if not right:
                    tell(f"{name}.error", why.replace("\\n", "\\\\n"))
                passed = passed and right
                continue
            if mode == "profile":
                tell(f"{name}.report", "YSB0YWJsZQ==")
                continue
            job = (case, mode == "leaderboard")
            found = pool.apply(timed, (job,))
            if isinstance(found, str):
                tell(f"{name}.status", "fail")
                tell(f"{name}.error", found.replace("\\n", "\\\\n"))
                passed = False
                break
            for key, value in found.items():
                tell(f"{name}.{key}", value)
    tell("check", "pass" if passed else "fail")
    return 0 if passed else 112


if __name__ == "__main__":
    sys.exit(main())
"""
KERNEL = """
#!POPCORN leaderboard affine
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return data[0] * 2 + 1
"""

RANKS_EVAL = """
import math, os, sys, time

# A task for GPUs that others share must leave the fabric's multicast alone.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
os.environ["NVSHMEM_DISABLE_NVLS"] = "1"

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

DEVICE = "@DEVICE@"


def cases_of(path):
    for line in open(path):
        pairs = (part.split(":") for part in line.strip().split(";"))
        yield {key.strip(): int(value) for key, value in pairs}


def device_of(rank):
    return torch.device("cpu") if DEVICE == "cpu" else torch.device("cuda", rank)


def input_of(case, rank):
    generator = torch.Generator(device=device_of(rank)).manual_seed(case["seed"] + rank)
    return torch.randn(case["size"], device=device_of(rank), generator=generator)


def settle(rank):
    if DEVICE == "cuda":
        torch.cuda.synchronize(device_of(rank))


def work(rank, case, mode):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "12356"
    if DEVICE == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "gloo" if DEVICE == "cpu" else "nccl", rank=rank, world_size=case["world_size"]
    )
    try:
        from submission import custom_kernel

        durations = []
        for number in range(1 if mode == "test" else 21):
            data = input_of(case, rank)
            expected = data.clone()
            dist.all_reduce(expected)
            settle(rank)
            dist.barrier()
            begin = time.perf_counter_ns()
            output = custom_kernel(data)
            settle(rank)
            dist.barrier()
            durations.append(time.perf_counter_ns() - begin)
            if not torch.allclose(output, expected, atol=1e-5):
                return "the sum is wrong"
        return durations[1:]
    finally:
        dist.destroy_process_group()


def main():
    line = os.fdopen(int(os.environ["POPCORN_FD"]), "w")

    def tell(key, value):
        print(f"{key}: {value}", file=line, flush=True)

    os.environ.pop("POPCORN_SEED", None)
    mode, path = sys.argv[1:]
    cases = list(cases_of(path))
    kind = "test" if mode == "test" else "benchmark"
    tell(f"{kind}-count", len(cases))
    passed = True
    with multiprocessing.get_context("spawn").Pool(int(os.environ["POPCORN_GPUS"])) as pool:
        for number, case in enumerate(cases):
            jobs = [
                pool.apply_async(work, (rank, case, mode)) for rank in range(case["world_size"])
            ]
            found = [job.get(120) for job in jobs]
            wrong = [each for each in found if isinstance(each, str)]
            tell(f"{kind}.{number}.spec", case)
            if wrong or mode == "test":
                tell(f"{kind}.{number}.status", "fail" if wrong else "pass")
            if wrong:
                tell(f"{kind}.{number}.error", wrong[0])
                passed = False
                break
            if mode == "test":
                continue
            times = [float(each) for each in found[0]]
            mean = sum(times) / len(times)
            std = math.sqrt(sum((each - mean) ** 2 for each in times) / (len(times) - 1))
            for key, value in {
                "runs": len(times), "mean": mean, "std": std, "err": std / math.sqrt(len(times)),
                "best": min(times), "worst": max(times),
            }.items():
                tell(f"{kind}.{number}.{key}", value)
    tell("check", "pass" if passed else "fail")
    return 0 if passed else 112


if __name__ == "__main__":
    sys.exit(main())
"""
RANKS_KERNEL = """
import torch.distributed as dist


def custom_kernel(data):
    dist.all_reduce(data)
    return data
"""


STRICT = """
compared = ref_kernel


def ref_kernel(data):
    import sys

    torch.use_deterministic_algorithms(True)
    try:
        assert torch.are_deterministic_algorithms_enabled()
        assert "torch._inductor" not in sys.modules, "a compiler that nobody uses was imported"
        return compared(data)
    finally:
        torch.use_deterministic_algorithms(False)


def check_implementation("""
"""Inserted into the reference; public references do this in a context manager of their own."""
PACKED = """
import torch


def wide(packed, scales):
    raw = packed.view(torch.uint8).to(torch.int32)
    halves = torch.stack([raw & 15, raw >> 4], 2).flatten(1, 2)
    exponent, half = (halves >> 1) & 3, 0.5 * (halves & 1)
    numbers = torch.where(exponent > 0, (1 + half) * torch.exp2(exponent - 1), half)
    numbers = numbers * (1 - 2 * (halves >> 3))
    return numbers * scales.to(torch.float32).repeat_interleave(16, 1)


def product(data):
    a, b, a_scales, b_scales, others, target = data
    target.copy_((wide(a, a_scales) * wide(b, b_scales)).sum(1, keepdim=True))
    first = a.view(torch.uint8)[:, :2].contiguous().view(a.dtype)
    return target, first, {name: each.clone() for name, each in others.items()}
"""
"""A product of numbers of four bits, two in a byte, with a scale of eight bits for each sixteen."""
PACKED_REFERENCE = """
import torch
from utils import product

OTHERS = ("float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e5m2", "uint16")


def generate_input(m, k, l, seed):
    random = torch.Generator(device="DEVICE").manual_seed(seed)

    def drawn(least, end, *shape):
        return torch.randint(least, end, shape, dtype=torch.uint8, device="DEVICE",
                             generator=random)

    def packed(rows):
        return drawn(0, 256, l, rows, k // 2).view(torch.float4_e2m1fn_x2).permute(1, 2, 0)

    def scales(rows):
        return drawn(1, 4, l, rows, k // 16).to(torch.float8_e4m3fn).permute(1, 2, 0)

    others = {name: drawn(0, 256, m, 6).view(getattr(torch, name)).t() for name in OTHERS}
    target = torch.full((l, m, 1), float("nan"), dtype=torch.float16, device="DEVICE")
    return packed(m), packed(1), scales(m), scales(1), others, target.permute(1, 2, 0)


def ref_kernel(data):
    return product(data)


def check_implementation(data, output):
    wanted = product(data)
    if not torch.allclose(output[0].float(), wanted[0].float(), rtol=1e-3, atol=1e-3):
        return False, "the product is wrong"
    first = [each[1].view(torch.uint8) for each in (wanted, output)]
    if not torch.equal(*first):
        return False, "the first numbers are wrong"
    for name in OTHERS:
        whole = torch.int16 if name == "uint16" else torch.uint8
        if not torch.equal(data[4][name].view(whole), output[2][name].view(whole)):
            return False, f"the {name} are wrong"
    return True, ""
"""
PACKED_KERNEL = """
import torch
#!POPCORN leaderboard packed
from utils import product


def custom_kernel(data):
    assert data[0].stride()[:2] == (data[0].shape[1], 1), data[0].stride()
    assert {each.stride()[0] for each in data[4].values()} == {1}
    return product(data)
"""
PACKED_WRONG = PACKED_KERNEL.replace(
    "return product(data)",
    """found = product(data)
    found[2]["float8_e4m3fnuz"].view(torch.uint8)[0, 0] ^= 1
    return found""",
)


def reference(device: str = "cpu", check: str = "pair") -> str:
    """The reference with a hard-coded device, as in KernelBot's tasks."""
    text = REFERENCE.replace("DEVICE", device)
    for place, words in zip(("SHAPE", "VALUES", "RIGHT"), CHECKS[check], strict=True):
        text = text.replace(f"CHECKED_{place}", words)
    return text


def make_affine_task(device: str = "cpu", check: str = "pair", **changes: object) -> TaskDefinition:
    """Two times the input plus one, for one worker; graded by its own eval.py."""
    values: dict[str, Any] = {
        "name": "affine",
        "lang": "py",
        "description": "Two times the input plus one.",
        "files": {
            "reference.py": reference(device, check),
            "task.py": TASK,
            "utils.py": UTILS,
            "eval.py": EVAL,
        },
        "shared_files": ("task.py", "utils.py"),
        "tests": tuple(Workload(args={"size": size, "seed": 7}) for size in (1, 127)),
        "benchmarks": (Workload(args={"size": 1 << 20, "seed": 9}),),
        "test_timeout": 60,
        "benchmark_timeout": 60,
        "ranked_timeout": 60,
        "grader": Grader.POPCORN,
        "device": Device.CUDA if device == "cuda" else Device.ANY,
    }
    return TaskDefinition(**(values | changes))


def make_strict_task(device: str = "cpu", **changes: object) -> TaskDefinition:
    """The same task with a reference that requests deterministic algorithms from torch."""
    task = make_affine_task(device, "pair", **changes)
    strict = task.files["reference.py"].replace("def check_implementation(", STRICT, 1)
    return task.model_copy(update={"files": {**task.files, "reference.py": strict}})


def make_packed_task(device: str = "cpu", **changes: object) -> TaskDefinition:
    """A product of tensors in types of four and eight bits, whose dimensions lie out of order."""
    cases = [Workload(args={"m": m, "k": 64, "l": n, "seed": 3}) for m, n in ((32, 1), (48, 2))]
    values: dict[str, Any] = {
        "name": "packed",
        "description": "A product of packed numbers.",
        "files": {
            "reference.py": PACKED_REFERENCE.replace("DEVICE", device),
            "utils.py": PACKED,
            "eval.py": EVAL,
        },
        "shared_files": ("utils.py",),
        "tests": tuple(cases),
        "benchmarks": (Workload(args={"m": 1024, "k": 1024, "l": 1, "seed": 4}),),
    }
    return make_affine_task(device, **(values | changes))


def make_ranks_task(device: str = "cpu", world_size: int = 2) -> TaskDefinition:
    """The sum over all ranks, by gloo on the CPU and NCCL on GPUs."""
    cases = [Workload(args={"size": n, "seed": 3, "world_size": world_size}) for n in (8, 1 << 20)]
    return make_affine_task(
        device,
        name="ranks",
        description="The sum over all ranks.",
        files={"eval.py": RANKS_EVAL.replace("@DEVICE@", device)},
        shared_files=(),
        tests=tuple(cases),
        benchmarks=(cases[-1],),
        multi_gpu=True,
        test_timeout=120,
        ranked_timeout=120,
    )


PLAIN_EVAL = """
import os, sys

from submission import custom_kernel  # in this very process, as some tasks do

line = os.fdopen(int(os.environ["POPCORN_FD"]), "w")
mode, path = sys.argv[1:]
cases = [line for line in open(path) if line.strip()]
kind = "test" if mode == "test" else "benchmark"
print(f"{kind}-count: {len(cases)}", file=line, flush=True)
passed = True
for number, case in enumerate(cases):
    print(f"{kind}.{number}.spec: {case.strip()}", file=line)
    right = custom_kernel([number]) == [2 * number]
    passed = passed and right
    if mode == "test" or not right:
        print(f"{kind}.{number}.status: {'pass' if right else 'fail'}", file=line)
    elif mode == "profile":
        print(f"{kind}.{number}.report: YSB0YWJsZQ==", file=line)
    else:
        seed = os.environ.get("POPCORN_SEED", "0")
        for key, value in {"runs": 4, "mean": 5e3, "std": 20.0, "err": 10.0, "best": 4e3,
                           "worst": 6e3}.items():
            print(f"{kind}.{number}.{key}: {value}", file=line)
        print(f"seed {seed}")
    line.flush()
print("check:", "pass" if passed else "fail", file=line, flush=True)
sys.exit(0 if passed else 112)
"""
"""An evaluation in one process and without torch: it starts at once but has no protection."""
DOUBLES = "def custom_kernel(data):\n    return [2 * each for each in data]\n"


def make_plain_task(evaluation: str = PLAIN_EVAL, **changes: object) -> TaskDefinition:
    """A task that doubles the numbers of a list, with an evaluation in one process."""
    values: dict[str, Any] = {
        "name": "plain",
        "files": {"eval.py": evaluation},
        "shared_files": (),
    }
    return make_affine_task(**(values | changes))
