"""The numbers of a launch come from the task's formulas, the heading's, and one case."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.contract.launch import LaunchError, LaunchPlan, formula_arguments, parse_sizes
from runners.contract.parameters import BufferArgument, LaunchScalar
from runners.contract.task import Launch, Workload

CASE = Workload(args={"size": 1000, "rows": 3, "seed": 99})


def launch(**changes: object) -> Launch:
    values = {
        "kernel": "add",
        "params": ("in0", "in1", "out0", "size"),
        "grid": ("(size + block_x - 1) // block_x",),
        "block": (256,),
    }
    return Launch.model_validate(values | changes)


def refusal(heading: str) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        LaunchPlan.of(launch()).overridden(heading).numbers(CASE)
    return caught.value


def test_a_case_gives_the_numbers_of_its_launch() -> None:
    found = LaunchPlan.of(launch(shared="4*block_x")).numbers(CASE)

    assert (found.grid, found.block, found.shared) == ((4, 1, 1), (256, 1, 1), 1024)
    assert found.arguments == (
        BufferArgument(kind="in", index=0),
        BufferArgument(kind="in", index=1),
        BufferArgument(kind="out", index=0),
        LaunchScalar(data="e8030000"),
    )


def test_a_heading_overrides_what_it_names_and_the_rest_follows() -> None:
    heading = "// mine\n//!PODIUM block 32, 8\n//!PODIUM shared 8*block_y\n__global__ void add"

    found = LaunchPlan.of(launch()).overridden(heading).numbers(CASE)

    assert (found.grid, found.block, found.shared) == ((32, 1, 1), (32, 8, 1), 64)


def test_a_heading_may_use_brackets_with_commas() -> None:
    heading = "//!PODIUM grid min(size, 7), max(1, rows)\n"

    assert LaunchPlan.of(launch()).overridden(heading).numbers(CASE).grid == (7, 3, 1)


def test_what_lies_below_the_first_line_of_code_or_is_no_override_changes_nothing() -> None:
    plan = LaunchPlan.of(launch())

    for text in ("int x;\n//!PODIUM block 1\n", "#!PODIUM block 1\n", "//!PODIUM leaderboard a\n"):
        assert plan.overridden(text) == plan


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("//\n//!PODIUM block sizes\n", "line 2 of the header: block: 'sizes' is no argument"),
        ("//!PODIUM block 0\n", "line 1 of the header: block: '0' is 0, which must be from 1"),
        ("//!PODIUM block 64, 17\n", "block: 64 x 17 x 1 threads; a block has at most 1024"),
        ("//!PODIUM block 1, 1, 65\n", "must be from 1 to 64"),
        ("//!PODIUM grid 1, 65536\n", "must be from 1 to 65535"),
        ("//!PODIUM grid 2**31\n", "must be from 1 to 2147483647"),
        ("//!PODIUM grid size / 3\n", "not a whole number"),
        ("//!PODIUM grid size / (rows - 3)\n", "divides by zero"),
        ("//!PODIUM shared 228*1024\n", "from 0 to 232448"),
        ("//!PODIUM shared 0 - 1\n", "from 0 to 232448"),
        ("//!PODIUM grid seed\n", "'seed' is no argument of this case"),
        ("//!PODIUM block rows, grid_x\n", "'grid_x' is no argument of this case; it has: size"),
    ],
)
def test_a_wrong_override_is_told_with_its_line(heading: str, words: str) -> None:
    assert words in str(refusal(heading))


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("//!PODIUM block 1, 2, 3, 4\n", "line 1 of the header: block: give one to three sizes"),
        ("//!PODIUM block\n", "line 1 of the header: block: '' is not a formula"),
        ("//!PODIUM block __import__('os')\n", "line 1 of the header: block: a formula has"),
        (
            "//!PODIUM block 1\n//!PODIUM block 2\n",
            "line 2 of the header: block was set in line 1",
        ),
    ],
)
def test_an_override_that_cannot_be_read_is_told_with_its_line(heading: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        LaunchPlan.of(launch()).overridden(heading)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"grid": ("cols",)}, "grid", "launch.grid: 'cols' is no argument"),
        ({"block": (2000,)}, "block", "launch.block: '2000' is 2000"),
        ({"params": ("size*2**40",)}, "params", "launch.params: 'size*2**40' is"),
        ({"shared": "rows/2"}, "shared", "launch.shared: 'rows/2' is 1.5"),
    ],
)
def test_a_wrong_task_is_told_by_its_key(changes: dict[str, object], key: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        LaunchPlan.of(launch(**changes)).numbers(CASE)
    error = caught.value
    assert (error.key, words in str(error)) == (key, True)
    assert "for the case 'size: 1000; rows: 3; seed: 99'" in str(error)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"kernel": "a b"}, "kernel"),
        ({"kernel": "a" * 201}, "kernel"),
        ({"kernel": "k<<<1>>>"}, "kernel"),
        ({"params": ("in0",) * 65}, "params"),
        ({"params": ("int8_t x",)}, "params"),
        ({"grid": ()}, "grid"),
        ({"block": (1, 1, 1, 1)}, "block"),
        ({"shared": "4,4"}, "shared"),
    ],
)
def test_a_launch_that_cannot_be_read_is_told_by_its_key(
    changes: dict[str, object], key: str
) -> None:
    with pytest.raises(LaunchError) as caught:
        LaunchPlan.of(launch(**changes))
    assert caught.value.key == key


def test_a_kernel_may_lie_in_a_namespace() -> None:
    assert LaunchPlan.of(launch(kernel="mine::add")).kernel == "mine::add"


def test_an_argument_may_not_be_called_as_the_blocks_size() -> None:
    with pytest.raises(LaunchError, match="'block_x' is the block's own size"):
        formula_arguments(Workload(args={"block_x": 3}))


def test_the_signature_has_the_bytes_of_every_parameter() -> None:
    plan = LaunchPlan.of(launch(params=("in0", "out0", "size", "double rows", "uint64 size")))

    found = plan.signature([CASE])

    assert found.sizes == (8, 8, 4, 8, 8)
    assert found.text == "add(in0, out0, size, double rows, uint64 size)"


def test_a_bare_number_must_have_one_type_in_all_cases() -> None:
    plan = LaunchPlan.of(launch(params=("out0", "scale")))
    cases = [Workload(args={"scale": 1}), Workload(args={"scale": 0.5})]

    with pytest.raises(LaunchError, match="'scale' has type int in some cases and float in"):
        plan.signature(cases)
    typed = LaunchPlan.of(launch(params=("out0", "float scale")))
    assert typed.signature(cases).sizes == (8, 4)


@given(st.text())
def test_any_heading_gives_numbers_or_a_refusal(text: str) -> None:
    grid: tuple[int, ...] = (1,)
    with suppress(LaunchError):
        grid = LaunchPlan.of(launch()).overridden(f"//!PODIUM grid {text}\n").numbers(CASE).grid
    assert min(grid) >= 1


def test_sizes_are_parted_at_the_commas_outside_of_brackets() -> None:
    found = parse_sizes("block", "max(1, (2)), 4")
    assert [each.text for each in found] == ["max(1, (2))", "4"]
