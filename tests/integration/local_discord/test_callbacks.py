"""Which first answers an interaction takes."""

import pytest

from tests.doubles.discord.kinds import InteractionKind
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.users.sending import Action, send_interaction
from tests.doubles.discord.wire import Json
from tests.integration.local_discord.stage import ByHand

TEXT = {"type": 18, "label": "l", "component": {"type": 4, "custom_id": "t", "style": 1}}
MENU = {"type": 3, "custom_id": "s", "options": [{"label": "a", "value": "a"}]}
COMMAND, AUTOCOMPLETE = InteractionKind.COMMAND, InteractionKind.AUTOCOMPLETE
FILLED = InteractionKind.MODAL


def modal(**more: object) -> Json:
    return {"type": 9, "data": {"title": "t", "custom_id": "m", "components": [TEXT], **more}}


def begun(hand: ByHand, kind: InteractionKind) -> tuple[Interaction, str]:
    interaction = send_interaction(Action(kind, hand.stage.alice, hand.stage.lab, {}))
    return interaction, f"/interactions/{interaction.id}/{interaction.token}/callback"


@pytest.mark.parametrize(
    ("kind", "callback"),
    [
        (COMMAND, {"type": 7, "data": {"content": "an update needs a component"}}),
        (COMMAND, {"type": 8, "data": {"choices": []}}),
        (AUTOCOMPLETE, {"type": 4, "data": {"content": "only choices"}}),
        (AUTOCOMPLETE, {"type": 8, "data": {"choices": [{"name": "a", "value": "a"}] * 2}}),
        (AUTOCOMPLETE, {"type": 8, "data": {"choices": [{"name": "a" * 101, "value": "a"}]}}),
        (FILLED, modal()),
        (COMMAND, modal(title="t" * 46)),
        (COMMAND, modal(custom_id="c" * 101)),
        (COMMAND, modal(components=[])),
        (COMMAND, modal(components=[TEXT] * 6)),
        (COMMAND, modal(components=[{"type": 1, "components": [MENU]}])),
        (COMMAND, modal(components=[TEXT | {"label": "l" * 46}])),
    ],
)
async def test_an_answer_is_refused_and_may_be_corrected(
    hand: ByHand, kind: InteractionKind, callback: Json
) -> None:
    interaction, path = begun(hand, kind)
    answer = await hand("POST", path, callback)
    assert (answer.status, answer.code) == (400, 50035)
    assert interaction.answer is None


async def test_a_modal_is_opened_once(hand: ByHand) -> None:
    interaction, path = begun(hand, COMMAND)
    assert (await hand("POST", path.replace(interaction.token, "wrong"), modal())).code == 10062
    assert (await hand("POST", path, modal())).status == 204
    assert (await hand("POST", path, modal())).code == 40060
    assert interaction.form is not None


async def test_a_follow_up_needs_an_answer_and_a_token_of_fifteen_minutes(hand: ByHand) -> None:
    interaction, path = begun(hand, COMMAND)
    after = f"/webhooks/{hand.server.world.bot.id}/{interaction.token}"
    assert (await hand("POST", after, {"content": "x"})).code == 10015
    await hand("POST", path, {"type": 4, "data": {"content": "one", "flags": 64}})
    assert (await hand("POST", after, {"content": "two"})).status == 200
    hand.server.clock.advance(901)
    assert (await hand("POST", after, {"content": "three"})).code == 50027
    assert (await hand("PATCH", f"{after}/messages/@original", {"content": "x"})).code == 50027


async def test_an_ephemeral_message_is_beyond_the_bots_own_token(hand: ByHand) -> None:
    interaction, path = begun(hand, COMMAND)
    await hand("POST", path, {"type": 4, "data": {"content": "yours", "flags": 64}})
    message = interaction.message
    direct = f"/channels/{message.channel.id}/messages/{message.id}"
    assert (await hand("PATCH", direct, {"content": "x"})).code == 10008
    assert message not in hand.stage.bob.messages()
    await hand(
        "DELETE", f"/webhooks/{hand.server.world.bot.id}/{interaction.token}/messages/@original"
    )
    assert message.deleted
