"""What memory for outputs holds before a call; no GPU is needed."""

import torch

from runners.harness.judge.poison import PoisonedSectors
from runners.harness.protocol.values import TensorNode


def test_a_sector_of_each_output_has_the_poison_of_its_type() -> None:
    """Sectors that an output has only in part, or that are of no output, keep their bytes."""
    memory = torch.zeros(4096 + 7, dtype=torch.uint8)
    nodes = [
        TensorNode(dtype="float32", shape=(24,), stride=(1,), offset=32),
        TensorNode(dtype="bool", shape=(100,), stride=(1,), offset=1000),
        TensorNode(dtype="float64", shape=(3,), stride=(1,), offset=2048),
    ]

    PoisonedSectors(memory, nodes, None).queue()

    assert memory[32:128].view(-1, 8).tolist() == [[0xFF] * 4 + [0x7B] * 4] * 12
    truths = memory[1024:1088].tolist()
    assert truths in ([0, 1] * 32, [1, 0] * 32)
    memory[32:128] = memory[1024:1088] = 0
    assert not memory.any()
    memory.zero_()
    PoisonedSectors(memory, nodes, (1, 2)).queue()
    assert memory[1024:1088].tolist() == [1, 2] * 32
    PoisonedSectors(memory, nodes[2:], None).queue()
    PoisonedSectors(memory, [], None).queue()
    assert not memory[2048:].any()
