import time

from bot.discord.channels import EDIT_INTERVAL_S
from bot.discord.displays import EditRateLimiter


async def test_edits_of_all_messages_are_spaced() -> None:
    pace = EditRateLimiter()
    begin = time.monotonic()
    for message in range(4):
        await pace.wait_turn(message)
    assert time.monotonic() - begin >= 3 / 15.0 - 0.01


async def test_one_message_waits_for_its_own_turn() -> None:
    pace = EditRateLimiter()
    assert pace.wait_for(1) == 0
    await pace.wait_turn(1)
    assert EDIT_INTERVAL_S - 0.2 < pace.wait_for(1) <= EDIT_INTERVAL_S
    assert pace.wait_for(2) == 0
    pace.remove(1)
    assert pace.wait_for(1) == 0
