"""One message per alert in the channel that admins chose, edited when it ends."""

from types import SimpleNamespace
from typing import cast

import discord

from bot.discord.alerts import ALERTS, AlertSender
from bot.services.alerts import SAME_AGAIN
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import Room


async def sender(room: Room) -> AlertSender:
    """Sends alerts to the room's channel."""
    guild = f"discord:{room.guild.id}"
    await room.place.store.moderation.keep_part(guild, ALERTS, str(room.channel.id))
    context = room.context
    await context.snapshot.refresh(room.place.store)
    application = SimpleNamespace(bot_public=False, owner=SimpleNamespace(id=1), team=None)
    room.client._application = cast("discord.AppInfo", application)
    return AlertSender(room.client, context)


def messages(room: Room) -> list[str]:
    return [each.content for each in room.channel.messages]


async def test_an_alert_has_one_message_which_says_when_it_ended(room: Room) -> None:
    telling, alerts = await sender(room), room.place.store.alerts
    await alerts.begin("k", "Worker *box* does not answer @everyone", SAME_AGAIN)
    for _ in range(3):
        await telling.send_due()
    (begun,) = messages(room)
    assert begun.startswith("⚠️ Worker \\*box\\* does not answer")
    await alerts.end_except(())
    for _ in range(3):
        await telling.send_due()
    (ended,) = messages(room)
    assert ended.startswith("✅ Worker \\*box\\* does not answer")
    assert ", ended <t:" in ended
    assert not room.channel.messages[0].pings
    room.server.assert_clean()


async def test_a_lost_response_repeats_no_message(room: Room) -> None:
    telling, alerts = await sender(room), room.place.store.alerts
    await alerts.begin("k", "The queue of H100 is stuck", SAME_AGAIN)
    lost = Fault("POST", "/channels/{channel_id}/messages", status=500, carried_out=True)
    with room.server.faults.during(lost):
        await telling.send_due()
    room.place.clock.advance(60)
    await telling.send_due()
    assert len(messages(room)) == 1


async def test_without_a_chosen_channel_no_alert_is_sent(room: Room) -> None:
    telling, store = await sender(room), room.place.store
    await store.moderation.keep_part(f"discord:{room.guild.id}", ALERTS, "")
    await telling.context.snapshot.refresh(store)
    await store.alerts.begin("k", "it broke", SAME_AGAIN)
    await telling.send_due()
    assert messages(room) == []
    await store.moderation.keep_part(f"discord:{room.guild.id}", ALERTS, str(room.channel.id))
    await telling.context.snapshot.refresh(store)
    await telling.send_due()
    assert len(messages(room)) == 1


async def test_a_deleted_message_is_not_sent_again(room: Room) -> None:
    telling, alerts = await sender(room), room.place.store.alerts
    await alerts.begin("k", "it broke", SAME_AGAIN)
    await telling.send_due()
    await (
        room.client.get_partial_messageable(room.channel.id)
        .get_partial_message(room.channel.messages[0].id)
        .delete()
    )
    await alerts.end_except(())
    for _ in range(2):
        await telling.send_due()
    assert [each for each in room.channel.messages if not each.deleted] == []
