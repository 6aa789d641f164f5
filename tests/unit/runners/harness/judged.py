"""Submissions and tasks of many shapes, for the tests that run real candidates."""

from runners.contract.task import TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from tests.doubles.judging import SORTED, make_sort_task

BODY = "import torch, os\ndef custom_kernel(data):\n    "
RIGHT = "return torch.sort(data[0]).values\n"

REFUSED: dict[str, tuple[str, Verdict, Stage, str]] = {
    "wrong values": (BODY + "return data[0]*2", Verdict.WRONG_ANSWER, Stage.TEST, "mismatch"),
    "wrong shape": (BODY + "return data[0][:3]", Verdict.WRONG_ANSWER, Stage.TEST, "shape [3]"),
    "wrong type": (
        BODY + "return data[0].double()", Verdict.WRONG_ANSWER, Stage.TEST, "float64"
    ),
    "a list": (BODY + "return [data[0]]", Verdict.WRONG_ANSWER, Stage.TEST, "is a list"),
    "a changed input": (
        BODY + "right = torch.sort(data[0]).values; data[0].zero_(); return right",
        Verdict.WRONG_ANSWER, Stage.TEST, "changed an input",
    ),
    "a sparse tensor": (
        BODY + "return data[0].to_sparse()", Verdict.INVALID_SUBMISSION, Stage.TEST, "layout"
    ),
    "a set": (BODY + "return {1}", Verdict.INVALID_SUBMISSION, Stage.TEST, "type set"),
    "nothing": (BODY + "pass", Verdict.INVALID_SUBMISSION, Stage.TEST, "returned nothing"),
    "another device": (
        BODY + "return data[0].to('meta')", Verdict.WRONG_ANSWER, Stage.TEST, "has device meta"
    ),
    "too many parts": (
        BODY + "return [data[0]] * 5000",
        Verdict.INVALID_SUBMISSION, Stage.TEST, "too many parts",
    ),
    "no kernel": ("x = 1", Verdict.INVALID_SUBMISSION, Stage.BUILD, "no `custom_kernel`"),
    "bad signature": (
        "def custom_kernel(a, b): ...", Verdict.INVALID_SUBMISSION, Stage.BUILD, "one argument"
    ),
    "syntax error": ("def custom_kernel(data)\n  1", Verdict.BUILD_FAILED, Stage.BUILD, "line 1"),
    "failing import": ("import no_such_thing", Verdict.BUILD_FAILED, Stage.BUILD, "no_such_thing"),
    "raising": (
        BODY + "raise ValueError('boom')", Verdict.CRASHED, Stage.TEST, "ValueError: boom (line 3)"
    ),
    "exiting": (BODY + "os._exit(3)", Verdict.CRASHED, Stage.TEST, "exited with status 3"),
    "segfault": (
        "import ctypes\n" + BODY + "ctypes.string_at(0)", Verdict.CRASHED, Stage.TEST, "SIGSEGV"
    ),
    "hanging": (BODY + "while True: pass", Verdict.TIMED_OUT, Stage.TEST, "time limit"),
    "too much memory": (
        BODY + "return torch.ones(1 << 29)", Verdict.MEMORY_EXCEEDED, Stage.TEST, ""
    ),
    "growing shared memory": (
        "import mmap\n" + BODY + "held = []\n    while True:\n"
        "        held.append(mmap.mmap(-1, 8 << 20)); held[-1].write(bytes(8 << 20))",
        Verdict.MEMORY_EXCEEDED, Stage.TEST, "more than 512 MiB",
    ),
    "printing": (
        BODY + "while True: print('x' * 1000)", Verdict.OUTPUT_EXCEEDED, Stage.TEST, "64 KiB"
    ),
    "closing its line": (
        "import time\n" + BODY + "os.closerange(3, 64); time.sleep(60)",
        Verdict.DISALLOWED, Stage.TEST, "closed its socket",
    ),
    "speaking unasked": (
        BODY + "for fd in range(3, 30):\n        try: os.write(fd, b'{\"status\":\"done\"}')\n"
        "        except OSError: pass\n    " + RIGHT,
        Verdict.DISALLOWED, Stage.TEST, "",
    ),
    "speaking nonsense": (
        BODY + "for fd in range(3, 30):\n        try: os.write(fd, b'nonsense')\n"
        "        except OSError: pass\n    " + RIGHT,
        Verdict.DISALLOWED, Stage.TEST, "no valid reply",
    ),
    "filling the disk": (
        BODY + "f = open('/tmp/x', 'wb')\n    while True: f.write(bytes(1 << 20)); f.flush()",
        Verdict.OUTPUT_EXCEEDED, Stage.TEST, "",
    ),
    "one large file": (
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        + BODY + "f = open('/tmp/x', 'wb')\n    while True: f.write(bytes(1 << 20)); f.flush()",
        Verdict.OUTPUT_EXCEEDED, Stage.TEST, "",
    ),
}  # fmt: skip
"""What is submitted, by name: its verdict, the stage where it falls, and a part of the message."""

NESTED = """
import torch

def generate_input(size: int, seed: int):
    torch.manual_seed(seed)
    return {"pair": (torch.randn(size), [torch.arange(size)]), "scale": 3, "eps": 0.5, "name": "n",
            "half": torch.ones(2, size).to(torch.bfloat16).T, "empty": torch.zeros(0), "flag": True}

def ref_kernel(data):
    return {"sum": data["pair"][0] * data["scale"] + data["pair"][1][0], "rest": [data["half"], 2]}

def check_implementation(data, output):
    want = ref_kernel(data)
    right = torch.equal(want["sum"], output["sum"]) and output["rest"][1] == 2
    return right and torch.equal(want["rest"][0], output["rest"][0])
"""
NESTED_KERNEL = """
def custom_kernel(data):
    assert data["name"] == "n" and data["eps"] == 0.5 and data["flag"] is True
    assert data["half"].stride() == (1, data["half"].shape[0])
    total = data["pair"][0] * data["scale"] + data["pair"][1][0]
    return {"sum": total, "rest": [data["half"], 2]}
"""
SCALAR = """
def generate_input(seed: int):
    return seed

def check_implementation(data, output):
    return output == data + 1, f"{output} is not {data} + 1"
"""

ACCEPTED: dict[str, tuple[str, TaskDefinition]] = {
    "a new tensor": (SORTED, make_sort_task()),
    "the given output": (
        BODY + "data[1].copy_(torch.sort(data[0]).values)\n    return data[1]", make_sort_task()
    ),
    "in place, returned": (
        BODY + "return data[0].copy_(torch.sort(data[0]).values)", make_sort_task()
    ),
    "in place, allowed": (
        BODY + "right = torch.sort(data[0]).values; data[0].zero_(); return right",
        make_sort_task(mutates_inputs=True),
    ),
    "not contiguous": (
        BODY + "return torch.sort(data[0]).values.repeat(2, 1).T[:, 0]", make_sort_task()
    ),
    "nested": (NESTED_KERNEL, make_sort_task(NESTED)),
    "scalars": (
        "def custom_kernel(data): return data + 1",
        make_sort_task(SCALAR, tests=(Workload(args={"seed": 4}),)),
    ),
}  # fmt: skip
"""What must pass, by name, with its task."""
