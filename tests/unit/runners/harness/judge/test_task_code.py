import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runners.contract.task import Workload
from runners.contract.verdict import Verdict
from runners.harness.judge.session import PUBLIC_NONCE, public_nonce, public_seed, seed_of
from runners.harness.judge.task_code import SECOND_CHECK_S, KernelTask, seed_generators
from runners.harness.protocol.arena import lay_out
from runners.harness.protocol.values import ScalarNode
from runners.harness.sandbox.syscalls import memory_limited
from runners.harness.verdicts import MachineError, OutOfTimeError, VerdictError
from tests.doubles.judging import SORT, make_sort_task

WORKLOAD = Workload(args={"size": 8, "seed": 1})
M_MMAP_THRESHOLD = -3


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.delitem(__import__("sys").modules, "reference", raising=False)


def code(folder: Path, reference: str = SORT) -> KernelTask:
    (folder / "reference.py").write_text(reference)
    return KernelTask(folder)


def checking(folder: Path, body: str, more: str = "") -> KernelTask:
    check = f"def generate_input(): return 1\ndef check_implementation(data, output): {body}\n"
    return code(folder, check + more)


@given(st.integers(0, 1000), st.binary(min_size=1, max_size=80))
def test_a_seed_has_31_bits_and_depends_on_everything(index: int, nonce: bytes) -> None:
    other = Workload(args={"size": 9, "seed": 1})
    found = seed_of(nonce, WORKLOAD, index)

    assert 0 <= found < 2**31
    assert found == seed_of(nonce, WORKLOAD, index)
    assert found not in {seed_of(nonce, WORKLOAD, index + 1), seed_of(nonce, other, index)}


def test_seeds_of_two_secret_runs_differ() -> None:
    first, second = ([seed_of(nonce, WORKLOAD, i) for i in range(50)] for nonce in (b"a", b"b"))

    assert not set(first) & set(second)
    assert not set(first) & {seed_of(PUBLIC_NONCE, WORKLOAD, i) for i in range(50)}


def test_the_same_seed_gives_the_same_input(tmp_path: Path) -> None:
    task = code(tmp_path)

    first, again, other = (task.generate(WORKLOAD, seed)[0] for seed in (5, 5, 6))

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_generator_without_a_seed_is_seeded_too(tmp_path: Path) -> None:
    task = code(
        tmp_path,
        "import random, torch\n"
        "def generate_input(size): return torch.rand(size), random.random()\n"
        "def check_implementation(data, output): return True\n",
    )
    workload = Workload(args={"size": 3})

    first, again = task.generate(workload, 1), task.generate(workload, 1)

    assert torch.equal(first[0], again[0])
    assert first[1] == again[1] != task.generate(workload, 2)[1]


@pytest.mark.parametrize("on_gpu", [True, False])
def test_generators_are_seeded_as_torch_seeds_them_but_only_those_in_use(
    *, monkeypatch: pytest.MonkeyPatch, on_gpu: bool
) -> None:
    seeded: list[int] = []
    torch.manual_seed(7)
    wanted = torch.randn(3)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: on_gpu)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)

    seed_generators(7)

    assert torch.equal(torch.randn(3), wanted)
    assert seeded == ([7] if on_gpu else [])


def test_numpys_generator_is_seeded_too_if_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = np.random.RandomState(7).rand(3)
    seed_generators((1 << 32) + 7)
    assert np.random.rand(3).tolist() == wanted.tolist()

    seed_generators(7)
    monkeypatch.delitem(sys.modules, "numpy.random")
    seed_generators(8)
    assert np.random.rand(3).tolist() == wanted.tolist()


def test_the_reference_tells_the_shape_and_leaves_the_input_alone(tmp_path: Path) -> None:
    spoiling = SORT.replace(
        "    return torch.sort(data[0]).values", "    return data[0].zero_().int()"
    )
    task = code(tmp_path, spoiling)
    data = task.generate(WORKLOAD, 1)
    before = data[0].clone()

    assert task.expected(data) == lay_out(torch.zeros(8).int()).node
    assert torch.equal(data[0], before)


def test_without_a_reference_kernel_nothing_is_expected(tmp_path: Path) -> None:
    assert checking(tmp_path, "return True").expected(1) is None


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ("return True", None),
        ("return None", None),
        ("return ''", None),
        ("return True, 'never mind'", None),
        ("return False", "the output is wrong"),
        ("return False, ''", "the output is wrong"),
        ("return False, 'off by one'", "off by one"),
        ("return 'off by two'", "off by two"),
        ("import torch; return torch.tensor(False), 'tensor'", "tensor"),
    ],
)
def test_every_form_of_a_checks_answer_is_understood(
    tmp_path: Path, answer: str, refusal: str | None
) -> None:
    assert checking(tmp_path, answer).mismatch(1, 2, None) == refusal


REFERENCE = "def ref_kernel(data): return 2\n"


@pytest.mark.parametrize("answer", ["return 1", "return (True,)", "return {}"])
def test_another_form_is_the_tasks_fault(tmp_path: Path, answer: str) -> None:
    with pytest.raises(VerdictError, match="check_implementation returned a") as ruling:
        checking(tmp_path, answer, REFERENCE).mismatch(1, 3, None)

    assert ruling.value.verdict is Verdict.TASK_ERROR


@pytest.mark.parametrize("reference", ["", REFERENCE])
@pytest.mark.parametrize(
    ("answer", "output"),
    [("return output == 2", torch.ones(3)), ("return output and output == 2", {})],
)
def test_an_output_for_which_the_check_returns_another_type_is_wrong(
    tmp_path: Path, reference: str, answer: str, output: object
) -> None:
    task = checking(tmp_path, answer, reference)

    assert "check_implementation returned a" in (task.mismatch(1, output, None) or "")
    assert task.mismatch(1, 2, None) is None


def test_a_wrong_structure_never_reaches_the_tasks_check(tmp_path: Path) -> None:
    task = checking(tmp_path, "raise AssertionError")

    assert task.mismatch(1, torch.zeros(2), lay_out(torch.zeros(3)).node) == (
        "the output has shape [2], [3] is expected"
    )


@pytest.mark.parametrize(
    ("reference", "step"),
    [
        ("raise OSError('gone')", "reference.py failed: OSError: gone"),
        ("x = (", "reference.py failed: SyntaxError"),
        ("", "no function `generate_input`"),
        ("def generate_input(): ...\n", "no function `check_implementation`"),
    ],
)
def test_a_broken_reference_is_the_tasks_fault(tmp_path: Path, reference: str, step: str) -> None:
    with pytest.raises(VerdictError, match=step) as ruling:
        code(tmp_path, reference)

    assert ruling.value.verdict is Verdict.TASK_ERROR


@pytest.mark.parametrize("raising", ["1 / 0", "(_ for _ in ()).throw(KeyboardInterrupt)"])
@pytest.mark.parametrize("step", ["generate_input", "ref_kernel", "check_implementation"])
def test_whatever_the_tasks_code_raises_is_the_tasks_fault(
    tmp_path: Path, step: str, raising: str
) -> None:
    names = ("generate_input(**_)", "ref_kernel(_)", "check_implementation(*_)")
    task = code(
        tmp_path,
        "".join(f"def {n}: return {raising if n.startswith(step) else 1}\n" for n in names),
    )
    calls: dict[str, Callable[[], object]] = {
        "generate_input": lambda: task.generate(WORKLOAD, 1),
        "ref_kernel": lambda: task.expected(1),
        "check_implementation": lambda: task.mismatch(1, 1, None),
    }

    with pytest.raises(VerdictError, match=f"the task's {step} failed: (Zero|Keyb)"):
        calls[step]()


@pytest.mark.parametrize("output", [["a list"], 1.5, "text", {}])
def test_an_output_that_a_check_cannot_take_is_wrong_where_no_reference_tells_its_form(
    tmp_path: Path, output: object
) -> None:
    task = checking(tmp_path, "return output + 1 == 0 or output.sum() > 0 or 'too small'")

    found = task.mismatch(1, output, None)

    assert found is not None
    assert "the output cannot be compared: " in found


@pytest.mark.parametrize("value", ["{1, 2}", "object()", "(x for x in ())"])
def test_a_reference_that_gives_what_cannot_travel_is_the_tasks_fault(
    tmp_path: Path, value: str
) -> None:
    task = code(
        tmp_path,
        f"def generate_input(): return {value}\ndef ref_kernel(_): return {value}\n"
        "def check_implementation(*_): return True\n",
    )
    calls: dict[str, Callable[[], object]] = {
        "input is or contains a value of type": lambda: task.plan(Workload(args={}), 1),
        "ref_kernel failed: Undescrib": lambda: task.expected(1),
    }
    for words, call in calls.items():
        with pytest.raises(VerdictError, match=f"the task's {words}") as ruling:
            call()
        assert ruling.value.verdict is Verdict.TASK_ERROR


@pytest.mark.parametrize(
    ("output", "limit"),
    [
        ("[0.1] * 1500", "the output of ref_kernel has too many parts"),
        ("10**5000", "an integer of more than 4,300 digits"),
    ],
)
def test_a_reference_that_returns_more_than_a_submission_may_is_the_tasks_fault(
    tmp_path: Path, output: str, limit: str
) -> None:
    task = checking(tmp_path, "return True", f"def ref_kernel(data): return {output}")

    with pytest.raises(VerdictError, match=limit) as ruling:
        task.expected(1)

    assert ruling.value.verdict is Verdict.TASK_ERROR


def test_a_generator_of_inputs_without_a_signature_is_the_tasks_fault(tmp_path: Path) -> None:
    with pytest.raises(VerdictError, match="generate_input failed: ValueError"):
        code(tmp_path, "generate_input = type\ncheck_implementation = id\n")


def test_a_reference_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_reference.py").write_text("ANSWER = 5\n")
    task = code(
        tmp_path,
        "from neighbour_of_reference import ANSWER\n"
        "def generate_input(**_): return ANSWER\ndef check_implementation(*_): return True\n",
    )

    assert task.generate(WORKLOAD, 1) == 5


def test_a_tests_seed_is_the_one_that_the_task_wrote() -> None:
    assert public_seed(make_sort_task(), Workload(args={"size": 3, "seed": 77})) == 77


def test_a_test_without_a_seed_has_one_that_anybody_may_compute() -> None:
    workload = Workload(args={"size": 3})

    assert public_seed(make_sort_task(), workload) == seed_of(PUBLIC_NONCE, workload, 0)


def test_a_seed_of_the_task_itself_is_paired_with_the_tests() -> None:
    task = make_sort_task(seed=5)

    assert public_seed(task, Workload(args={"size": 3, "seed": 7})) == 7 + 12 * 13 // 2
    assert public_nonce(task) != public_nonce(make_sort_task())


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ("math.isclose(output, 1.5)", 10**400),
        ("[5, 6][output] > 0", 1 << 40),
        ("1 / output > 0", 0),
    ],
)
def test_an_answer_that_makes_a_right_check_raise_is_wrong(
    tmp_path: Path, check: str, output: int
) -> None:
    task = checking(tmp_path, f"return {check}, ''", "import math\ndef ref_kernel(data): return 1")
    found = task.mismatch(1, output, ScalarNode(value=0))

    assert found is not None
    assert "the output cannot be compared: " in found


@pytest.mark.parametrize(
    "raised",
    [
        "next(iter(output))",
        "(_ for _ in ()).throw(Mismatch)",
        "open(f'/missing-{data}')",
        "exit('mismatch')",
        "(_ for _ in ()).throw(KeyboardInterrupt)",
        "(_ for _ in ()).throw(Nameless)",
        "last; last = 0",
    ],
)
@pytest.mark.parametrize("reference", ["", "def ref_kernel(data): return (1,)\n"])
def test_an_answer_that_makes_a_right_check_raise_anything_is_wrong(
    tmp_path: Path, raised: str, reference: str
) -> None:
    body = f"return output == (1,) or {raised}"
    classes = """class Mismatch(Exception): pass
class Nameless(BaseException):
    def __str__(self): raise KeyboardInterrupt
"""
    task = checking(tmp_path, body, classes + reference)

    found = task.mismatch(1, (), None)

    assert "the output cannot be compared: " in str(found)


@pytest.mark.parametrize(
    "returned",
    [
        "last",
        "all(last >= each for each in output or [1])",
        "max(output or [1], key=lambda each: last - each)",
    ],
)
def test_without_a_reference_a_variable_that_an_empty_output_leaves_unset_is_not(
    tmp_path: Path, returned: str
) -> None:
    body = f"\n    for last in output: pass\n    return {returned}"
    found = checking(tmp_path, body).mismatch(1, [], None)
    assert "the output cannot be compared: " in str(found)


def test_without_a_reference_a_name_that_does_not_exist_is_the_tasks_fault(
    tmp_path: Path,
) -> None:
    with pytest.raises(VerdictError, match="check_implementation failed: NameError"):
        checking(tmp_path, "return unknown").mismatch(1, 5, None)


@pytest.mark.parametrize(
    ("body", "kind"),
    [("import no_such_module", "ModuleNotFoundError"), ("import beside", "SyntaxError")],
)
def test_without_a_reference_a_failed_import_is_the_tasks_fault(
    tmp_path: Path, body: str, kind: str
) -> None:
    (tmp_path / "beside.py").write_text("def f(:\n")
    with pytest.raises(VerdictError, match=f"check_implementation failed: {kind}"):
        checking(tmp_path, body).mismatch(1, 5, None)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return __import__('ast').literal_eval(output) == [1]", "["),
        ("return eval(output, {}) == 1", "unknown"),
        ("return __import__('importlib').import_module(output) is None", "no_such_module"),
    ],
)
def test_without_a_reference_a_text_that_cannot_be_read_as_code_is_wrong(
    tmp_path: Path, body: str, text: str
) -> None:
    wrong = checking(tmp_path, body).mismatch(1, text, None)
    assert "the output cannot be compared: " in str(wrong)


@pytest.mark.parametrize(
    "error", [VerdictError(Verdict.TASK_ERROR, "the time is over"), MachineError("late")]
)
def test_the_end_of_the_time_in_a_check_is_not_the_outputs_fault(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = checking(tmp_path, "return True")

    def ended(*_: object) -> None:
        raise error

    monkeypatch.setattr(task, "_check", ended)
    with pytest.raises(type(error), match=str(error)):
        task.mismatch(1, 5, None)


def test_a_check_that_raises_on_the_references_own_answer_is_the_tasks_fault(
    tmp_path: Path,
) -> None:
    task = checking(tmp_path, "return 1 / 0", "def ref_kernel(data): return 5")

    with pytest.raises(VerdictError, match="check_implementation failed: ZeroDivisionError"):
        task.mismatch(1, 5, ScalarNode(value=5))


def test_an_uninitialised_input_shows_nothing_of_the_judges_memory(tmp_path: Path) -> None:
    body = "import torch\ndef generate_input(size, seed): return torch.empty(size)\n"
    task = code(tmp_path, body + "def check_implementation(data, output): return ''\n")
    for size in (1 << 10, 1 << 14, 1 << 18):
        freed = [torch.full((size,), 7.0) for _ in range(20)]
        del freed
        workload = Workload(args={"size": size, "seed": 1})
        assert all(task.generate(workload, 1).abs().gt(1e30).all() for _ in range(20))


ASSERTING = (
    "import torch\n"
    "def generate_input(): return torch.ones(2)\n"
    "def ref_kernel(data): return {reference}\n"
    "def check_implementation(data, output): torch.testing.assert_close(output, data)\n"
)


def test_a_failed_assertion_of_a_check_means_a_wrong_output(tmp_path: Path) -> None:
    task = code(tmp_path, ASSERTING.format(reference="data"))

    found = task.mismatch(torch.ones(2), torch.zeros(2), None)

    assert task.mismatch(torch.ones(2), torch.ones(2), None) is None
    assert "the output cannot be compared: AssertionError: " in str(found)


IN_PLACE = """
import torch

def generate_input(size: int, seed: int):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) + 0.1

def ref_kernel(data):
    return data.log_()

def check_implementation(data, output):
    torch.testing.assert_close(output, ref_kernel(data))
    return True, ""
"""


def test_a_wrong_output_is_wrong_although_the_check_has_changed_the_input(tmp_path: Path) -> None:
    task = code(tmp_path, IN_PLACE)
    data = task.generate(WORKLOAD, 1)
    expected = task.expected(data)
    assert task.mismatch(data, data.log(), expected) is None
    data = task.generate(WORKLOAD, 2)
    # The logarithm of a logarithm is no number, so a second check on the same input would fail.
    assert "AssertionError" in (task.mismatch(data, torch.zeros(8), expected) or "")


def test_a_wrong_output_of_a_train_is_wrong_although_further_inputs_exist(tmp_path: Path) -> None:
    task = code(tmp_path, IN_PLACE)
    inputs = [task.generate(WORKLOAD, seed) for seed in range(3)]
    expected = task.expected(inputs[0])
    for data in inputs:
        assert "AssertionError" in (task.mismatch(data, torch.zeros(8), expected) or "")


def test_an_assertion_that_the_reference_fails_too_is_the_tasks_fault(tmp_path: Path) -> None:
    task = code(tmp_path, ASSERTING.format(reference="data + 1"))

    with pytest.raises(VerdictError, match="check_implementation failed: AssertionError"):
        task.mismatch(torch.ones(2), torch.zeros(2), None)


def test_a_check_that_an_output_drives_out_of_memory_means_a_wrong_output(tmp_path: Path) -> None:
    found = checking(tmp_path, "raise MemoryError('too large')").mismatch(1, 2, None)

    assert found == "the output cannot be compared: MemoryError: too large"


def test_a_failed_check_that_holds_the_memory_allowed_does_not_blame_the_task(
    tmp_path: Path,
) -> None:
    kept = 96 << 20
    body = f"scratch = torch.empty({kept}, dtype=torch.uint8); assert output == 1; return True"
    task = checking(tmp_path, body, "import torch\ndef ref_kernel(data): return 1\n")

    with memory_limited(kept + kept // 2):
        assert "AssertionError" in (task.mismatch(1, 2, None) or "")


def test_the_alarm_after_an_output_has_failed_its_check_blames_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros just before the end of the time: the alarm came while the reference was checked."""
    task = checking(tmp_path, "assert output == 2", "def ref_kernel(_): return 2\n")

    def late(*_: object) -> None:
        raise OutOfTimeError(Verdict.TASK_ERROR, "the task's own code took longer")

    monkeypatch.setattr(task, "_try_check", late)

    assert "cannot be compared" in str(task.mismatch(1, 3, None))


def test_the_least_time_of_a_check_is_kept(tmp_path: Path) -> None:
    """A submission could otherwise make later checks seem to be as slow as usual."""
    task = checking(tmp_path, "return True")

    for seconds in (3.0, 1.0, 2.0):
        task.record_check(1, seconds)

    assert task.usual_check_s(1) == 1.0


@pytest.mark.parametrize("passed", ["", "the reference's own output", "another output"])
def test_a_failed_check_that_breaks_all_later_ones_does_not_blame_the_task(
    tmp_path: Path, passed: str
) -> None:
    """A worker that crashed ended the task's own pool."""
    body = "global broken; broken = broken or output != 2; assert not broken"
    task = checking(tmp_path, body, "broken = False\ndef ref_kernel(data): return 2\n")
    data = task.generate(Workload(args={}), 1)
    if passed == "the reference's own output":
        task.expected(data)
    elif passed:
        task.record_check(data, 1.0)

    if passed:
        assert "cannot be compared: AssertionError" in str(task.mismatch(data, 3, None))
        return
    with pytest.raises(VerdictError, match="check_implementation failed: AssertionError"):
        task.mismatch(data, 3, None)


def test_a_failed_check_ahead_decides_nothing(tmp_path: Path) -> None:
    """Some tasks accept no output of their own reference, such as one of another type."""
    task = checking(tmp_path, "exit('no list')", "def ref_kernel(data): return 2\n")

    task.expected(task.generate(Workload(args={}), 1))

    assert not task._checked_s


def test_a_failed_check_holds_nothing_while_the_references_output_is_checked(
    tmp_path: Path,
) -> None:
    """Its exception kept large tensors, so that sometimes the second check had no memory left."""
    body = """
    held = Held()
    global last, alive
    alive, last = last() is not None, weakref.ref(held)
    try:
        assert output == 2, f"{output} is wrong"
    except AssertionError as error:
        raise ValueError("wrong") from error
    return True
"""
    start = "import weakref\nclass Held: pass\nlast = lambda: None\ndef ref_kernel(_): return 2\n"
    task = checking(tmp_path, body, start)

    assert "wrong" in str(task.mismatch(1, 3, None))
    assert sys.modules["reference"].alive is False


def test_a_check_that_takes_too_much_memory_for_any_output_is_the_tasks_fault(
    tmp_path: Path,
) -> None:
    body = "import torch; return torch.empty(96 << 20, dtype=torch.uint8).numel() > output"
    task = checking(tmp_path, body, "def ref_kernel(data): return 1\n")
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, 1 << 20)  # an earlier test may have let it keep such blocks
    libc.malloc_trim(ctypes.c_size_t(0))

    with memory_limited(192 << 20):
        assert task.mismatch(1, 2, None) is None
    with (
        memory_limited(48 << 20),
        pytest.raises(VerdictError, match="can't allocate memory") as ruling,
    ):
        task.mismatch(1, 2, None)

    assert ruling.value.verdict is Verdict.TASK_ERROR


def test_a_check_that_needs_what_no_submission_can_return_is_the_tasks_fault(
    tmp_path: Path,
) -> None:
    """Torch's own named tuple is a tuple after its transfer."""
    reference = "import torch\ndef ref_kernel(data): return torch.ones(3).sort()"
    task = checking(tmp_path, "return bool((output.values == 1).all())", reference)
    output = (torch.ones(3), torch.arange(3))

    with pytest.raises(VerdictError, match="has no attribute 'values'") as ruling:
        task.mismatch(1, output, task.expected(1))

    assert ruling.value.verdict is Verdict.TASK_ERROR


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")
@pytest.mark.parametrize(
    ("made", "rows", "shape"),
    [
        ("sparse_coo_tensor(torch.stack(output[:2]), output[2], (1, 1))", [0], (1,)),
        ("sparse_csr_tensor(*output, (1, 1))", [0, 1], (1,)),
        ("sparse_csc_tensor(*output, (1, 1))", [0, 1], (1,)),
        ("sparse_bsr_tensor(*output, (1, 1))", [0, 1], (1, 1, 1)),
        ("sparse_bsc_tensor(*output, (1, 1))", [0, 1], (1, 1, 1)),
    ],
)
def test_a_wrong_index_of_a_sparse_tensor_makes_an_output_wrong(
    tmp_path: Path, made: str, rows: list[int], shape: tuple[int, ...]
) -> None:
    """Torch checks the indices only if it is told to, and otherwise reads and writes elsewhere."""
    task = checking(tmp_path, f"return torch.{made} is not None", "import torch\n")
    right, wrong = (
        (torch.tensor(rows), torch.tensor([column]), torch.ones(shape)) for column in (0, 1 << 30)
    )

    assert task.mismatch(1, right, None) is None
    assert "the output cannot be compared: " in str(task.mismatch(1, wrong, None))
    invariants: Any = torch.sparse.check_sparse_tensor_invariants
    assert not invariants.is_enabled()


@pytest.mark.parametrize(
    ("checked_s", "reference_s", "spent_s", "verdict"),
    [
        (0.2, 0.0, 9.0, Verdict.TIMED_OUT),
        (3.0, 0.0, 15.0, Verdict.TIMED_OUT),
        (5.0, 0.0, 8.0, Verdict.TIMED_OUT),
        (6.0, 0.0, 8.0, Verdict.TASK_ERROR),
        (None, 2.0, 15.0, Verdict.TIMED_OUT),
        (None, 2.0, 7.0, Verdict.TIMED_OUT),
        (None, 2.0, 1.9, Verdict.TASK_ERROR),
        (None, 0.1, 15.0, Verdict.TASK_ERROR),
    ],
)
def test_a_check_that_is_slow_only_for_an_output_is_not_the_tasks_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checked_s: float | None,
    reference_s: float,
    spent_s: float,
    verdict: Verdict,
) -> None:
    """A second check had 1.5 s, also where the task's own code takes longer."""
    now = [0.0]

    def takes(seconds: float, result: object) -> object:
        now[0] += seconds
        if isinstance(result, Exception):
            raise result
        return result

    late = OutOfTimeError(
        Verdict.TASK_ERROR, "the task's own code took longer than its time limits"
    )
    task = checking(tmp_path, "return True", "def ref_kernel(data): return 5")
    task.generate(Workload(args={}), 1)
    monkeypatch.setattr(task, "_check_ahead", lambda _: None)
    monkeypatch.setattr("runners.harness.judge.task_code.time.monotonic", lambda: now[0])
    monkeypatch.setattr(task, "_reference", lambda _: takes(reference_s, 5))
    expected = task.expected(1)
    if checked_s is not None:
        task.record_check(1, checked_s)
    monkeypatch.setattr(task, "_check", lambda *_: takes(spent_s, late))
    with pytest.raises(VerdictError) as ruling:
        task.mismatch(1, 6, expected)
    assert ruling.value.verdict is verdict


def test_how_long_a_check_usually_takes_is_known_after_the_first_or_guessed(tmp_path: Path) -> None:
    more = "def ref_kernel(data): return data\n"
    task = checking(tmp_path, "return output == data", more)
    data = task.generate(Workload(args={}), 1)
    assert task.usual_check_s(data) == float("inf")

    spec = task._spec_of(data)
    task._reference_s[spec] = 1.0
    assert task.usual_check_s(data) == 2.0
    task._reference_s[spec] = 0.1
    assert task.usual_check_s(data) == SECOND_CHECK_S
    task.record_check(data, 0.01)
    assert task.usual_check_s(data) == 0.01
