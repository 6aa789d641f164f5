import pytest
import torch

from runners.contract.io_contract import ContractScalar, Role, TensorArgument
from runners.harness.build.kernel_calls import (
    NoOutputError,
    require_outputs,
    returned_outputs,
    written_outputs,
)

X = TensorArgument(name="x", dtype="float32")
BLOCK = ContractScalar(name="BLOCK", value=64, meta=True)
OUT = TensorArgument(name="out", dtype="float32", role=Role.OUTPUT)
BOTH = TensorArgument(name="both", dtype="float32", role=Role.INOUT)
a, b, c = (torch.zeros(n) for n in (1, 2, 3))


def test_outputs_are_found_by_role_wherever_constants_stand() -> None:
    assert written_outputs([BLOCK, OUT, X], [64, a, b]) == (a,)
    assert written_outputs([X, BOTH, OUT], [a, b, c]) == (b, c)


def test_without_roles_every_tensor_is_an_output() -> None:
    assert written_outputs([X, BLOCK, X], [a, 64, c]) == (a, c)


def test_what_is_returned_counts_before_what_is_written() -> None:
    assert returned_outputs((c, [b]), [X, OUT], [a, b]) == (c, b)
    assert returned_outputs(None, [X, OUT], [a, b]) == (b,)
    assert returned_outputs(3, [X, OUT], [a, b]) == (b,)


def test_no_tensor_at_all_is_an_error() -> None:
    with pytest.raises(NoOutputError, match="no output"):
        written_outputs([BLOCK], [64])
    with pytest.raises(NoOutputError, match="no output"):
        returned_outputs(3, [X], [a])
    with pytest.raises(NoOutputError, match="no output"):
        require_outputs(())
