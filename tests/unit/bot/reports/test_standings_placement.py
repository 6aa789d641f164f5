from dataclasses import replace

import pytest

from bot.domain.leaderboard import Placement
from bot.domain.scoring import ScoreValue, Standing
from bot.domain.times import ordinal
from bot.reports.standings import placement_line, standing_line
from tests.doubles.factories import make_score

VALUE = ScoreValue(29_140, 60)


FIRST = Placement(
    gpu="H100", value=VALUE, rank=1, shared=False, entries=7, is_best=True, improved=False
)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (FIRST, "🥇 1st of 7 on H100: 29.14 µs ± 0.06"),
        (
            replace(FIRST, rank=3, shared=True),
            (
                "🥉 3rd (shared) of 7 on H100: 29.14 µs ± 0.06; shared: the judge cannot tell "
                "these times apart"
            ),
        ),
        (
            replace(FIRST, rank=4, improved=True),
            "4th of 7 on H100: 29.14 µs ± 0.06, a personal best",
        ),
        (
            replace(FIRST, reference=ScoreValue(93_248, 100)),
            "🥇 1st of 7 on H100: 29.14 µs ± 0.06, 3.2x vs reference",
        ),
        (
            replace(FIRST, value=ScoreValue(29_140, 60, 1_000, 27_300)),
            "🥇 1st of 7 on H100: 29.1 µs ± 1.1, claimed 27.3 µs",
        ),
        (
            replace(FIRST, value=ScoreValue(29_140, 60, None)),
            "🥇 1st of 7 on H100: 29.14 µs ± 0.06 (unconfirmed)",
        ),
        (
            replace(FIRST, is_best=False),
            "29.14 µs ± 0.06 on H100; not this person's best time",
        ),
    ],
)
def test_a_place_is_told_in_one_line(place: Placement, words: str) -> None:
    assert placement_line(place).text == words


@pytest.mark.parametrize(
    ("number", "spoken"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (21, "21st"), (112, "112th")],
)
def test_a_rank_is_spoken_as_in_english(number: int, spoken: str) -> None:
    assert ordinal(number) == spoken


def test_a_standing_in_a_line_says_who_and_how_fast() -> None:
    standing = Standing(2, make_score(17, 29_140, 60, person_name="Ada\n\u202eL"), 3)
    assert standing_line(standing) == f"2nd: Ada L, 29.14 µs ± 0.06 (#{standing.score.submission})"
