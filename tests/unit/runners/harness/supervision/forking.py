"""Scripts run in forks of a template, and as Python executes them, to compare the two."""

import json
from collections.abc import Mapping
from typing import Any

from runners.contract.evaluation import Limits
from runners.harness.deadline import Deadline
from runners.harness.sandbox import program
from runners.harness.sandbox.program import Prelude, Program, own_script
from runners.harness.supervision.watched_program import Start, WatchedProgram

TELL = """
import json, os

def tell(it):
    os.write(int(os.environ["POPCORN_FD"]), json.dumps(it).encode())
"""
IN_A_WORKER = """
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        tell(pool.apply(found))
"""
"""Ends a script which defines `found`: what that gives in a worker is told."""


class Ran:
    """One run of a script: what it told and printed, its status, and what its sandbox lacked."""

    def __init__(
        self,
        start: Start,
        script: str,
        environment: Mapping[str, str] | None = None,
        prelude: Prelude | None = None,
        **files: str,
    ) -> None:
        line = ("eval.py", "test", "cases")
        order = Program(
            command=own_script("kernelbot/launch.py", *line),
            script=line,
            files={"eval.py": TELL + script, "cases": "", **files},
            environment=environment or {},
            limits=Limits(),
            prelude=prelude,
        )
        printed = bytearray()
        self.lacked: dict[str, str] = {}
        phase = WatchedProgram(
            order, printed, lambda _, missing: self.lacked.update(missing), start
        )
        ended = phase.run(Deadline.after(30))
        self.status = ended.status
        self.said = ended.result
        self.printed = printed.decode()

    @property
    def told(self) -> Any:  # noqa: ANN401 - whatever the script told
        assert self.said, self.printed
        return json.loads(self.said)


def executed(script: str, **more: Any) -> Ran:  # noqa: ANN401 - of `Ran`
    """The same, by `exec`."""
    return Ran(program.start, script, **more)
