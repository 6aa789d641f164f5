import csv
import gzip
import io
import json

import pytest

from bot.domain.accounts import Person
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.records import BoardExport, ExportedSubmission, JobResult
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Submission, SubmissionState
from bot.reports import escaping
from bot.reports.blocks import Attachment
from bot.reports.export import export_report
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import NOON, make_board

REFERENCE = ScoreValue(58_280.0, 100.0)


def exported(name: str) -> BoardExport:
    board = make_board()
    number = SubmissionId(7)
    submission = Submission(
        number, PersonId(1), board.id, board.task_version, "=kernel.py", "hash", Mode.RANKED,
        ("H100", "L4"), SubmissionState.FINISHED, NOON,
    )  # fmt: skip
    outcomes = (
        JobResult(number, "H100", Verdict.PASSED, ScoreValue(29_140.0, 60.0)),
        JobResult(number, "L4", Verdict.CRASHED, None),
    )
    person = Person(PersonId(1), "discord:1", name, NOON)
    row = ExportedSubmission(
        submission, person, 2, outcomes, frozenset({"H100"}), {"H100": REFERENCE}
    )
    return BoardExport(board, (row,))


def files(export: BoardExport) -> dict[str, bytes]:
    blocks = export_report(export).blocks
    return {each.name: each.data for each in blocks if isinstance(each, Attachment)}


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_a_spreadsheet_and_a_program_get_the_same() -> None:
    found = files(exported("ada"))
    assert list(found) == ["vectoradd-submissions.csv", "vectoradd-results.csv", "vectoradd.json"]
    first, second = rows(found["vectoradd-results.csv"])
    assert (first["gpu"], first["time_ns"], first["ranked"]) == ("H100", "29140.0", "True")
    assert (second["verdict"], second["time_ns"], second["ranked"]) == ("crashed", "", "False")
    assert (first["reference_ns"], second["reference_ns"]) == ("58280.0", "")
    whole = json.loads(found["vectoradd.json"])
    assert whole["results"][0]["time_ns"] == 29_140.0
    assert whole["submissions"][0]["file"] == "=kernel.py"


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-1", "@SUM(A1)"])
def test_a_name_is_never_a_formula(name: str) -> None:
    (row,) = rows(files(exported(name))["vectoradd-submissions.csv"])
    assert (row["person"], row["file"]) == (f"'{name}", "'=kernel.py")


def test_what_is_large_is_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = files(exported("ada"))
    monkeypatch.setattr(escaping, "_LARGE", 0)
    found = files(exported("ada"))
    assert gzip.decompress(found["vectoradd.json.gz"]) == plain["vectoradd.json"]
