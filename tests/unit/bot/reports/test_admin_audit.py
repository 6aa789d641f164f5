import csv
import io

from bot.domain.ids import AuditId, PersonId
from bot.domain.records import AuditEntry, NamedAuditEntry
from bot.reports.admin import audit_report
from bot.reports.blocks import Attachment
from tests.doubles.factories import NOON


def test_the_record_is_a_table_in_which_no_reason_is_a_formula() -> None:
    decisions = (
        NamedAuditEntry(
            AuditEntry(AuditId(2), PersonId(1), "ban", "person discord:9", '=1+1, "x"\nb', NOON),
            "Ada",
        ),
        NamedAuditEntry(AuditEntry(AuditId(1), None, "expire", "board 1", "", NOON), None),
    )
    report = audit_report(decisions)
    file = report.blocks[-1]
    assert isinstance(file, Attachment)
    rows = list(csv.DictReader(io.StringIO(file.data.decode())))
    assert [(row["who"], row["reason"]) for row in rows] == [
        ("Ada", '\'=1+1, "x"\nb'),
        ("Podium", ""),
    ]
    assert rows[0]["at"] == f"{NOON:%Y-%m-%dT%H:%M:%SZ}"
