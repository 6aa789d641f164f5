"""Runs that wait for their confirmation, as the API answers them."""

from datetime import UTC, datetime

from bot.domain.api.finals import ConfirmationBody, PendingBody, RatioBody
from bot.domain.confirmation import Confirmation, ConfirmationState
from bot.domain.ids import ConfirmationId, PersonId, SubmissionId, TaskVersionId
from bot.domain.scoring import PairRatio, ScoreValue

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def make_confirmation(**changes: object) -> Confirmation:
    """A run of ada that would take the second place from bob."""
    values = {
        "id": ConfirmationId(1),
        "submission": SubmissionId(7),
        "person": PersonId(3),
        "person_name": "ada",
        "task_version": TaskVersionId(2),
        "gpu": "H100",
        "place": 2,
        "state": ConfirmationState.PENDING,
        "created_at": NOW,
    }
    return Confirmation(**(values | changes))  # type: ignore[arg-type]


def test_a_run_that_waits_shows_its_place_and_its_time() -> None:
    body = PendingBody.of(make_confirmation(held=ScoreValue(20_000.0, 100.0), submitted_at=NOW))

    assert (body.person, body.submission, body.place, body.submitted_at) == ("ada", 7, 2, NOW)
    assert body.time is not None
    assert (body.time.time_ns, body.time.half_width_ns) == (20_000.0, 100.0)
    assert PendingBody.of(make_confirmation()).time is None


def test_a_comparison_names_its_rival_and_its_ratio() -> None:
    assert ConfirmationBody.of(None) is None
    waiting = ConfirmationBody.of(make_confirmation())
    assert waiting is not None
    assert (waiting.comparing, waiting.rival, waiting.ratio) == (False, None, None)

    body = ConfirmationBody.of(
        make_confirmation(
            state=ConfirmationState.CONFIRMED,
            rival=SubmissionId(5),
            rival_name="bob",
            run=SubmissionId(9),
            ratio=PairRatio(0.97, 0.01),
        )
    )
    assert body is not None
    assert (body.state, body.comparing, body.rival, body.rival_person) == (
        "confirmed", True, 5, "bob",
    )  # fmt: skip
    assert body.ratio == RatioBody(ratio=0.97, half_width=0.01)
