"""The people of a season: they submit, choose GPU types, read reports, and try again."""

import asyncio
import random
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.discord.errors import DriverError, NotAnsweredError
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.users.person import Person
from tests.doubles.discord.users.sending import wait_for_answer
from tests.e2e.discord.scene import kernel

CPU, OTHER = "CPU", "H100"
TOKEN_S = 900.0
"""How long Discord accepts the token of an interaction."""
FILLED_S = 120.0
"""The longest wait for an answer: the command of a killed copy is resumed after its lease."""
TRIES = 20
QUESTION, EXPIRED = "Choose the GPU types", "has expired"
_AGAIN = re.compile(r"runs again as #(\d+)")
_NUMBER = re.compile(r"ubmission #(\d+)")
_VERDICTS = (Verdict.PASSED,) * 6 + (Verdict.WRONG_ANSWER, Verdict.CRASHED)
_MODES = (Mode.RANKED,) * 7 + (Mode.TEST, Mode.TEST, Mode.BENCHMARK)
_COMMANDS = ("leaderboard show", "leaderboard show-personal", "leaderboard list")
_BUTTONS = ("Details", "Source", "Run again")


@dataclass(frozen=True)
class Order:
    """One submission that a person wants to make."""

    number: int
    board: str
    gpus: tuple[str, ...]
    asks: bool
    """Whether the GPU types are chosen in a menu."""
    mode: Mode
    directive: str
    repeated: bool
    """Whether Discord delivers the command twice."""
    expires: bool
    """Whether its token expires between acknowledgement and answer."""


def orders(dice: random.Random, boards: list[str], total: int) -> list[Order]:
    """Return this many orders; the last of several boards has two GPU types."""
    made = []
    for number in range(total):
        board = dice.choice(boards)
        two = len(boards) > 1 and board == boards[-1]
        gpus = dice.choice(((CPU,), (OTHER,), (CPU, OTHER))) if two else (CPU,)
        time_us, seconds = dice.uniform(10, 1000), dice.choice((0.0, 0.1, 0.5, 1.5))
        verdict = dice.choice(_VERDICTS)
        directive = f"verdict={verdict} time_us={time_us:.3f} seconds={seconds}"
        asks, mode = two and dice.random() < 0.5, dice.choice(_MODES)
        repeated, expires = dice.random() < 0.1, dice.random() < 0.04
        made.append(Order(number, board, gpus, asks, mode, directive, repeated, expires))
    return made


def number_in(text: str) -> int | None:
    """Return the submission that a message is about; for a rerun, the new one."""
    found = _AGAIN.search(text) or _NUMBER.search(text)
    return None if found is None else int(found[1])


@dataclass
class Crowd:
    """The people, and a record of their interactions."""

    room: Channel
    dice: random.Random
    expired: set[int] = field(default_factory=set)
    """Interactions whose tokens were made to expire."""
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    own: dict[int, int] = field(default_factory=dict)
    """A submission of each person, from an answer that they got."""

    async def live(self, person: Person, mine: list[Order], span_s: float) -> None:
        """Submit a person's orders over that time, and use other commands in between."""
        pause_s, clock = span_s / max(1, len(mine)), asyncio.get_running_loop()
        await asyncio.sleep(self.dice.uniform(0, pause_s))
        for order in mine:
            begin = clock.time()
            await self._hand_in(person, order)
            if self.dice.random() < 0.3:
                await self._look(person, order.board)
            next_s = self.dice.uniform(0.5, 1.3) * pause_s - (clock.time() - begin)
            await asyncio.sleep(max(0.0, next_s))

    async def _hand_in(self, person: Person, order: Order) -> None:
        """Try until a submission is stored, or may be stored without an answer that says so."""
        for _ in range(TRIES):
            try:
                if await self._submit(person, order):
                    return
            except (NotAnsweredError, DriverError) as error:
                self.counts[type(error).__name__] += 1
            await asyncio.sleep(self.dice.uniform(0.5, 2.0))
        self.faults.append(f"{person.name} could not hand in order {order.number}")

    async def _submit(self, person: Person, order: Order) -> bool:
        command, script = f"leaderboard submit {order.mode}", kernel(order.directive)
        given = {"leaderboard_name": order.board}
        if not order.asks:
            given["gpus"] = ", ".join(order.gpus)
        run = person.begin_slash(command, script=script, **given)
        if order.repeated:
            run.repeat()
            self.counts["delivered twice"] += 1
        await wait_for_answer(run)
        if order.expires and not order.asks:
            return self._expire(run)
        message = await self._answer(run)
        if order.repeated:
            run.repeat()
        if message is not None and QUESTION in message.text:
            return await self._choose(person, message, order)
        return self._noted(person, message)

    async def _choose(self, person: Person, asked: Message, order: Order) -> bool:
        """Choose the GPU types in the menu and press the button."""
        (menu,) = asked.selects
        await person.select(menu, order.gpus)
        pressed = await person.click(asked, "Submit")
        if order.expires:
            return self._expire(pressed)
        if order.repeated:
            pressed.repeat()
        with suppress(TimeoutError):  # the answer replaces the question
            await self.room.world.wait_for(lambda: QUESTION not in asked.text, FILLED_S)
        return self._noted(person, asked)

    def _expire(self, run: Interaction) -> bool:
        run.created -= TOKEN_S + 1
        self.expired.add(run.id)
        self.counts["tokens expired"] += 1
        return True

    async def _answer(self, run: Interaction) -> Message | None:
        """Wait until the answer is filled; the examination finds unfilled ones."""
        try:
            return await run.final(FILLED_S)
        except TimeoutError:
            self.counts["answers not filled in time"] += 1
            return None

    def _noted(self, person: Person, message: Message | None) -> bool:
        found = None if message is None else number_in(message.text)
        if found is not None:
            self.own[person.id] = found
        return found is not None

    async def _look(self, person: Person, board: str) -> None:
        """Use a command that changes nothing, or a button below a message."""
        own = self.own.get(person.id)
        try:
            if self.dice.random() < 0.4:
                await self._press(person, self.dice.choice(_BUTTONS))
            elif own is not None and self.dice.random() < 0.3:
                await self._answer(await person.slash("submission show", id=own))
            else:
                command = self.dice.choice(_COMMANDS)
                given = {} if command.endswith("list") else {"leaderboard_name": board}
                await self._answer(await person.slash(command, **given))
        except (NotAnsweredError, DriverError) as error:
            self.counts[type(error).__name__] += 1

    async def _press(self, person: Person, label: str) -> None:
        """Press such a button in one of the threads that the person sees."""
        messages = [m for thread in person.threads(self.room) for m in thread.messages]
        buttons = [each for m in messages for each in m.buttons if each.label == label]
        if buttons:
            run = await person.click(self.dice.choice(buttons[-10:]))
            if self.dice.random() < 0.2:
                run.repeat()
                self.counts["delivered twice"] += 1
            self._noted(person, await self._answer(run) if label == "Run again" else None)
