"""What runs under the profiler of kernels, run here on the CPU."""

from pathlib import Path

import pytest
import torch

from runners.contract.task import TaskFormat
from runners.harness.build.loading import pack_weights
from runners.harness.profile.program import fresh_argument, run
from runners.harness.protocol.arena import Arena, lay_out
from runners.harness.protocol.channel import ProfiledCall
from runners.languages import Recipe
from tests.doubles.kernels import RIGHT

COUNTS = "from pathlib import Path\ndef custom_kernel(data):\n    data[0].add_(1)\n"
COUNTS += "    with Path('seen').open('a') as file: print(data[0].sum().item(), file=file)\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def call_on(data: object, content: Path, **changes: object) -> ProfiledCall:
    """An order whose input lies in the file."""
    plan = lay_out(data)
    with Arena(max(4096, plan.host_size)) as arena:
        arena.write(plan.node, data)
        content.write_bytes(arena.buffer[:])
    recipe = Recipe(language="py", submission_file="submission.py")
    order = ProfiledCall(
        recipe=recipe, files={"submission.py": COUNTS}, threads=1, warm_ups=2, value=plan.node
    )
    return order.model_copy(update=changes)


def test_each_call_has_an_input_of_its_own(home: Path) -> None:
    run(call_on([torch.zeros(3), "x"], home / "input.bin"), home / "input.bin")
    assert (home / "seen").read_text() == "3.0\n" * 3


def test_an_input_is_as_it_was(home: Path) -> None:
    data = {"a": torch.arange(12).view(3, 4).t(), "b": (1, 2.5, None), "c": torch.empty(0, 2)}
    found = fresh_argument(call_on(data, home / "input.bin"), home / "input.bin")
    assert torch.equal(found["a"], data["a"])  # type: ignore[arg-type]
    assert found["a"].stride() == (1, 4)
    assert found["b"] == (1, 2.5, None)
    assert found["c"].shape == (0, 2)


TELLING = (
    RIGHT
    + """
forward = ModelNew.forward

def telling(model, x):
    print("called")
    return forward(model, x)

ModelNew.forward = telling
"""
)


def test_a_model_can_be_called_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = torch.nn.Linear(32, 32)
    state = {f"linear.{name}": value for name, value in layer.state_dict().items()}
    data = {
        "seed": 1,
        "precision": "fp32",
        "init": [32],
        "weights": pack_weights(state, "cpu"),
        "inputs": [torch.ones(2, 32)],
    }
    recipe = Recipe(language="py", submission_file="submission.py", format=TaskFormat.KERNELBENCH)
    order = call_on(data, home / "input.bin", recipe=recipe, files={"submission.py": TELLING})
    run(order, home / "input.bin")
    assert capsys.readouterr().out == "called\n" * (order.warm_ups + 1)
