"""What is made of the words of compilers: no path of a machine, and the line that matters."""

import sys
import time

import pytest

from runners.harness.sandbox.diagnostics import (
    failed_build,
    first_error,
    truncated,
    without_paths,
    without_resources,
)

ERROR = """\
submission.cu(5): error: identifier "valu" is undefined
      push_back(2 * valu);
                    ^

1 error detected in the compilation of "submission.cu".
"""
MISSING = """\
/usr/bin/ld: /tmp/tmpxft_00004216_00000000-11_a.o: in function `main':
tmpxft_00004216_00000000-6_a.cudafe1.cpp:(.text.startup+0xa): undefined reference to `f(int)'
collect2: error: ld returned 1 exit status
"""
HOST = """\
In file included from submission.cu:2:
/opt/cuda/bin/../include/cuda_fp16.h:4504:10: fatal error: nv/target: No such file or directory
 4504 | #include <nv/target>
      |          ^~~~~~~~~~~
"""
USE = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_75'
ptxas info    : Function properties for _Z1kPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
nvlink info    : 0 bytes gmem
"""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (ERROR, 'submission.cu:5: error: identifier "valu" is undefined'),
        (USE + ERROR, 'submission.cu:5: error: identifier "valu" is undefined'),
        (without_paths(HOST, ("/opt/cuda",)),
         "cuda_fp16.h:4504: fatal error: nv/target: No such file or directory"),
        (without_paths(MISSING),
         "undefined reference to `f(int)'"),
        ("i.cu: Assembler messages:\ni.cu:1: Error: file not found: nope\n",
         "i.cu:1: Error: file not found: nope"),
        ("nvcc fatal   : Unknown option '--x'\n", "nvcc fatal   : Unknown option '--x'"),
        (f"{USE}ptxas error   : Entry function 'k' uses too much shared data\n{USE}",
         "ptxas error   : Entry function 'k' uses too much shared data"),
        ("a.cu(1): warning: odd\nstrange end\n", "strange end"),
        ("", "the compiler printed nothing"),
    ],
)  # fmt: skip
def test_the_first_error_is_told_with_its_place(said: str, line: str) -> None:
    assert first_error(said) == line


def test_no_folder_of_this_machine_is_told() -> None:
    said = f"{HOST}/task/eval.cu(3): error\n{sys.prefix}/lib/x/y.h(1): z\n{MISSING}"
    told = without_paths(said, ("/opt/cuda",))
    assert "cuda_fp16.h:4504:10" in told
    assert "\neval.cu(3): error\ny.h(1): z\nld: a.o: in function" in told
    for part in ("/opt", "/usr", "/task", sys.prefix, "tmpxft"):
        assert part not in told


@pytest.mark.parametrize(
    "line", ["      x = a /b/c; // not /a/path", "nv/target: No such", "http://usr/bin", "a/usr/b"]
)
def test_what_is_no_path_of_this_machine_stays(line: str) -> None:
    assert without_paths(line) == line


def test_what_kernels_use_is_left_out_where_asked_for() -> None:
    assert without_resources(USE + ERROR + USE) == ERROR


def test_a_long_text_is_cut_after_a_line_that_is_whole() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    short = truncated(text, 200)
    assert len(short.encode()) <= 200
    *kept, last = short.splitlines()
    assert text.startswith("\n".join(kept) + "\n")
    assert last == f"[... {1000 - len(kept)} lines are left out]"
    assert truncated("short\n", 200) == "short\n"


@pytest.mark.parametrize("begin", ["", "in function `", "fata", "error"])
def test_a_line_of_a_mebibyte_is_searched_in_linear_time(begin: str) -> None:
    line = begin + "a" * (1 << 20)
    used = time.process_time()

    assert first_error(line + "\nsaid last") == "said last"
    assert failed_build(f"[1/2] c++ -o a.o\n{line}\n") is None
    assert time.process_time() - used < 2


INLINE = """\
Error building extension 'mine': [1/3] c++ -MMD -c /tmp/job/.builds/mine/main.cpp -o m.o
[2/3] /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -c /tmp/job/mine/cuda.cu -o c.o
FAILED: c.o
/usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -c /tmp/job/mine/cuda.cu -o c.o
/tmp/job/mine/cuda.cu(7): warning #177-D: variable "error" was declared but never referenced
/tmp/job/mine/cuda.cu(9): error: expected a ";"
    return x;
    ^

1 error detected in the compilation of "/tmp/job/mine/cuda.cu".
ninja: build stopped: subcommand failed.
"""


def test_of_a_build_the_first_error_comes_first_and_the_command_lines_last() -> None:
    said = failed_build(INLINE)

    assert said is not None
    assert said.reason == 'cuda.cu:9: error: expected a ";"'
    assert said.errors.startswith("Error building extension 'mine':\ncuda.cu(7): warning")
    assert [line.split(" ")[0] for line in said.commands.splitlines()] == [
        "[1/3]", "[2/3]", "FAILED:", "nvcc", "ninja:",
    ]  # fmt: skip
    assert "/job" not in said.errors + said.commands


@pytest.mark.parametrize(
    "text", ["", "shapes differ", "a\nb", "error: one line alone", "ninja: x\nnothing wrong here"]
)
def test_other_words_are_left_as_they_are(text: str) -> None:
    assert failed_build(text) is None
