"""The message menu "Submit this file": ranks what a message holds, an attachment or a block."""

import re
from typing import Any

import discord
from discord import app_commands

from bot.discord import submitting
from bot.discord.groups import Tree
from bot.discord.interaction_claims import keeping
from bot.domain.errors import UserError
from runners.contract.task import Mode

_BLOCK = re.compile(r"```(?:[A-Za-z+#]*\n)?(?P<text>.*?)```", re.DOTALL)


async def setup(tree: Tree) -> None:
    """Add the menu entry."""
    tree.add_command(app_commands.ContextMenu(name="Submit this file", callback=submit_this_file))


async def submit_this_file(interaction: discord.Interaction[Any], message: discord.Message) -> None:
    """A ranked submission; the board is the one that the file's heading names."""
    async with keeping(interaction) as answer:
        if message.author.id != interaction.user.id:
            raise UserError("not-yours", "this message is somebody else's; submit your own")
        await submitting.take_in(answer, await _upload(message))


async def _upload(message: discord.Message) -> submitting.Upload:
    if len(message.attachments) > 1:
        raise UserError("one-file", "the message holds several files; send a message with one")
    if message.attachments:
        script = message.attachments[0]
        content = await submitting.read(script)
        return submitting.Upload(script.filename, content, Mode.RANKED)
    block = _BLOCK.search(message.content)
    if block is None:
        raise UserError("no-file", "the message holds neither a file nor a code block")
    return submitting.Upload("message.py", block["text"].encode(), Mode.RANKED)
