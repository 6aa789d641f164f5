"""The report of the whole record of decisions, as a file."""

import csv
import io
from collections.abc import Sequence

from bot.domain.records import NamedAuditEntry
from bot.reports.blocks import Report, Text
from bot.reports.spreadsheet import as_file, inert


def audit_report(decisions: Sequence[NamedAuditEntry]) -> Report:
    """A line for each decision; times in UTC."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(("at", "who", "action", "subject", "reason"))
    for each in decisions:
        row = each.row
        words = (each.actor_name or "Podium", row.action, row.subject, row.reason)
        table.writerow((f"{row.at:%Y-%m-%dT%H:%M:%SZ}", *map(inert, words)))
    file = as_file("audit.csv", written.getvalue())
    return Report("Audit", (Text(f"{len(decisions)} decisions, newest first"), file))
