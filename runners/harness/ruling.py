"""How a step deep inside an evaluation ends it: with a verdict, told once."""

from runners.contract.verdict import Stage, Verdict


class Ruling(Exception):  # noqa: N818 - a verdict is not an error of ours
    """Raised to end the evaluation with `verdict`; `message` may be shown in public modes.

    `stage` is given where only the raiser knows it.
    """

    def __init__(self, verdict: Verdict, message: str, stage: Stage | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message
        self.stage = stage
