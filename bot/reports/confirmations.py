"""Comparisons with the holders of the first places, runs that wait for one, and finals."""

from collections.abc import Iterator, Sequence

from bot.domain.confirmation import Confirmation, ConfirmationState, LostPlace
from bot.domain.finals import Final, FinalRow
from bot.domain.names import cut_name
from bot.domain.scoring import Outcome, PairRatio
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.times import ordinal, rank_sign, show_change, show_score, show_span
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone

_PENDING_COLUMNS = (
    Column("who"),
    Column("time", numeric=True),
    Column("place"),
    Column("submission", numeric=True),
)
_COMPARED = "Each run is compared with the one before it."
_SHORT_FINAL = (Column("who"), Column("behind", numeric=True))
_NAME = 20
"""The most characters of a name on a narrow screen."""
_FINAL_COLUMNS = (
    Column("rank", numeric=True),
    Column("who"),
    Column("time", numeric=True),
    Column("vs the one before"),
    Column("submission", numeric=True),
)


STATE_WORDS = {
    ConfirmationState.PENDING: "confirmation pending",
    ConfirmationState.CONFIRMED: "confirmed",
    ConfirmationState.TIED: "tied in its comparison",
    ConfirmationState.SLOWER: "not confirmed: slower in its comparison",
    ConfirmationState.REFUSED: "not ranked: failed in its comparison",
    ConfirmationState.UNDECIDED: "not confirmed: could not be compared",
}
"""How a comparison ended, in a few words."""


def confirmation_lines(status: SubmissionStatus) -> Iterator[Text]:
    """Yield a line for each GPU type on which a submission is or was compared, or lost a place."""
    for each in status.jobs:
        yield from compared_lines(each)


def compared_lines(job: JobStatus) -> Iterator[Text]:
    """Yield how a run's comparison ended, to whom it lost its place, and what time ranks."""
    if job.confirmation is not None:
        yield confirmation_line(job.confirmation)
    if job.lost is not None:
        yield lost_line(job.job.gpu, job.lost)
    if job.ranks is not None:
        yield Text(
            f"{job.job.gpu}: {show_score(job.ranks)} is the time that ranks: it follows from "
            "comparisons, in which this and other runs were timed in turns on one machine"
        )


def lost_line(gpu: str, found: LostPlace) -> Text:
    """Return in a sentence which run took a place, or shares it."""
    other = f"#{found.submission} by {found.person_name}"
    place = f"{ordinal(found.place)} place"
    if found.shared:
        return Text(f"{gpu}: shares {place} with {other}, which was compared with it")
    difference = _difference(found.ratio)
    return Text(f"{gpu}: lost {place} to {other}, {difference} in a comparison of the two")


def confirmation_line(found: Confirmation) -> Text:
    """Return in a sentence how a comparison ended, or what it waits for."""
    holder = f"#{found.rival} by {found.rival_name}" if found.rival_name else f"#{found.rival}"
    words = {
        ConfirmationState.PENDING: f"confirmation pending: {_waiting(found, holder)}",
        ConfirmationState.CONFIRMED: f"confirmed: {_difference(found.ratio, holder)}",
        ConfirmationState.TIED: f"tied with {holder}: {_tie(found.ratio)}",
        ConfirmationState.SLOWER: f"not confirmed: {_difference(found.ratio, holder)}, who "
        "keeps the place",
        ConfirmationState.REFUSED: f"not ranked: {found.reason}",
        ConfirmationState.UNDECIDED: f"not confirmed: {found.reason}, which keeps its place",
        ConfirmationState.DROPPED: f"no confirmation: {found.reason}",
    }
    tones = {ConfirmationState.CONFIRMED: Tone.GOOD, ConfirmationState.REFUSED: Tone.BAD}
    return Text(f"{found.gpu}: {words[found.state]}", tones.get(found.state, Tone.PLAIN))


def _waiting(found: Confirmation, holder: str) -> str:
    place = f"it would take {ordinal(found.place)} place"
    if found.run is None:
        return f"{place}; it is compared with the holder as soon as a worker is free"
    if found.alone == found.rival:
        return f"{place}; {holder} failed in the comparison and is compared with itself"
    return f"{place} from {holder}; both are timed in turns on the same machine"


def _difference(ratio: PairRatio | None, other: str = "") -> str:
    """Return how much faster or slower, such as `1.20 % ± 0.10 faster` or `3.2x as fast`."""
    if ratio is None:
        return ""
    if not 0.5 < ratio.ratio < 2:
        return show_change(ratio.ratio, 1.0, other)
    is_faster = ratio.ratio < 1
    change = 1 / ratio.ratio - 1 if is_faster else ratio.ratio - 1
    half = ratio.half_width / (ratio.ratio**2 if is_faster else 1)
    words = f"{100 * change:.2f} % ± {100 * half:.2f} {'faster' if is_faster else 'slower'}"
    return f"{words} than {other}" if other else words


def _tie(ratio: PairRatio | None) -> str:
    if ratio is None:
        return "both share the place"
    return (
        f"the ratio of their times is {ratio.ratio:.4f} ± {ratio.half_width:.4f}, so both share "
        "the place"
    )


def pending_table(pending: Sequence[Confirmation]) -> Table:
    """Return a row for each run that is not ranked until it is confirmed."""
    rows = tuple(
        (
            each.person_name,
            "" if each.held is None else show_score(each.held),
            f"would take {ordinal(each.place)}",
            f"#{each.submission}",
        )
        for each in pending
    )
    return Table("confirmation pending", _PENDING_COLUMNS, rows)


def final_line(final: Final) -> str:
    """Return how far a final is."""
    entries = final.top if final.entries is None else len(final.entries)
    head = f"final of the first {entries} on {final.gpu}"
    if final.rows is not None and final.ended_at is not None:
        return f"{head}: ended on {final.ended_at:%Y-%m-%d %H:%M} UTC"
    if final.entries is None:
        return f"{head}: waits for runs that are not judged or confirmed yet"
    least = final.compared + final.left
    made = f"{final.compared} of at least {least} comparison{'' if least == 1 else 's'} made"
    left_s = final.left_s
    return f"{head}: {made}" + (f", about {show_span(left_s)} left" if left_s else "")


def final_table(final: Final | None) -> Table | None:
    """Return the published table of a final; None until it has ended."""
    if final is None or final.rows is None:
        return None
    found = final.rows
    ranks = [each.rank for each in found]
    rows = tuple(
        (
            f"{each.rank}=" if ranks.count(each.rank) > 1 else str(each.rank),
            each.person_name,
            show_score(each.value),
            _against(number, each.ratio),
            f"#{each.submission}",
        )
        for number, each in enumerate(found)
    )
    return Table("final", _FINAL_COLUMNS, rows, is_list=True)


def _against(number: int, ratio: PairRatio | None) -> str:
    if number == 0:
        return ""
    if ratio is None:
        return "not comparable"
    tied = "tied: " if ratio.outcome is Outcome.TIED else ""
    return f"{tied}{_difference(ratio)}"


def finals_report(board: str, finals: Sequence[Final]) -> Report:
    """Return the state or the table of each final of a board."""
    blocks: list[Block] = []
    for each in finals:
        blocks.append(Text(final_line(each)))
        table = final_table(each)
        blocks += [] if table is None else [table, Text(_COMPARED, Tone.QUIET)]
    return _titled(board, blocks)


def short_finals_report(board: str, finals: Sequence[Final]) -> Report:
    """Return the same for a narrow screen: medal, name, and how far behind the one before."""
    blocks: list[Block] = []
    for each in finals:
        if each.rows is None or each.ended_at is None:
            blocks.append(Text(final_line(each)))
            continue
        ranks = [row.rank for row in each.rows]
        signs = [rank_sign(rank, shared=ranks.count(rank) > 1) for rank in ranks]
        rows = tuple(
            (f"{signs[number]} {cut_name(row.person_name, _NAME)}", _behind(number, row))
            for number, row in enumerate(each.rows)
        )
        ended = f"{len(ranks)} on {each.gpu}, ended on {each.ended_at:%Y-%m-%d %H:%M} UTC"
        blocks += [Table("", _SHORT_FINAL, rows, is_list=True), Text(_COMPARED, Tone.QUIET)]
        blocks.append(Text(f"The first {ended}.", Tone.QUIET))
    return _titled(board, blocks)


def _titled(board: str, blocks: Sequence[Block]) -> Report:
    return Report(f"final of {board}", tuple(blocks) or (Text("no final yet", Tone.QUIET),))


def _behind(number: int, row: FinalRow) -> str:
    """Return the time of the first, then how far behind the run before it, such as `+3.2 %`."""
    if number == 0:
        return show_score(row.value)
    if row.ratio is None:
        return "not comparable"
    if row.ratio.outcome is not Outcome.SLOWER:
        return "tied"
    if row.ratio.ratio >= 2:
        return _difference(row.ratio)
    return f"+{100 * (row.ratio.ratio - 1):.2f} % ± {100 * row.ratio.half_width:.2f}"
