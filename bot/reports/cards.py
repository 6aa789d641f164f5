"""Link cards: the pictures that other programs show with links to pages, and their contents.

Names are untrusted: `draw` is only called in a process with limits on time and memory. A character
that is not in the font is transliterated; a text that is too wide is cut.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from typing import Final

from PIL import Image, ImageDraw, ImageFont
from pydantic import Base64Bytes

from bot.domain.board import Board
from bot.domain.leaderboard import BoardStandings, OwnStanding, Placement
from bot.domain.times import (
    SpeedUp,
    ordinal,
    show_factor,
    show_gap,
    show_score,
    speed_up,
    speed_up_of,
    speed_up_over,
)
from bot.reports import escaping

ROWS = 3
SIZE = (1200, 630)
"""The picture's width and height, as programs that show links expect it."""
_PAPER, _SHEET, _INK, _SOFT, _ACCENT, _GOLD = (
    "#101413", "#1d2321", "#ebece7", "#a3a89f", "#6fd0b5", "#e6b450",
)  # fmt: skip
_PLACES = {
    "1": ("#4a3a12", "#f3cf82"), "2": ("#33393d", "#d3d8dc"), "3": ("#46301f", "#e9b48b"),
}  # fmt: skip
"""The colors of the first three places: of the background, and of the number."""
_LEFT, _RIGHT = 72, SIZE[0] - 72
_ROW_HEIGHT = 88
_MOST_CHARACTERS = 200
"""A longer text is cut before it is measured."""
_TITLES = (76, 64, 52)
"""The sizes of the title; the first in which it fits is used, or else the last."""


@dataclass(frozen=True, slots=True)
class CardRow:
    """A row of a card: a place, a name, a time, and a remark such as the gap."""

    place: str
    name: str
    time: str
    remark: str


@dataclass(frozen=True, slots=True)
class LinkCard:
    """The texts of a card; `words` are shown if there are no rows."""

    above: str
    title: str
    words: str = ""
    rows: tuple[CardRow, ...] = ()


GENERAL: Final = LinkCard(
    "", "Leaderboards for GPU kernels", "Verified times, with their intervals"
)
"""The card of pages without a card of their own, and of pages that not everyone may see."""


def board_card(shown: BoardStandings) -> LinkCard:
    """Return a card with the first people of a leaderboard, their times and gaps."""
    count = len(shown.entries)
    shared = Counter(each.rank for each in shown.entries)
    rows = []
    for each in shown.entries[:ROWS]:
        value, first = each.score.value, shown.entries[0].score.value
        gap = (
            _vs(speed_up_over(shown.reference, each.score))
            if each.rank == 1
            else show_gap(value.time_ns, first.time_ns, ordinal(1))
        )
        rank = _rank(each.rank, shared=shared[each.rank] > 1)
        rows.append(CardRow(rank, each.score.person_name, show_score(value), gap))
    above = f"Leaderboard on {shown.gpu} · {count} {'person' if count == 1 else 'people'} ranked"
    return LinkCard(above, shown.board.name, "No ranked submissions yet", tuple(rows))


def submission_card(above: str, board: str, ended: str, places: Sequence[Placement]) -> LinkCard:
    """Return a card with a submission's ranks, or how it ended if it is not its person's best."""
    rows = [
        CardRow(
            _rank(each.rank, shared=each.shared),
            f"of {each.entries} on {each.gpu}",
            show_score(each.value),
            _behind(each),
        )
        for each in places
        if each.is_best
    ]
    return LinkCard(above, board, ended, tuple(rows))


def person_card(name: str, places: Sequence[tuple[Board, OwnStanding]]) -> LinkCard:
    """Return a card with a person's best places; `places` is sorted by rank."""
    rows = [
        CardRow(
            _rank(own.standing.rank, shared=own.shared),
            f"{board.name} on {own.gpu}",
            show_score(own.standing.score.value),
            f"of {own.entries}",
        )
        for board, own in places[:ROWS]
    ]
    count = len({board.id for board, _ in places})
    above = f"Ranked on {count} {'board' if count == 1 else 'boards'}" if count else ""
    return LinkCard(above, name, "No ranked submissions yet", tuple(rows))


def _rank(rank: int, *, shared: bool) -> str:
    return f"{rank}=" if shared else str(rank)


def _vs(faster: SpeedUp | None) -> str:
    return "" if faster is None else f"{show_factor(faster.factor)} vs reference"


def _behind(place: Placement) -> str:
    if place.ahead is None:
        if place.vs_reference is not None:
            return _vs(speed_up_of(place.vs_reference))
        return _vs(None if place.reference is None else speed_up(place.reference, place.value))
    ahead = place.ahead
    return show_gap(place.value.time_ns, ahead.score.value.time_ns, ordinal(ahead.rank))


def draw(card: LinkCard) -> Base64Bytes:
    """Return the card as a PNG file; only called in its own process."""
    image = Image.new("RGB", SIZE, _PAPER)
    canvas = ImageDraw.Draw(image)
    _draw_mark(canvas)
    width, title = _RIGHT - _LEFT, _line(card.title)
    sizes = (each for each in _TITLES if _font(each, bold=True).getlength(title) <= width)
    size = next(sizes, _TITLES[-1])
    _write(canvas, card.above, (_LEFT, 178), _Style(_font(32), _SOFT, width))
    _write(canvas, title, (_LEFT, 262), _Style(_font(size, bold=True), _INK, width))
    if not card.rows:
        _write(canvas, card.words, (_LEFT, 372), _Style(_font(40), _SOFT, width))
    for number, row in enumerate(card.rows[:ROWS]):
        _draw_row(canvas, row, 378 + number * _ROW_HEIGHT)
    file = BytesIO()
    image.quantize(64).save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw_mark(canvas: ImageDraw.ImageDraw) -> None:
    """Draw the bars of the page header with its name."""
    for left, top, bottom, color in (
        (_LEFT, 96, 124, _ACCENT), (_LEFT + 26, 68, 124, _GOLD), (_LEFT + 52, 106, 124, _ACCENT),
    ):  # fmt: skip
        canvas.rounded_rectangle((left, top, left + 20, bottom), 3, fill=color)
    _write(canvas, "Podium", (_LEFT + 94, 98), _Style(_font(36, bold=True), _INK, 300))


def _draw_row(canvas: ImageDraw.ImageDraw, row: CardRow, middle: int) -> None:
    top, bottom = middle - _ROW_HEIGHT // 2 + 5, middle + _ROW_HEIGHT // 2 - 5
    canvas.rounded_rectangle((_LEFT, top, _RIGHT, bottom), 12, fill=_SHEET)
    below, ink = _PLACES.get(row.place.rstrip("="), (_PAPER, _SOFT))
    canvas.rounded_rectangle((_LEFT + 14, top + 12, _LEFT + 104, bottom - 12), 10, fill=below)
    bold, right = _font(32, bold=True), _RIGHT - 24
    _write(canvas, row.place, (_LEFT + 59, middle), _Style(bold, ink, 84, "mm"))
    right -= _write(canvas, row.remark, (right, middle), _Style(_font(27), _SOFT, 330, "rm")) + 24
    right -= _write(canvas, row.time, (right, middle), _Style(bold, _ACCENT, 330, "rm")) + 24
    left = _LEFT + 124
    _write(canvas, row.name, (left, middle), _Style(_font(34), _INK, right - left))


@dataclass(frozen=True, slots=True)
class _Style:
    """How a line is written; a wider one is cut."""

    font: ImageFont.FreeTypeFont
    color: str
    width: int
    point: str = "lm"
    """The point of the line that is placed, by Pillow's letters: by default left, middle."""


def _write(canvas: ImageDraw.ImageDraw, text: str, at: tuple[int, int], style: _Style) -> int:
    """Write a line and return its width."""
    line = _cut(_line(text), style.font, style.width)
    canvas.text(at, line, style.color, style.font, style.point)
    return round(style.font.getlength(line))


def _line(text: str) -> str:
    """Return a text that the font can draw, on one line, cut to `_MOST_CHARACTERS`."""
    return escaping.drawable(text[:_MOST_CHARACTERS], _has_glyph)[:_MOST_CHARACTERS]


def _cut(line: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    if font.getlength(line) <= width:
        return line
    while line and font.getlength(f"{line}…") > width:
        line = line[:-1]
    return f"{line.rstrip()}…"


@cache
def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Return the font that matplotlib ships, which is certain to be installed."""
    found = find_spec("matplotlib")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("matplotlib is not installed, and the cards need its font")
    name = f"DejaVuSans{'-Bold' if bold else ''}.ttf"
    file = f"{found.submodule_search_locations[0]}/mpl-data/fonts/ttf/{name}"
    # The basic layout needs no code for complex scripts, which would read untrusted names.
    return ImageFont.truetype(file, size, layout_engine=ImageFont.Layout.BASIC)


def _has_glyph(character: str) -> bool:
    """Return whether the font has the character; all others are drawn as the same box."""
    font = _font(_TITLES[-1])
    return bytes(font.getmask(character)) != bytes(font.getmask("\U0010fffd"))
