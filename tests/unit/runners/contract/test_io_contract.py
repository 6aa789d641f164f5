import pytest
from pydantic import ValidationError

from runners.contract.io_contract import (
    Contract,
    ContractScalar,
    Fill,
    KernelCall,
    KernelKind,
    Literals,
    ReferenceKernel,
    Side,
    TensorArgument,
)

DRAWN = TensorArgument(name="x", dtype="float32", shape=(2,), fill=Fill(seed=3, low=-1.0))
LITERAL = TensorArgument(name="y", dtype="bool", shape=(1,), literals=Literals(data="AQ=="))
CALL = KernelCall(
    kind=KernelKind.TRITON,
    args=(DRAWN, ContractScalar(name="n", value=2), LITERAL),
    num_warps=8,
)
OTHER = KernelCall(kind=KernelKind.TORCH, function_name="f")
REFERENCE = ReferenceKernel(call=OTHER, source="x", file_name="kernel.py", atol=0.0, rtol=0.1)


def test_a_contract_travels_as_json() -> None:
    contract = Contract(custom=CALL, reference=REFERENCE, drawn_by=Side.REFERENCE)
    text = contract.model_dump_json(exclude_none=True)
    assert Contract.model_validate_json(text) == contract


def test_a_candidate_is_told_no_values() -> None:
    text = CALL.bare().model_dump_json()
    assert "AQ==" not in text
    assert '"seed"' not in text
    assert [arg.name for arg in CALL.bare().args or ()] == ["x", "n", "y"]
    assert OTHER.bare() == OTHER


def test_each_side_has_its_call() -> None:
    both = Contract(custom=CALL, reference=REFERENCE)
    assert both.call_of(Side.CUSTOM) == CALL
    assert both.call_of(Side.REFERENCE) == OTHER
    assert Contract(custom=CALL).call_of(Side.REFERENCE) == CALL


def test_a_tolerance_below_nothing_is_refused() -> None:
    with pytest.raises(ValidationError):
        ReferenceKernel(call=OTHER, source="x", file_name="kernel.py", atol=-1.0, rtol=0.1)
