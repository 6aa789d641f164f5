"""What is kept with a zip reads as it was written, whoever reads it."""

from unittest.mock import Mock

import discord

from bot.frontends.discord.wishes import Outcome, Stand
from bot.reports.blocks import Tone
from bot.services.publishing.publish import Change


def test_a_stand_survives_being_stored() -> None:
    outcome = Outcome(title="t", lines=(("x", Tone.BAD),), change=Change.NEW_VERSION, before=2)
    stand = Stand(channel=1, user=2, thread=3, publishing=True, outcome=outcome, told=1)
    assert Stand.model_validate_json(stand.model_dump_json()) == stand


def test_it_stands_in_the_channel_or_in_the_parent_of_a_thread() -> None:
    interaction = Mock(spec=discord.Interaction, channel_id=5)
    interaction.user.id = 9
    interaction.channel = Mock(spec=discord.TextChannel)
    assert Stand.here(interaction) == Stand(channel=5, user=9)
    interaction.channel = Mock(spec=discord.Thread, parent_id=4)
    assert Stand.here(interaction) == Stand(channel=4, user=9)
