from dataclasses import replace

from bot.domain.leaderboard import BoardStandings, OwnStanding, Placement
from bot.domain.scoring import PairRatio, ScoreValue, Standing
from bot.reports.cards import CardRow, board_card, person_card, submission_card
from tests.doubles.factories import make_board, make_score

FIRST = make_score(1, 1_000.0, 1.0, person_name="Ada")
SECOND = make_score(2, 1_030.0, 1.0, person_name="Bo")


def shown(entries: tuple[Standing, ...]) -> BoardStandings:
    return BoardStandings(make_board(gpus=("H100",)), 1, "H100", entries, ())


def test_a_board_has_its_first_three_with_their_gaps() -> None:
    entries = (Standing(1, FIRST, 1), Standing(2, SECOND, 3), *[Standing(3, SECOND, 1)] * 2)
    card = board_card(replace(shown(entries), reference=ScoreValue(3_200.0, 1.0)))
    assert card.above == "Leaderboard on H100 · 4 people ranked"
    assert [(each.place, each.name, each.remark) for each in card.rows] == [
        ("1", "Ada", "3.2x vs reference"),
        ("2", "Bo", "3.0 % behind 1st"),
        ("3=", "Bo", "3.0 % behind 1st"),
    ]
    assert card.rows[0].time.startswith("1.00")
    assert board_card(shown(entries)).rows[0].remark == ""
    assert board_card(shown(())).rows == ()


def test_the_first_place_is_compared_with_the_reference_in_turn() -> None:
    first = Standing(1, replace(FIRST, vs_reference=PairRatio(0.5, 0.01)), 1)
    apart = ScoreValue(3_200.0, 1.0)
    card = board_card(replace(shown((first,)), reference=apart))
    assert card.rows[0].remark == "2.0x vs reference"
    place = Placement("H100", FIRST.value, 1, False, 7, True, False, apart)  # noqa: FBT003
    for each, remark in (
        (place, "3.2x vs reference"),
        (replace(place, vs_reference=first.score.vs_reference), "2.0x vs reference"),
        (replace(place, reference=None), ""),
    ):
        assert submission_card("", "sort", "Passed", (each,)).rows[0].remark == remark


def test_a_submission_has_its_ranks_or_how_it_ended() -> None:
    ahead = Standing(1, FIRST, 1)
    place = Placement("H100", SECOND.value, 2, True, 7, True, False, ahead=ahead)  # noqa: FBT003
    card = submission_card("Submission #2 by Bo", "sort", "Passed", (place,))
    assert card.rows[0] == CardRow("2=", "of 7 on H100", card.rows[0].time, "3.0 % behind 1st")
    worse = replace(place, is_best=False)
    assert submission_card("", "sort", "Passed", (worse,)).rows == ()


def test_a_person_has_their_best_places() -> None:
    own = OwnStanding("CPU", Standing(4, FIRST, 2), 9, ())
    card = person_card("Ada", [(make_board(), own)] * 5)
    assert card.above == "Ranked on 1 board"
    assert len(card.rows) == 3
    assert (card.rows[0].place, card.rows[0].remark) == ("4", "of 9")
    assert person_card("Ada", [(make_board(), replace(own, shared=True))]).rows[0].place == "4="
    assert person_card("Ada", ()).above == ""
