from dataclasses import replace

import pytest

from bot.discord.escaping import discord_time
from bot.discord.pagination import _fit_page, audit_line, board_line
from bot.domain.ids import AuditId, PersonId
from bot.domain.records import AuditEntry, NamedAuditEntry
from tests.doubles.factories import NOON, make_board

ROW = AuditEntry(AuditId(2), PersonId(1), "ban", "person discord:17", "**forged**", NOON)


@pytest.mark.parametrize(
    ("people", "crowd"), [(0, "nobody yet"), (1, "1 person"), (12, "12 people")]
)
def test_a_board_has_its_deadline_and_its_crowd(people: int, crowd: str) -> None:
    board = replace(make_board(), name="a*b", gpus=("H100", "L4"), deadline=NOON)
    assert board_line(board, people, 200, is_open=False) == (
        f"⚪ **a\\*b** on H100, L4, until {discord_time(NOON)}, {crowd}"
    )
    endless = board_line(replace(board, deadline=None), people, 200, is_open=True)
    assert endless == f"🟢 **a\\*b** on H100, L4, no deadline, {crowd}"


def test_a_decision_names_people_of_discord_to_be_clicked_on() -> None:
    at = f"<t:{int(NOON.timestamp())}:f>"
    assert audit_line(NamedAuditEntry(ROW, "Ada_"), 200) == (
        f"{at} **Ada\\_** ban <@17>: \\*\\*forged\\*\\*"
    )
    other = replace(ROW, actor=None, subject="person local:<@17>", reason="")
    assert audit_line(NamedAuditEntry(other, None), 200) == (
        f"{at} **Podium** ban person local:\\<@17>"
    )


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        ("every board, test, person discord:17", "every board, test, <@17>"),
        ("quota 60 s, person discord:17, every board", "quota 60 s, <@17>, every board"),
        ("board mine: discord:17", "board mine: <@17>"),
        ("board mine: local:17", "board mine: local:17"),
        ("channel 5 of guild 6", "<#5>"),
        ("board channel 5", "board channel 5"),
    ],
)
def test_an_audit_entry_names_people_and_channels_without_ids(subject: str, shown: str) -> None:
    entry = NamedAuditEntry(replace(ROW, subject=subject, reason=""), "Ada")
    assert audit_line(entry, 200).endswith(f"**Ada** ban {shown}")


def test_whom_an_admin_invited_is_a_mention() -> None:
    entry = NamedAuditEntry(replace(ROW, action="invite", reason="discord:17, discord:18"), "Ada")
    assert audit_line(entry, 200).endswith(": <@17>, <@18>")


def test_a_time_in_a_reason_is_one_that_discord_shows() -> None:
    entry = NamedAuditEntry(replace(ROW, reason="floods (until 2030-01-01 00:00 UTC)"), "Ada")
    assert audit_line(entry, 200).endswith(": floods (until <t:1893456000:f>)")


def test_a_page_of_long_words_still_fits_into_a_message() -> None:
    long = NamedAuditEntry(replace(ROW, subject="*" * 300, reason="*" * 300), "*" * 300)
    page = _fit_page(lambda width: (audit_line(long, width) for _ in range(8)))
    assert len(page) <= 2000
    assert page.count("\n") == 7
