"""What of the finals needs no GPU: two kernels that are far apart, compared by the real judge."""

import pytest

from runners.contract.comparison import Ratio
from tests.gpu.asking import serving
from tests.gpu.finals import Case, Finals, table


@pytest.mark.slow
def test_the_faster_of_two_kernels_is_found_whichever_is_the_submission() -> None:
    case = Case("4 ms, 300 %", 64, 4_000.0, 3.0)
    with serving(gpu=False) as server:
        finals = Finals(server, "cpu")
        finals.prepare(case)
        for slower_first in (False, True):
            finals.final(case, slower_first=slower_first)

    assert not case.failed
    assert len(case.ratios) == 2
    assert case.wrong == 0
    assert case.right >= 1  # a busy machine may not tell even these apart
    assert all(each.ratio < 0.7 for each in case.ratios)


def test_the_table_counts_what_is_right_a_tie_and_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    case = Case("kernel", 64, 1.0, 0.01, failed=["lost"], seconds=[2.0, 4.0])
    for ratio in (0.98, 0.99, 0.997, 1.003, 1.01):
        case.ratios.append(Ratio(ratio=ratio, half_width=0.005, rounds=5))

    table([case])

    assert (case.right, case.ties, case.wrong) == (2, 2, 1)
    told = capsys.readouterr().out.splitlines()
    assert told[1].split() == [
        "kernel",
        "2",
        "2",
        "1",
        "5",
        "0.9960",
        "1.16%",
        "0.50%",
        "5.0",
        "3.0",
    ]
    assert told[2].split() == ["kernel", "lost"]
