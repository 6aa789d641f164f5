import pytest
import torch
from torch import nn

from runners.harness.build.loading import load_weights, pack_weights, unpack_weights


class Net(nn.Module):
    def __init__(self, name: str = "linear", width: int = 3) -> None:
        super().__init__()
        setattr(self, name, nn.Linear(width, 5))
        self.norm = nn.BatchNorm1d(5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_arrive_as_they_were_sent(dtype: torch.dtype) -> None:
    state = Net().to(dtype).state_dict()
    found = unpack_weights(pack_weights(state, "cpu"))
    assert found.keys() == state.keys()
    for name, tensor in state.items():
        assert found[name].dtype is tensor.dtype
        assert torch.equal(found[name], tensor)


def test_a_model_without_weights_travels_too() -> None:
    assert unpack_weights(pack_weights({}, "cpu")) == {}


def test_thousands_of_weights_are_few_tensors_and_do_not_overlap() -> None:
    state = {f"w{n}": torch.full((n % 7,), float(n)) for n in range(3000)}
    packed = pack_weights(state, "cpu")
    assert len(packed["flat"]) == 1
    found = unpack_weights(packed)
    assert all(torch.equal(found[name], state[name]) for name in state)


@pytest.mark.parametrize("name", ["linear", "another"])
def test_a_model_gets_its_weights_by_name_or_by_order(name: str) -> None:
    given, model = Net(), Net(name)
    assert load_weights(model, unpack_weights(pack_weights(given.state_dict(), "cpu")))
    x = torch.randn(4, 3)
    assert torch.equal(getattr(model, name)(x), given.linear(x))  # type: ignore[operator]


def test_a_model_of_another_shape_keeps_its_own() -> None:
    model = Net(width=4)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert not load_weights(model, unpack_weights(pack_weights(Net().state_dict(), "cpu")))
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
