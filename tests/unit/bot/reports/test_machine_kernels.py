from bot.reports.machine import kernel_lines

LOG = """size: 1024; seed: 2
  add(float *, int) (16384, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    DRAM Throughput                   %        57.99
    Memory Throughput     Tbyte/second         1.94
    Section: Occupancy
    Theoretical Occupancy             %          100
    Achieved Occupancy                %        58.19
  void other<1>(T1) (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Achieved Occupancy                %         1.56
  untold() (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
"""


def test_each_kernel_has_its_occupancy_in_a_line() -> None:
    assert list(kernel_lines(LOG, 8)) == [
        "add(float *, int): occupancy 58.19 % of at most 100 %, 57.99 % of the memory bandwidth",
        "void other<1>(T1): occupancy 1.56 %",
    ]
    assert list(kernel_lines(LOG, 1))[1:] == ["occupancy: and 1 more"]


def test_a_log_without_such_tables_tells_nothing() -> None:
    assert list(kernel_lines("    Achieved Occupancy  %  58.19\nhello\n", 8)) == []
