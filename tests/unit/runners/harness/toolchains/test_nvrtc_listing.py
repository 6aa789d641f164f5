"""What is read of a compiler's output; real output is read in languages/test_cuda.py."""

from runners.contract.launch import Compiled
from runners.harness.toolchains.nvrtc import (
    MAX_LOG,
    parameter_sizes,
    remarks,
    resources,
    shortened,
)

LOG = """\
submission.cu(3): warning #177-D: variable "x" was declared but never referenced
      int x;
          ^

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Used 99 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z3addPf' for 'sm_80'
ptxas info    : Function properties for _Z3addPf
ptxas         .     520 bytes stack frame, 596 bytes spill stores, 600 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 400 bytes smem, 6 bytes cmem[0], 4 bytes cmem[2]
"""
PTX = """
.visible .entry other()
{ }
.visible .entry _Z3addPfS(
\t.param .u64 .ptr .global .align 4 _Z3addPfS_param_0,
\t.param .u8 _Z3addPfS_param_1,
\t.param .align 8 .b8 _Z3addPfS_param_2[24]
)
{
"""


def test_the_resources_of_one_kernel_among_several_are_read() -> None:
    assert resources(LOG, "_Z3addPf") == Compiled(
        registers=14, spill_stores=596, spill_loads=600, stack=520, shared=400, constant=10
    )
    assert resources(LOG, "missing") is None
    other = resources(LOG, "other")
    assert other is not None
    assert (other.registers, other.constant) == (99, None)


def test_warnings_remain() -> None:
    assert remarks(LOG).splitlines()[0].startswith("submission.cu(3): warning")
    assert "ptxas" not in remarks(LOG)
    assert remarks("ptxas info    : 0 bytes gmem\n") == ""


def test_the_bytes_of_every_parameter_are_read() -> None:
    assert parameter_sizes(PTX, "_Z3addPfS") == (8, 1, 24)
    assert parameter_sizes(PTX, "other") == ()


def test_a_long_log_is_cut() -> None:
    assert shortened("x" * MAX_LOG) == "x" * MAX_LOG
    assert shortened("x" * 99_999) == "x" * MAX_LOG + "\n... and more"
