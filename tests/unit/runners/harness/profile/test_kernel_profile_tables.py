"""Tables of kernels are parsed as the profiler prints them, and shown as far as there is room."""

from runners.harness.profile.kernel_profile import (
    MEMORY_TABLES_MAX,
    SHOWN_MAX,
    Kernel,
    Tables,
    _output_end,
    kernels_of,
)
from runners.harness.toolchains.ncu import KERNELS_MOST

HEAD = "  add(float *, int) (16384, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"
HEADER = f"""[46] python3.12@127.0.0.1
{HEAD}
    Warning: Data collection happened without fixed GPU frequencies. Results may be inconsistent.
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    DRAM Throughput                   %        57.99

    OPT   This workload exhibits low compute throughput      \x20

    Section: Memory Workload Analysis Tables
    OPT   Est. Speedup: 35.52%

==WARNING== No metrics to show for section(s): MemoryWorkloadAnalysis_Tables. Use --print-details
  void other<1>(T1) (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: Occupancy
    Achieved Occupancy                        %        58.19
"""
BODY = f"""[46] python3.12@127.0.0.1
{HEAD}
    Section: GPU Speed Of Light Throughput
    a very long breakdown

    Section: Memory Workload Analysis Tables
    L2 Cache     1,048,744
    OPT   Est. Speedup: 35.52%
  void other<1>(T1) (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: Occupancy
    nothing here
"""


def test_kernels_have_their_sections_without_noise() -> None:
    add, other = kernels_of(HEADER)
    assert add.name == HEAD
    assert list(add.sections) == [
        "GPU Speed Of Light Throughput",
        "Memory Workload Analysis Tables",
    ]
    assert "    OPT   This workload exhibits low compute throughput" in add.text().splitlines()
    assert "Warning" not in add.text()
    assert "WARNING" not in add.text()
    assert other.text().startswith("  void other<1>(T1)")


def test_of_the_details_the_memory_tables_are_shown() -> None:
    text = Tables(kernels_of(HEADER), kernels_of(BODY)).text(9999)
    assert "    L2 Cache     1,048,744\n" in text
    assert "breakdown" not in text
    assert "nothing here" not in text
    assert text.count("Est. Speedup") == 1
    assert text.count("Section: Memory Workload Analysis Tables") == 1
    assert text.index("DRAM Throughput") < text.index("L2 Cache") < text.index("other<1>")


def test_where_room_is_short_the_details_go_first_and_then_the_last_kernels() -> None:
    tables = Tables(kernels_of(HEADER), kernels_of(BODY))
    short = Tables(kernels_of(HEADER)).text(9999)
    assert tables.text(len(short.encode())) == short
    cut = tables.text(len(short.encode()) - 1)
    assert cut.startswith(f"{HEAD}\n")
    assert cut.endswith(" lines are left out]\n")


def test_a_table_without_end_is_cut() -> None:
    endless = Kernel(HEAD, {"Memory Workload Analysis Tables": ["    a counter"] * 9999})
    assert (
        len(Tables((Kernel(HEAD),), (endless,)).text(1 << 20)) < MEMORY_TABLES_MAX + len(HEAD) + 9
    )


def test_as_many_kernels_as_are_looked_at_may_not_be_all() -> None:
    many = Tables((Kernel(HEAD),) * KERNELS_MOST).text(9999)
    assert many.startswith(f"the first {KERNELS_MOST} kernels of the call, and no more:\n{HEAD}\n")


def test_of_another_version_all_is_shown_as_it_is() -> None:
    other = Tables(kernels_of("total   \n    Section: gibberish\n"), kernels_of("more of it"))
    assert other.text(9999) == "total\n    Section: gibberish\n"
    assert kernels_of("\n") == ()
    assert Tables(()).text(9999) == ""


def test_a_message_shows_the_end_of_what_the_profiler_printed() -> None:
    printed = bytearray(b"begin\n" + b"x" * SHOWN_MAX + b"end\n")

    assert _output_end(printed) == f"; the end of its output:\n{'x' * (SHOWN_MAX - 3)}end"
    assert _output_end(bytearray(b"\n ")) == ""
