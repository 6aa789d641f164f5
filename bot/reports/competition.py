"""A competition: its boards with their dates, and the overall ranking; as CSV and as a calendar."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from bot.domain.api.export import ExportCompetition, ExportPiece, ExportRows
from bot.domain.board import Board
from bot.domain.competition import Competition, CompetitionStandings, OverallEntry, PointsRule
from bot.domain.publication import Draft
from bot.domain.times import show_deadline
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone
from bot.reports.escaping import escape_formula, one_line
from bot.reports.export import ROWS_PER_PART, DataTable, Field, Kind, Row

_BOARDS = (Column("board"), Column("GPU types"), Column("opens"), Column("closes"))
_LIST = (Column("competition"), Column("opens"), Column("closes"))
_MOST_SHOWN = 200
"""The most people in a report; the CSV has all."""


def competitions_report(competitions: Sequence[Competition], now: datetime) -> Report:
    """Return the competitions with their dates."""
    if not competitions:
        return Report("competitions", (Text("there is no competition", Tone.QUIET),))
    rows = tuple((each.name, _opening(each, now), _date(each.closes_at)) for each in competitions)
    return Report("competitions", (Table("competitions", _LIST, rows),))


def definition_report(drafts: Sequence[Draft], ignored: Sequence[str]) -> Report:
    """Return the boards of an uploaded competition, how ranks become points, and warnings."""
    definition = drafts[0].competition
    if definition is None:
        raise ValueError("these drafts have no competition")
    rows = tuple(
        (
            each.board_name,
            ", ".join(each.request.gpus or each.task.gpus) or "every possible one",
            _date(None if each.request.rules is None else each.request.rules.opens_at),
            _date(each.request.deadline),
        )
        for each in drafts
    )
    blocks: list[Block] = [
        Table("boards", _BOARDS, rows),
        Text(points_line(definition.points), Tone.QUIET),
    ]
    blocks += [Text(f"warning: {words}") for words in ignored]
    return Report(f"Competition {definition.name}", tuple(blocks))


def competition_report(found: CompetitionStandings, now: datetime) -> Report:
    """Return a competition with its boards and its ranking; before it opens, only its date."""
    competition = found.competition
    blocks: list[Block] = [Text(dates_line(competition, now), Tone.QUIET)]
    if competition.boards:
        if competition.description.strip():
            blocks.append(Text(competition.description.strip()))
        blocks.append(Text(points_line(competition.points), Tone.QUIET))
        blocks.append(boards_table(competition))
        blocks += overall_blocks(found)
    return Report(competition.name, tuple(blocks))


def overall_blocks(found: CompetitionStandings, most: int = _MOST_SHOWN) -> Iterator[Block]:
    """Yield the first people of the overall ranking, and how many more there are."""
    if not found.entries:
        yield Text("no ranked submissions yet", Tone.QUIET)
        return
    yield overall_table(found, found.entries[:most])
    if len(found.entries) > most:
        yield Text(f"and {len(found.entries) - most} more", Tone.QUIET)


def dates_line(competition: Competition, now: datetime) -> str:
    """Return when a competition opens or, once it has, when it closes."""
    if not competition.has_opened(now):
        return f"opens at {show_deadline(competition.opens_at)}"
    if competition.closes_at is None:
        some_open_later = any(each.rules.opens_at is not None for each in competition.boards)
        return "open" if some_open_later else "open without a deadline"
    verb = "closed" if competition.has_closed(now) else "open until"
    return f"{verb} {show_deadline(competition.closes_at)}"


def _opening(competition: Competition, now: datetime) -> str:
    """Return when a competition opens, or that it has opened."""
    return "open" if competition.has_opened(now) else show_deadline(competition.opens_at)


def _date(moment: datetime | None) -> str:
    return "" if moment is None else show_deadline(moment)


def points_line(points: PointsRule) -> str:
    """Return how ranks become points."""
    ranks = points.ranks
    if not ranks:
        return "points: 100 x best / own time at the upper end of its ±; 0 without a rank"
    listed = ", ".join(f"{each:g}" for each in ranks[:20])
    more = "" if len(ranks) <= 20 else f" and {len(ranks) - 20} more"
    return f"points of the first places on each board and GPU type: {listed}{more}"


def boards_table(competition: Competition) -> Table:
    """Return a row for each board."""
    rows = tuple(
        (
            each.name,
            ", ".join(each.gpus),
            _date(each.rules.opens_at),
            _date(each.deadline),
        )
        for each in competition.boards
    )
    return Table("boards", _BOARDS, rows)


def overall_table(found: CompetitionStandings, entries: Sequence[OverallEntry]) -> Table:
    """Return a row for each of these people, with the points of each leaderboard."""
    shared = Counter(each.rank for each in found.entries)
    columns = [Column("rank", numeric=True), Column("who"), Column("points", numeric=True)]
    columns += [Column(name, numeric=True) for name in leaderboard_names(found)]
    rows = tuple(
        (
            f"{each.rank}=" if shared[each.rank] > 1 else str(each.rank),
            each.person_name,
            f"{each.total:.2f}",
            *("-" if points is None else f"{points:.2f}" for points in each.points),
        )
        for each in entries
    )
    return Table("overall ranking", tuple(columns), rows)


def leaderboard_names(found: CompetitionStandings) -> tuple[str, ...]:
    """Return the name of each leaderboard, with its GPU type if the board has several."""
    return tuple(
        board.name if len(board.gpus) == 1 else f"{board.name} on {gpu}"
        for board, gpu in found.leaderboards
    )


def overall_csv(found: CompetitionStandings) -> str:
    """Return a line for each person, with a column for each leaderboard."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["rank", "person", "total", *leaderboard_names(found)])
    for each in found.entries:
        row = [each.rank, each.person_name, each.total, *each.points]
        writer.writerow([escape_formula(cell) for cell in row])
    return text.getvalue()


OVERALL = DataTable(
    "overall",
    "The overall ranking.",
    (
        Field("rank", Kind.INTEGER, "the rank, which equal totals share"),
        Field("person", Kind.TEXT, "the account's display name"),
        Field("person_id", Kind.INTEGER, "the account's number"),
        Field("total", Kind.REAL, "the points of all leaderboards together"),
    ),
)
POINTS = DataTable(
    "points",
    "The points of each person on each leaderboard on which they are ranked.",
    (
        Field("person", Kind.TEXT, "as in `overall`"),
        Field("person_id", Kind.INTEGER, "as in `overall`"),
        Field("board", Kind.TEXT, "the board"),
        Field("gpu", Kind.TEXT, "the GPU type"),
        Field("points", Kind.REAL, "the points there"),
    ),
)
TABLES = (OVERALL, POINTS)


def competition_pieces(found: CompetitionStandings) -> Iterator[ExportPiece]:
    """Yield the beginning of a competition's export; the exports of its boards follow."""
    boards = tuple(each.name for each in found.competition.boards)
    yield ExportCompetition(competition=found.competition.name, boards=boards)
    for table, rows in ((OVERALL, _overall_rows(found)), (POINTS, _points_rows(found))):
        while part := tuple(islice(rows, ROWS_PER_PART)):
            yield ExportRows(table=table.name, rows=part)


def _overall_rows(found: CompetitionStandings) -> Iterator[Row]:
    """Yield the rows of `overall`."""
    for each in found.entries:
        yield {
            "rank": each.rank,
            "person": each.person_name,
            "person_id": each.person,
            "total": each.total,
        }


def _points_rows(found: CompetitionStandings) -> Iterator[Row]:
    """Yield the rows of `points`."""
    for each in found.entries:
        for (board, gpu), points in zip(found.leaderboards, each.points, strict=True):
            if points is not None:
                yield {
                    "person": each.person_name,
                    "person_id": each.person,
                    "board": board.name,
                    "gpu": gpu,
                    "points": points,
                }


_LINE_BYTES = 75
"""The most bytes of a line in a calendar; a longer one is continued after a space in the next."""
_ESCAPED = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,"})
Address = Callable[[str, str], str]
"""Returns the address of a page, from `competitions` or `boards` and the page's name."""


def schedule_calendar(competition: Competition, now: datetime, address: Address) -> str:
    """Return a calendar (RFC 5545) with an event for each board, from opening to deadline.

    If the viewer may not see the boards yet, the only event is the competition's opening.
    """
    stamp = _moment(now.replace(minute=0, second=0, microsecond=0))
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Podium//Competitions//EN"]
    lines.append(f"X-WR-CALNAME:{_text(competition.name)}")
    for event in _events(competition, address):
        lines += ["BEGIN:VEVENT", f"DTSTAMP:{stamp}", *event, "TRANSP:TRANSPARENT", "END:VEVENT"]
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _folded(line))


def _events(competition: Competition, address: Address) -> Iterator[Sequence[str]]:
    """Yield the properties of each event."""
    name, page = competition.name, address("competitions", competition.name)
    if not competition.boards:
        yield _event(page, f"{name} opens", page, (competition.opens_at, None))
    for board in competition.boards:
        seen = bool(board.gpus)  # a board that has not opened has only its name and date
        link = address("boards", board.name) if seen else page
        summary = f"{board.name} ({name})" if board.deadline else f"{board.name} opens ({name})"
        yield _event(f"{page}#{board.id}", summary, link, _dates(competition, board))


def _dates(competition: Competition, board: Board) -> tuple[datetime, datetime | None]:
    opens, closes = board.rules.opens_at or competition.opens_at, board.deadline
    if closes is not None and closes <= opens:
        return closes, None
    return opens, closes


def _event(
    uid: str, summary: str, link: str, dates: tuple[datetime, datetime | None]
) -> Sequence[str]:
    start, end = dates
    ends = () if end is None else (f"DTEND:{_moment(end)}",)
    about = f"SUMMARY:{_text(summary)}", f"URL:{link}"
    return f"UID:{uid}", f"DTSTART:{_moment(start)}", *ends, *about


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(words: str) -> str:
    return one_line(words).translate(_ESCAPED)


def _folded(line: str) -> Iterator[str]:
    """Yield the parts of a long line, which is never split within a character."""
    part, size = "", 0
    for character in line:
        length = len(character.encode("utf-8", "replace"))
        if size + length > _LINE_BYTES:
            yield part
            part, size = " ", 1
        part, size = part + character, size + length
    yield part
