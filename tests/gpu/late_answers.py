"""Is any leaf accepted that arrived after the judge's clock had stopped? Prints a table.

Run from the repository root on a machine with a GPU:
    python tests/gpu/late_answers.py [--examples N] [--seed S]

The answers are random structures of every kind of leaf. One leaf of each comes late.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from hypothesis import (  # noqa: E402
    HealthCheck,
    Phase,
    given,
    seed,
    settings,
)
from hypothesis import strategies as st  # noqa: E402

from runners.contract.evaluation import RoundPolicy  # noqa: E402
from runners.contract.task import Device, Mode  # noqa: E402
from tests.doubles.judging import make_judging  # noqa: E402
from tests.doubles.leaf_kinds import (  # noqa: E402
    EARLY,
    RIGHT,
    SLEEP_S,
    Shape,
    Way,
    honest_kernel,
    late_kernel,
    late_leaves,
    shapes,
    task_of,
)
from tests.exploits.corpus import found_in  # noqa: E402
from tests.gpu.asking import HarnessError, Server, serving  # noqa: E402

ROUNDS = RoundPolicy(looks=(1,), samples=4)
ROW = "{:4s} {:12s} {:18s} {:>10s}  {} {}"


class Run:
    """Judges one kernel after the other and prints a line for each."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.count = self.bad = 0

    def judge(self, shape: Shape, source: str, what: str) -> None:
        """Judge: a late kernel must be refused or get its whole time, an honest one must pass."""
        request = make_judging(
            source, Mode.BENCHMARK, task=task_of(shape, Device.CUDA), rounds=ROUNDS, gpu="GPU"
        )
        try:
            evaluation, _ = self.server.ask(request)
        except HarnessError as error:
            self._tell(good=False, cells=(what, "harness failed", ""), shape=shape, why=str(error))
            return
        found = found_in(evaluation)
        told = None if found.time_ns is None else found.time_ns / 1e9
        if what == "honest":
            good = found.verdict == "passed" and told is not None and told < SLEEP_S / 2
        else:
            good = found.verdict in ("wrong_answer", "timing_rejected", "disallowed")
            good = good or (told is not None and told >= 0.9 * SLEEP_S)
        shown = "" if told is None else f"{told * 1e6:.1f} us"
        cells = (what, str(found.verdict), shown)
        self._tell(good=good, cells=cells, shape=shape, why=evaluation.message[:120])

    def _tell(self, *, good: bool, cells: tuple[str, str, str], shape: Shape, why: str) -> None:
        self.count += 1
        self.bad += not good
        print(ROW.format("ok" if good else "BAD", *cells, shape.text(), why), flush=True)


def main() -> int:
    """Judge all; return the number of unexpected results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with serving() as server:
        run = Run(server)
        every = Shape("dict", tuple(map(Shape, RIGHT)))
        run.judge(every, honest_kernel(every), "honest")
        for kind in EARLY:
            for way in Way:
                shape = Shape("tuple", (Shape(kind), Shape("none")))
                run.judge(shape, late_kernel(shape, 1, way), way)

        @seed(asked.seed)
        @settings(
            max_examples=asked.examples,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data(), shape=shapes(tuple(RIGHT)), way=st.sampled_from(Way))
        def drawn(data: st.DataObject, shape: Shape, way: Way) -> None:
            run.judge(shape, late_kernel(shape, data.draw(late_leaves(shape)), way), way)

        drawn()
    print(f"\n{run.count - run.bad} of {run.count} as wanted")
    return min(run.bad, 100)


if __name__ == "__main__":
    raise SystemExit(main())
