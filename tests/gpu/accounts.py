"""Records the seconds that evaluations take, and prints tables of them."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.verdict import Verdict
from tests.gpu.asking import HarnessError

COLUMNS = "{:3s} {:34s} {:>5s} {:>9s} {:>9s} {:>7s}  {}"


class Asked(Protocol):
    """Returns an evaluation and its seconds, or raises HarnessError."""

    def ask(self, request: EvaluationRequest) -> tuple[Evaluation, float]: ...


@dataclass
class Account:
    """The seconds that evaluations of one kind took."""

    name: str
    target_s: float | None = None
    built: bool = False
    """Whether what the build took is left out of the seconds."""
    seconds: list[float] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    """Sums by step; `other` is what no step names, `around` what the judge itself does not see."""
    verdicts: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    def add(self, found: Evaluation, seconds: float) -> None:
        """Count one evaluation."""
        built = found.durations_s.get("build", 0.0) if self.built else 0.0
        self.seconds.append(seconds - built)
        self.verdicts[found.verdict] += 1
        self.rounds += sum(each.measurement.rounds for each in found.cases if each.measurement)
        other = found.wall_s - sum(found.durations_s.values())
        around = seconds - found.wall_s
        for step, spent in {**found.durations_s, "other": other, "around": around}.items():
            self.steps[step] = self.steps.get(step, 0.0) + spent

    @property
    def good(self) -> bool:
        """Whether all passed, and at least half of them within the target."""
        within = self.target_s is None or (bool(self.seconds) and self.middle <= self.target_s)
        return within and self.verdicts.keys() == {Verdict.PASSED}

    @property
    def middle(self) -> float:
        """The median of the seconds."""
        return median(self.seconds)

    @property
    def row(self) -> str:
        """Its line of the table."""
        return COLUMNS.format(
            "ok" if self.good else "BAD",
            self.name + (" less build" if self.built else ""),
            str(self.verdicts.total()),
            f"{self.middle:.2f}" if self.seconds else "",
            f"{max(self.seconds):.2f}" if self.seconds else "",
            "" if self.target_s is None else f"{self.target_s:.1f}",
            ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
            + f", {self.rounds} rounds",
        )


def judge(asked: Asked, order: EvaluationRequest, *accounts: Account) -> bool:
    """Judge and count one request, and print why it did not pass; False without an evaluation."""
    try:
        found, seconds = asked.ask(order)
    except (HarnessError, OSError, ValueError) as error:
        print(f"--- {order.request_id}: {type(error).__name__}: {error}", flush=True)
        for account in accounts:
            account.verdicts["harness error"] += 1
        return False
    for account in accounts:
        account.add(found, seconds)
    if found.verdict is not Verdict.PASSED:
        print(f"--- {order.request_id}: {found.verdict} {found.stage} {found.message[:500]}")
        print(found.log[-1500:], flush=True)
    return True


def table(accounts: list[Account], first: str) -> list[str]:
    """Rows of seconds, then lines of the mean seconds by step."""
    known = {step for account in accounts for step in account.steps}
    steps = sorted(known, key=lambda step: -sum(each.steps.get(step, 0.0) for each in accounts))
    width = max((len(step) for step in steps), default=0) + 1
    lines = [COLUMNS.format("", first, "runs", "median s", "worst s", "target", "")]
    lines += [account.row for account in accounts]
    lines += ["", "".join([f"{'mean seconds by step':38s}", *(f"{s:>{width}s}" for s in steps)])]
    for account in accounts:
        runs = max(1, len(account.seconds))
        cells = (f"{account.steps.get(step, 0.0) / runs:{width}.3f}" for step in steps)
        lines.append("".join([f"{account.name:38s}", *cells]))
    return lines
