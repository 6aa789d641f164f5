"""The dates of a competition as a calendar, read by the grammar of RFC 5545."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.domain.board import SeasonRules
from bot.domain.competition import Competition, PointsRule
from bot.domain.ids import BoardId, CompetitionId, PersonId
from bot.reports.competition import schedule_calendar
from tests.doubles.factories import NOON, make_board

DAY = timedelta(days=1)
SORT = make_board(id=BoardId(7), name="sort, fast; very", deadline=NOON + 3 * DAY)
LATER = make_board(id=BoardId(8), name="later", gpus=(), rules=SeasonRules(NOON + 2 * DAY))
CUP = Competition(
    CompetitionId(1), "Café cup " + "é" * 60, PersonId(1), "", PointsRule(), NOON, (SORT, LATER)
)
_LINE = re.compile(
    r"(?P<name>[A-Z][A-Z0-9-]*)(?P<parameters>(?:;[A-Z-]+=[^:;,\"]+)*):(?P<value>.*)"
)
_MOMENT = re.compile(r"\d{8}T\d{6}Z")
_TEXT = re.compile(r"(?:[^\\;,\x00-\x08\x0a-\x1f\x7f]|\\[\\;,nN])*")
_ONCE = {"UID", "DTSTAMP", "DTSTART", "DTEND", "SUMMARY", "URL", "TRANSP"}
Event = dict[str, str]


def address(kind: str, name: str) -> str:
    return f"https://podium.test/{kind}/{name.encode().hex()}"


def parse(text: str) -> list[Event]:
    """The events of a calendar; AssertionError where it breaks a rule of RFC 5545."""
    data = text.encode()
    assert data.endswith(b"\r\n")
    raw = data.removesuffix(b"\r\n").split(b"\r\n")
    assert all(b"\n" not in line and b"\r" not in line and len(line) <= 75 for line in raw)
    assert [part.decode() for part in raw]  # a fold never cuts a character
    lines = re.sub(r"\r\n[ \t]", "", text).removesuffix("\r\n").split("\r\n")
    found = []
    for line in lines:
        read = _LINE.fullmatch(line)
        assert read is not None, line
        found.append((read["name"], read["value"]))
    assert found[0] == ("BEGIN", "VCALENDAR")
    assert found[-1] == ("END", "VCALENDAR")
    head = [name for name, _ in found[1 : found.index(("BEGIN", "VEVENT"))]]
    assert head.count("PRODID") == head.count("VERSION") == 1
    return list(map(checked, events(found[1 + len(head) : -1])))


def events(properties: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    parts: list[list[tuple[str, str]]] = []
    for name, value in properties:
        if name == "BEGIN":
            assert value == "VEVENT"
            assert not parts or parts[-1][-1] == ("END", "VEVENT")
            parts.append([])
        else:
            parts[-1].append((name, value))
    return parts


def checked(properties: list[tuple[str, str]]) -> Event:
    *body, last = properties
    assert last == ("END", "VEVENT")
    names = [name for name, _ in body]
    assert set(names) <= _ONCE
    assert len(set(names)) == len(names)
    event = dict(body)
    assert {"UID", "DTSTAMP", "DTSTART"} <= set(event)
    for name in ("DTSTAMP", "DTSTART", "DTEND"):
        assert _MOMENT.fullmatch(event.get(name, "20260101T000000Z"))
    assert event.get("DTEND", "Z") > event["DTSTART"]
    assert _TEXT.fullmatch(event["SUMMARY"])
    assert event["TRANSP"] in {"OPAQUE", "TRANSPARENT"}
    return event


def moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def test_each_board_is_an_event_from_its_opening_to_its_deadline() -> None:
    sort, later = parse(schedule_calendar(CUP, NOON, address))
    assert (sort["DTSTART"], sort["DTEND"]) == (moment(NOON), moment(NOON + 3 * DAY))
    assert sort["SUMMARY"] == f"sort\\, fast\\; very ({CUP.name})"
    assert sort["URL"] == address("boards", SORT.name)
    assert (later["DTSTART"], "DTEND" in later) == (moment(NOON + 2 * DAY), False)
    assert later["SUMMARY"] == f"later opens ({CUP.name})"
    assert later["URL"] == address("competitions", CUP.name)  # not where the board will be
    assert sort["UID"] != later["UID"]


def test_before_it_opens_a_stranger_sees_only_the_opening() -> None:
    (event,) = parse(schedule_calendar(replace(CUP, boards=()), NOON, address))
    assert event["SUMMARY"] == f"{CUP.name} opens"
    assert event["DTSTART"] == moment(NOON)
    assert "sort" not in str(event)


def test_a_board_that_was_closed_at_once_has_no_event_that_ends_before_it_begins() -> None:
    closed = replace(SORT, deadline=NOON - DAY)
    (event,) = parse(schedule_calendar(replace(CUP, boards=(closed,)), NOON, address))
    assert event["DTSTART"] == moment(NOON - DAY)


def test_a_hostile_name_adds_no_line_and_no_event() -> None:
    name = "x\r\nEND:VEVENT\nBEGIN:VALARM\\n\x1b[31m"
    evil = replace(SORT, name=name)
    found = parse(schedule_calendar(replace(CUP, name=name, boards=(evil,)), NOON, address))
    assert len(found) == 1


def test_an_unchanged_schedule_is_the_same_file_for_an_hour() -> None:
    first = schedule_calendar(CUP, NOON, address)
    assert schedule_calendar(CUP, NOON + timedelta(minutes=59), address) == first
    assert schedule_calendar(CUP, NOON + timedelta(minutes=60), address) != first
