"""What of the seat on a GPU needs no GPU."""

import pytest
import torch

from runners.harness.cuda import pinned, seat
from runners.harness.cuda.driver import DriverError
from runners.harness.process import UnreadableError
from runners.harness.values import TensorNode, UndescribableError


class Buffer:
    """Stands in for memory of the device, of which there is but little."""

    open = 0

    def __init__(self, size: int) -> None:
        self.size = size

    @classmethod
    def create(cls, size: int) -> "Buffer":
        if size > 100:
            raise DriverError("out of memory")
        cls.open += 1
        return cls(size)

    def close(self) -> None:
        Buffer.open -= 1


@pytest.mark.parametrize(("sizes", "open_ones"), [((10, 20), 2), ((10, 200), 0), ((200, 10), 0)])
def test_where_not_all_device_memory_is_to_be_had_none_is_kept(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int], open_ones: int
) -> None:
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(seat, "DeviceBuffer", Buffer)
    monkeypatch.setattr(pinned.HostBuffer, "create", Buffer)
    monkeypatch.setattr(Buffer, "open", 0)

    assert [each.size for each in seat.share(*sizes)] == list(sizes)
    assert Buffer.open == open_ones


def described(**changes: object) -> TensorNode:
    node = TensorNode(dtype="float32", shape=(2, 3), stride=(1, 2), address=64, device="cuda")
    return node.model_copy(update=changes)


def test_a_described_output_is_laid_out_anew() -> None:
    node = seat.replan(described())

    assert isinstance(node, TensorNode)
    assert (node.shape, node.stride, node.offset, node.device) == ((2, 3), (3, 1), 0, "cuda")


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "quint8"}, {"dtype": "nonsense"}, {"device": "cpu"}, {"shape": (1 << 48,) * 3}],
)
def test_an_output_that_cannot_be_laid_out_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises((UnreadableError, UndescribableError, RuntimeError)):
        seat.replan(described(**changes))
