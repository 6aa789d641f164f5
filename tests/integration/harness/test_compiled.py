"""A kernel in C++, compiled by torch inside the sandbox: once for all candidates."""

import shutil

import pytest

from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.judging import make_judging, make_sort_task, serving

TOOLS = ("ninja", "g++")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]

INLINE = '''
import os, time
from pathlib import Path

from torch.utils.cpp_extension import load_inline

library = Path(os.environ["TORCH_EXTENSIONS_DIR"]) / "sorting" / "sorting.so"
begin = time.monotonic()
made_before = library.exists() and library.stat().st_mtime_ns
built = load_inline(name="sorting", functions=["sorted_copy"], cpp_sources="""
torch::Tensor sorted_copy(torch::Tensor x) { return std::get<0>(torch::sort(x)); }
""")
seconds = time.monotonic() - begin
print("made", bool(made_before), library.stat().st_mtime_ns, round(seconds, 3))

def custom_kernel(data):
    return built.sorted_copy(data[0])
'''


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"no C++ can be compiled here without {MISSING}")
def test_an_inline_kernel_is_compiled_once_and_not_in_every_round() -> None:
    task = make_sort_task(test_timeout=300, ranked_timeout=60)

    with serving() as harness:
        found = harness.evaluate(make_judging(INLINE, Mode.RANKED, task=task))

    assert found.verdict is Verdict.PASSED, found.message
    told = [line.split()[1:] for line in found.log.splitlines() if line.startswith("made")]
    assert [before for before, _, _ in told] == ["False", "True", "True"]
    assert len({made for _, made, _ in told}) == 1  # the very file that the first one compiled
    compiling, *loading = (float(seconds) for _, _, seconds in told)
    assert sum(loading) < 0.5 * compiling
    assert compiling <= found.durations_s["build"] < 1.5 * compiling
