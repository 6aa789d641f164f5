"""Questions answered within minutes: the choice of GPU types, and a confirmation."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import discord
from typing_extensions import override

from bot.discord.options import in_menus, span
from bot.discord.responses import InteractionReply, replying
from bot.domain.errors import UserError

MENU_S = 840.0
"""Seconds after which a menu expires, 14 minutes: Discord would refuse a later answer anyway."""

Then: TypeAlias = Callable[[InteractionReply, tuple[str, ...]], Awaitable[None]]


class Question(discord.ui.View):
    """A button that continues once, with the current choice."""

    def __init__(self, then: Then, label: str) -> None:
        super().__init__(timeout=MENU_S)
        self.then = then
        self.add_item(Go(label))

    def chosen(self) -> tuple[str, ...]:
        """Return the current choice; UserError when it is incomplete."""
        return ()

    def answering(
        self, interaction: discord.Interaction[Any]
    ) -> AbstractAsyncContextManager[InteractionReply]:
        """Acknowledge the click on the button."""
        return replying(interaction)

    async def go_on(self, interaction: discord.Interaction[Any]) -> None:
        """Continue once with the current choice."""
        async with self.answering(interaction) as answer:
            chosen = self.chosen()
            if self.is_finished():
                raise UserError("answered", "this was already answered; run the command again")
            self.stop()
            await self.then(answer, chosen)


class GpuMenus(Question):
    """Menus for the GPU types, 25 in each, and a button to continue."""

    def __init__(self, gpus: Sequence[str], then: Then, *, label: str = "Submit") -> None:
        super().__init__(then, label)
        self.menus = [GpuSelect(part) for part in in_menus(gpus)]
        for menu in self.menus:
            self.add_item(menu)
        self.left_out = tuple(gpus[sum(len(menu.options) for menu in self.menus) :])
        """GPU types that do not fit into the menus; they can be given as an option."""

    @override
    def chosen(self) -> tuple[str, ...]:
        if not self.picked:
            raise UserError("choose-gpu", "choose at least one GPU type, then press the button")
        return self.picked

    @property
    def picked(self) -> tuple[str, ...]:
        """Return the current choice, which may be empty."""
        return tuple(gpu for menu in self.menus for gpu in menu.values)

    def asking(self, words: str) -> str:
        """Return the question, and how to choose GPU types that do not fit into the menus."""
        if not self.left_out:
            return words
        return f"{words} ({len(self.left_out)} more; name them with the option `gpus`)"


class GpuSelect(discord.ui.Select["GpuMenus"]):
    """A menu of up to 25 GPU types with multiple choice."""

    def __init__(self, gpus: Sequence[str]) -> None:
        super().__init__(
            placeholder=span(gpus),
            min_values=0,
            max_values=len(gpus),
            options=[discord.SelectOption(label=gpu, value=gpu) for gpu in gpus],
        )

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Keep the choice until the button is pressed."""
        await interaction.response.defer()


class Go(discord.ui.Button["Question"]):
    """The button that continues with the choice."""

    def __init__(self, label: str) -> None:
        super().__init__(label=label, style=discord.ButtonStyle.primary, row=4)

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Pass the click to the question."""
        if self.view is not None:
            await self.view.go_on(interaction)
