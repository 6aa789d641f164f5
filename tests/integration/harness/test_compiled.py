"""A kernel in C++, compiled by torch inside the sandbox: once for all candidates."""

import shutil

import pytest

from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.judging import make_judging, make_sort_task, serving

TOOLS = ("ninja", "g++")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]

COMPILED = '''
import ctypes, os, time
from pathlib import Path

from torch.utils.cpp_extension import load

folder = Path(os.environ["TORCH_EXTENSIONS_DIR"])
source = folder / "sorting.cpp"
folder.mkdir(parents=True, exist_ok=True)
if not source.exists():  # as load_inline does it
    source.write_text("""
#include <algorithm>
#include <regex>
extern "C" void sort_floats(float* x, long n) {
    if (std::regex_match("a1", std::regex("[a-z][0-9]"))) std::sort(x, x + n);
}
""")  # without torch's headers, which take half a minute
library = folder / "sorting" / "sorting.so"
library.parent.mkdir(exist_ok=True)
begin = time.monotonic()
made_before = library.exists() and library.stat().st_mtime_ns
places = {"sources": [str(source)], "build_directory": str(library.parent)}
load(name="sorting", **places, is_python_module=False)
seconds = time.monotonic() - begin
print("made", bool(made_before), library.stat().st_mtime_ns, round(seconds, 3))
sort_floats = ctypes.CDLL(str(library)).sort_floats

def custom_kernel(data):
    copy = data[0].clone()
    sort_floats(ctypes.c_void_p(copy.data_ptr()), ctypes.c_long(copy.numel()))
    return copy
'''


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"no C++ can be compiled here without {MISSING}")
def test_a_kernel_is_compiled_once_and_not_in_every_round() -> None:
    task = make_sort_task(test_timeout=300, ranked_timeout=60)

    with serving() as harness:
        found = harness.evaluate(make_judging(COMPILED, Mode.RANKED, task=task))

    assert found.verdict is Verdict.PASSED, found.message
    told = [line.split()[1:] for line in found.log.splitlines() if line.startswith("made")]
    assert [before for before, _, _ in told] == ["False", "True", "True"]
    assert len({made for _, made, _ in told}) == 1  # the very file that the first one compiled
    compiling, *loading = (float(seconds) for _, _, seconds in told)
    assert sum(loading) < 0.5 * compiling
    assert compiling <= found.durations_s["build"] < 1.5 * compiling
