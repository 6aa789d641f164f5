"""Standings in pages for a narrow screen: medal, name, time, and the gap to the first."""

from collections import Counter
from collections.abc import Iterator, Sequence

from bot.domain.ids import PersonId
from bot.domain.leaderboard import BoardStandings
from bot.domain.scoring import ScoreValue, Standing
from bot.domain.speedups import show_score
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone
from bot.reports.confirmations import pending_table
from bot.reports.short import percent
from bot.reports.standings import absent_table, cut, medal, short_notes, title_of_standings

RANKS = 10
"""How many ranks are on a page."""
_OTHERS = 8
"""How many people without a rank are on a page."""
_NAME = 32
_REASON = 60
"""The most characters of a name, and of the reason why a person has no rank."""
_COLUMNS = (Column("who"), Column("time", numeric=True), Column("gap", numeric=True))
_EMPTY = "no ranked submissions yet"


def standings_pages(leaderboard: BoardStandings, own: PersonId | None = None) -> tuple[Report, ...]:
    """Return the ranks, then the people without one; `own` is the person who reads them."""
    ranks = _ranks(leaderboard, leaderboard.entries, own)
    tables = [
        *_chunks(ranks, RANKS, _NAME + 12),
        *_chunks(pending_table(leaderboard.pending), RANKS, _NAME),
        *_chunks(absent_table(leaderboard.refused), _OTHERS, _REASON),
    ]
    blocks: list[Block] = [*tables] or [Text(_EMPTY, Tone.QUIET)]
    title = title_of_standings(leaderboard)
    return tuple(
        Report(title, (block, *_small_print(leaderboard, number, len(blocks))))
        for number, block in enumerate(blocks)
    )


def page_of(leaderboard: BoardStandings, person: PersonId) -> int | None:
    """Return the number of the page on which a person is ranked, from 0; None without a rank."""
    people = [entry.score.person for entry in leaderboard.entries]
    return people.index(person) // RANKS if person in people else None


def page_names(leaderboard: BoardStandings) -> tuple[str, ...]:
    """Return what is on each page, such as `places 11 to 20`."""
    count = len(leaderboard.entries)
    names = [_range(start + 1, min(start + RANKS, count)) for start in range(0, count, RANKS)]
    for name, others, size in (
        ("confirmation pending", len(leaderboard.pending), RANKS),
        ("not ranked", len(leaderboard.refused), _OTHERS),
    ):
        pages = -(-others // size)
        names += [name if pages == 1 else f"{name}, {each + 1}" for each in range(pages)]
    return tuple(names)


def _range(first: int, last: int) -> str:
    return f"places {first} to {last}" if first < last else f"place {first}"


def standings_side_by_side(
    leaderboards: Sequence[BoardStandings], own: PersonId | None = None
) -> Report:
    """Return the best of several GPU types of one board, each with its own ranks."""
    most = RANKS if len(leaderboards) < 3 else RANKS // 2
    blocks: list[Block] = []
    for each in leaderboards:
        best = next(_chunks(_ranks(each, each.entries, own), most, _NAME + 12), None)
        blocks.append(Text(title_of_standings(each), Tone.STRONG))
        blocks.append(best or Text(_EMPTY, Tone.QUIET))
    gpus = ", ".join(each.gpu for each in leaderboards)
    return Report(f"{leaderboards[0].board.name} on {gpus}", tuple(blocks))


def _ranks(leaderboard: BoardStandings, entries: Sequence[Standing], own: PersonId | None) -> Table:
    shared = Counter(entry.rank for entry in leaderboard.entries)
    rows = tuple(
        (
            _place(entry, shared=shared[entry.rank] > 1, own=entry.score.person == own),
            show_score(entry.score.value, "*"),
            _gap(entry, leaderboard.entries[0].score.value),
        )
        for entry in entries
    )
    return Table("", _COLUMNS, rows, is_list=True)


def _place(entry: Standing, *, shared: bool, own: bool) -> str:
    """Return medal and name, such as `🥇 Ada`; from the fourth place on the number."""
    number = f"{entry.rank}{'=' if shared else '.'} "
    sign = medal(entry.rank).strip() + (f" {entry.rank}= " if shared else " ")
    return f"{sign if medal(entry.rank) else number}{cut(entry.score.person_name, _NAME)}" + (
        " (you)" if own else ""
    )


def _gap(entry: Standing, best: ScoreValue) -> str:
    if entry.rank == 1:
        return ""
    gap = entry.score.value.time_ns / best.time_ns - 1
    return percent(gap) if gap >= 1 else f"+{percent(max(0.0, gap))}"


def _chunks(table: Table, size: int, most: int) -> Iterator[Table]:
    """Yield lists of `size` rows, with cells cut to `most` characters."""
    for start in range(0, len(table.rows), size):
        rows = table.rows[start : start + size]
        short = tuple(
            (cut(first, _NAME + 12), *(cut(cell, most) for cell in others))
            for first, *others in rows
        )
        yield Table(table.title, table.columns, short, is_list=True)


def _small_print(leaderboard: BoardStandings, number: int, pages: int) -> Iterator[Text]:
    """Yield which page it is, and on the first one the notes on the board."""
    if pages > 1:
        yield Text(f"page {number + 1} of {pages}", Tone.QUIET)
    if number == 0:
        yield from short_notes(leaderboard)
