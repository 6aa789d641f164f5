from datetime import timedelta

from bot.domain.submission import Ban, RateLimit
from bot.services.rules import submission_rules
from runners.contract.task import Mode
from tests.doubles.place import Place


async def test_without_limits_pauses_and_bans_there_are_no_rules(place: Place) -> None:
    rules = await submission_rules(place.store)
    assert (rules.limits, rules.pause, rules.boards, rules.gpus, rules.bans) == (
        (),
        None,
        {},
        {},
        (),
    )


async def test_limits_pauses_and_bans_come_with_names(place: Place) -> None:
    moderation = place.store.moderation
    eve = await place.person("eve")
    wide, narrow = (
        RateLimit(9, timedelta(days=1)),
        RateLimit(1, timedelta(hours=1), place.board.id, Mode.RANKED),
    )
    await moderation.set_limit(narrow)
    await moderation.set_limit(wide)
    await moderation.pause("a move")
    await moderation.pause_board(place.board.id, "a new task")
    await moderation.pause_gpu("CPU", "a new driver")
    await moderation.ban(eve, Ban("forged"))
    rules = await submission_rules(place.store)
    assert [(each.limit, each.board) for each in rules.limits] == [
        (wide, None),
        (narrow, "vectoradd"),
    ]
    assert (rules.pause, rules.boards, rules.gpus) == (
        "a move",
        {"vectoradd": "a new task"},
        {"CPU": "a new driver"},
    )
    assert [(person.name, why) for person, why in rules.bans] == [("eve", Ban("forged"))]
