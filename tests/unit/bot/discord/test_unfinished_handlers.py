"""Every registered command, button, menu and form is executed once and answered once.

Each plays once undisturbed and once in each kind of trouble. What is stored and what is said must
be the same.
"""

import asyncio
import io
import re
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import Mock

import discord
import pytest
from discord import app_commands
from discord.webhook import async_

from bot.discord import buttons, pagination, questions, standings_view
from bot.discord.buttons import _CancelForm
from bot.discord.commands import leaderboard_owner
from bot.discord.commands.leaderboard_owner import DeletionForm, _CompetitionConfirmation
from bot.discord.commands.profile import DeletionOfAccount
from bot.discord.interaction_claims import EXPIRED, InteractionClaim
from bot.discord.pagination import PagedList
from bot.discord.responses import MAY_BE_DONE, InteractionReply
from bot.discord.result_notifications import NotificationButton
from bot.discord.standings_view import PageDirection
from bot.discord.unfinished import resume_unfinished
from bot.domain.board import Viewer
from bot.domain.competition import NewCompetition, PointsRule
from bot.domain.ids import PublicationId, SubmissionId
from bot.domain.publication import PublishRequest
from bot.domain.tasks.scaffold import scaffold
from bot.services.invites import create_invite_link
from bot.services.publishing.publish import publish
from tests.doubles.discord.kinds import ComponentKind, InteractionKind
from tests.doubles.discord.limits import CALLBACK, FOLLOWUPS
from tests.doubles.discord.model.components import Component
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.users.filling import Filling, Value
from tests.doubles.discord.users.forms import fill
from tests.doubles.discord.users.person import Person
from tests.doubles.discord.users.sending import Action, send_interaction
from tests.doubles.discord.wire import Json
from tests.doubles.discord_room import LEASE, Room
from tests.doubles.discord_room import room as a_room
from tests.doubles.factories import make_task

ANSWER = f"{FOLLOWUPS}/messages/{{message_id}}"
TASKS = ("CommandTree-invoker", "discord-ui")
OPENS_A_FORM = {
    *("leaderboard delete", "admin competition delete", "profile delete"),
    *("BoardMenu podium:delete-which", "SubmissionButton podium:stop:"),
}
"""Their first response is the form itself, which nothing can repeat."""
WITHIN_S = 15.0
IN_DISPLAY = re.compile("is stored:|Checking your task")
"""What is said when a display continues."""
TOKEN_S = 901.0
"""When an interaction's token has expired."""


@dataclass(frozen=True)
class Played:
    """The traces of an interaction, without numbers and secrets."""

    stored: dict[str, int]
    said: tuple[str, ...]
    """Every message: answers, and direct messages once the token has expired."""

    @property
    def is_shown_by_its_display(self) -> bool:
        """Whether a submission or a check is stored, whose display goes on without the answer."""
        return any(map(IN_DISPLAY.search, self.said))


Begin = Callable[[], Interaction]
Trouble = Callable[["Stage", Begin], Awaitable[Interaction]]


@dataclass
class Stage:
    """The admin carol in a room with two boards, and a submission of hers that waits."""

    room: Room
    carol: Person
    submission: int
    other: int
    """Another submission of hers that waits."""
    zip: File
    code: str
    """Of an invite link for one person."""

    def values(self, name: str) -> dict[str, Value]:
        board = self.room.place.board.name
        known: dict[str, Value] = {
            "leaderboard_name": "fresh" if name == "leaderboard create" else board,
            "script": File("kernel.py", b"x = 1\n"),
            "task_zip": self.zip,
            "competition_zip": self.zip,
            "id": self.submission,
            "first": self.submission,
            "second": self.submission,
            "who": self.room.bob,
            "channel": self.room.channel,
            "reason": "because",
            "most": 500,
            "minutes": 5,
            "name": "cup",
            "deadline": "2099-01-31",
            "gpus": "CPU",
            "record": True,
            "code": self.code,
        }
        if name == "profile revoke":
            known["id"] = 1
        if name == "leaderboard update":
            del known["task_zip"]
        return known

    def sizes(self) -> dict[str, int]:
        """How many rows each table has, without the tables of interactions."""
        return {
            f"{type(owner).__name__}.{name}": len(value)
            for owner, name, value in self.room.place.store.state()
            if isinstance(value, dict | list | set) and "Interactions" not in type(owner).__name__
        }

    def command(self, command: app_commands.Command[Any, ..., Any]) -> Begin:
        name = command.qualified_name
        known = self.values(name)
        wanted = [each.display_name for each in command.parameters if each.required]
        wanted += [
            each
            for each in ("leaderboard_name", "gpus")
            if name.startswith(("leaderboard submit", "leaderboard create"))
        ]
        wanted += ["deadline"] if name == "leaderboard update" else []
        wanted += ["record"] if name.endswith("notices") else []
        given = {each: known[each] for each in wanted}
        return lambda: self.carol.begin_slash(name, **given)

    def click(self, part: Component) -> Begin:
        data: Json = {"component_type": part.kind, "custom_id": part.custom_id}
        if part.kind == ComponentKind.STRING_SELECT:
            data["values"] = [part.raw["options"][0]["value"]]
        action = Action(
            InteractionKind.COMPONENT, self.carol, part.message.channel, data, source=part.message
        )
        return lambda: send_interaction(action)

    def form(self, opened: Interaction, typed: str) -> Begin:
        """A form, with a text in its first field."""
        assert opened.form is not None
        fields = {opened.form["components"][0]["label"]: typed}
        filling = Filling(self.carol, opened.channel)
        data: Json = {
            "custom_id": opened.form["custom_id"],
            "components": fill(opened.form, fields, filling),
        }
        action = Action(InteractionKind.MODAL, self.carol, opened.channel, data, trigger=opened)
        return lambda: send_interaction(action)

    async def send(self, view: discord.ui.View) -> Message:
        channel = self.room.client.get_partial_messageable(self.room.channel.id)
        return self.room.channel.all_messages[(await channel.send("x", view=view)).id]

    async def question(self) -> Message:
        """A message with a menu and a button."""
        script = File("kernel.py", b"x = 1\n")
        run = await self.carol.slash(
            "leaderboard submit test", script=script, leaderboard_name="wide"
        )
        return await run.final()


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    async with a_room(commands=True) as room:
        store, clock = room.place.store, room.place.clock
        admin = await room.admin_role()
        carol = room.server.user("carol", room.guild, roles=[admin])
        carol.goes_to(room.channel)
        account = (await store.people.ensure(f"discord:{carol.id}", "Carol")).id
        await store.displays.save_conversation(account, str(carol.dm.id))
        for name, gpus in (("doomed", ("CPU",)), ("wide", ("CPU", "H100"))):
            request = PublishRequest(account, name, gpus)
            await publish(store, clock, request, make_task(name=name))
        cup = NewCompetition("cup", account, "", PointsRule(), clock.now(), (room.place.board.id,))
        await store.competitions.put(cup)
        made = await room.place.submit(person=account)
        other = await room.place.submit(person=account)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as written:
            for name, text in scaffold("double").items():
                written.writestr(f"double/{name}", text)
        owner = Viewer(account, sees_all=True)
        _, code = await create_invite_link(store, clock, owner, "wide", days=1, most=1)
        packed = File("double.zip", archive.getvalue())
        found = Stage(room, carol, made.id, other.id, packed, code)
        await asyncio.sleep(0.1)
        yield found


def handlers() -> list[asyncio.Task[Any]]:
    """The handlers that this process runs."""
    return [each for each in asyncio.all_tasks() if each.get_name().startswith(TASKS)]


async def end_all() -> None:
    """End every handler of this process, as a kill does."""
    doomed = handlers()
    assert doomed
    for task in doomed:
        task.cancel()
    await asyncio.gather(*doomed, return_exceptions=True)


async def resumed(here: Stage, after_s: float = LEASE.total_seconds() + 10) -> None:
    for clock in (here.room.place.clock, here.room.server.clock):
        clock.advance(after_s)
    assert await resume_unfinished(here.room.client, here.room.context) == 1


async def undisturbed(here: Stage, begin: Begin) -> Interaction:
    del here
    return begin()


async def delivered_twice(here: Stage, begin: Begin) -> Interaction:
    del here
    run = begin()
    run.repeat()
    return run


async def delivered_late(here: Stage, begin: Begin) -> Interaction:
    server = here.room.server
    before = len(server.requests)
    with server.clock.held():
        run = begin()
        server.clock.advance(2.5)  # of the 3 s after which Discord takes no answer
        await server.wait_for(
            lambda: any(each.path.endswith("/callback") for each in server.requests[before:]),
            WITHIN_S,
        )
    return run


async def acknowledgement_lost(here: Stage, begin: Begin) -> Interaction:
    fault = Fault("POST", CALLBACK, 502, carried_out=True, count=1)
    with here.room.server.faults.during(fault):
        run = begin()
        await here.room.server.wait_for(lambda: fault.hits, WITHIN_S)
    return run


async def killed_while_it_acknowledges(here: Stage, begin: Begin) -> Interaction:
    fault = Fault("POST", CALLBACK, status=None, carried_out=True)
    with here.room.server.faults.during(fault):
        run = begin()
        await here.room.server.wait_for(lambda: fault.hits, WITHIN_S)
        await end_all()
    await resumed(here)
    return run


async def killed_while_it_answers(here: Stage, begin: Begin) -> Interaction:
    faults = [
        Fault(method, path, None) for method, path in (("PATCH", ANSWER), ("POST", FOLLOWUPS))
    ]
    for fault in faults:
        here.room.server.faults.add(fault)
    run = begin()
    await here.room.server.wait_for(lambda: any(each.hits for each in faults), WITHIN_S)
    await end_all()
    here.room.server.faults.lift()
    await resumed(here)
    return run


async def killed_before_it_stores_its_outcome(here: Stage, begin: Begin) -> Interaction:
    """Kill the process after the change, before its outcome is stored or sent."""
    reached = asyncio.Event()

    async def stop(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InteractionReply, "show_all", stop)
        patch.setattr(InteractionReply, "say", stop)
        patch.setattr(InteractionReply, "replace_message", stop)
        patch.setattr(InteractionClaim, "save_outcome", stop)
        run = begin()
        await asyncio.wait_for(reached.wait(), WITHIN_S)
        await end_all()
    await resumed(here)
    return run


async def expired_before_it_answers(here: Stage, begin: Begin) -> Interaction:
    """Let Discord accept the acknowledgement, but no answer after it."""
    faults = [
        Fault(method, path, 401, code=50027)
        for method, path in (("PATCH", ANSWER), ("POST", FOLLOWUPS))
    ]
    for fault in faults:
        here.room.server.faults.add(fault)
    run = begin()
    await here.room.server.wait_for(lambda: run.answered is not None, WITHIN_S)
    await asyncio.wait_for(asyncio.gather(*handlers()), WITHIN_S)
    here.room.server.faults.lift()
    return run


async def killed_until_the_token_expired(here: Stage, begin: Begin) -> Interaction:
    fault = Fault("POST", CALLBACK, status=None, carried_out=True)
    with here.room.server.faults.during(fault):
        run = begin()
        await here.room.server.wait_for(lambda: fault.hits, WITHIN_S)
        await end_all()
    await resumed(here, TOKEN_S)
    return run


def plain(text: str) -> str:
    text = text.replace(MAY_BE_DONE, "").rstrip(" .")
    text = re.sub(r"\d+", "#", re.sub(r"podium_[\w-]+", "SECRET", text))
    return re.sub(r"(\n#-#-#[ #]*)\1+", r"\1", text)  # a clock that moves may begin another day


async def played(here: Stage, trouble: Trouble, begin: Begin) -> Played:
    """Play a handler until it has answered, or has ended without an answer."""
    before, direct = here.sizes(), len(here.carol.dms)
    texts = {number: each.text for number, each in here.room.channel.all_messages.items()}
    run = await trouble(here, begin)

    def said() -> list[Message]:
        """The messages: in place of the clicked one, new ones, and direct ones."""
        own = run.reply
        replies = [own] if own and not own.loading and own.text != texts.get(own.id) else []
        return [*replies, *run.followups, *here.carol.dms[direct:]]

    def is_over() -> bool:
        may_have_ended = run.answered is not None and run.kind is not InteractionKind.MODAL
        has_ended = (may_have_ended or bool(said())) and not handlers()
        is_answered = any(each.channel is not here.carol.dm for each in said())
        return run.form is not None or is_answered or has_ended

    await here.room.server.wait_for(is_over, WITHIN_S)
    await asyncio.sleep(0.05)
    after = here.sizes()
    stored = {name: after[name] - before.get(name, 0) for name in after}
    words = ["form"] if run.form else sorted(plain(each.text) for each in said())
    return Played({k: v for k, v in stored.items() if v}, tuple(words))


def all_commands(client: discord.Client) -> Iterator[app_commands.Command[Any, ..., Any]]:
    tree: app_commands.CommandTree[Any] = client.tree  # type: ignore[attr-defined]
    for each in tree.walk_commands():
        if isinstance(each, app_commands.Command):
            yield each


async def every_button(here: Stage) -> dict[str, Begin]:
    """Every kind of button and menu that survives a restart, by its class and action."""
    number, board = SubmissionId(here.submission), here.room.place.board.id
    items: list[discord.ui.DynamicItem[Any]] = [
        *(buttons.SubmissionButton(each, number) for each in buttons.SubmissionAction),
        *(buttons.BoardButton(each, board, 1) for each in buttons.BoardAction),
        buttons.CheckButton(PublicationId(1)),
        *(standings_view.PageButton(each, board, "CPU", 0) for each in PageDirection),
        standings_view.PageSelect(board, "CPU", ["places 1 to 10"], 0),
        standings_view.StandingsGpuSelect(board, 0, ["CPU"]),
        *(pagination.ListPageButton(each, "next", 0) for each in PagedList),
        *(questions.GpuSelect(1, 0, ["CPU"]), questions.ContinueButton(1)),
        leaderboard_owner.BoardMenu(["doomed"]),
        *(NotificationButton(each) for each in ("on", "off")),
    ]
    registered = set(here.room.client._connection._view_store._dynamic_items.values())
    assert {type(each) for each in items} == registered
    found = {}
    for each in items:
        view = discord.ui.View(timeout=None)
        view.add_item(each)
        sent = await here.send(view)
        (part,) = [*sent.buttons, *sent.selects]
        found[f"{type(each).__name__} {part.custom_id}"] = here.click(part)
    return found


async def every_form(here: Stage) -> dict[str, Begin]:
    """Every form, opened and filled in; the last one deletes the account."""
    carol = here.carol
    stop = await here.send(buttons.stop_button(SubmissionId(here.other)))
    opened = {
        _CancelForm: (await carol.click(stop, "Cancel it"), "because"),
        DeletionForm: (
            await carol.slash("leaderboard delete", leaderboard_name="doomed"),
            "doomed",
        ),
        _CompetitionConfirmation: (
            await carol.slash("admin competition delete", name="cup"),
            "cup",
        ),
        DeletionOfAccount: (await carol.slash("profile delete"), "delete"),
    }
    own = {each for each in discord.ui.Modal.__subclasses__() if each.__module__.startswith("bot.")}
    assert set(opened) == own
    return {kind.__name__: here.form(form, text) for kind, (form, text) in opened.items()}


async def everything(trouble: Trouble) -> dict[str, Played]:
    """Play every handler in turn; the order is always the same."""
    results = {}
    kills = "killed" in trouble.__name__
    async with stage() as here:
        acts = {each.qualified_name: here.command(each) for each in all_commands(here.room.client)}
        acts |= await every_button(here)
        for name, begin in acts.items():
            alone = name.startswith(tuple(OPENS_A_FORM)) and kills
            results[name] = await played(here, undisturbed if alone else trouble, begin)
        question = await here.question()
        silent = trouble in {
            killed_while_it_answers,
            killed_before_it_stores_its_outcome,
        }  # a menu's choice has no answer
        choice = here.click(question.selects[0])
        results["a menu"] = await played(here, undisturbed if silent else trouble, choice)
        results["a question"] = await played(here, trouble, here.click(question.buttons[0]))
        for name, begin in (await every_form(here)).items():
            results[name] = await played(here, trouble, begin)
        expected = {40060} if trouble is not killed_until_the_token_expired else EXPIRED_CODES
        codes = {each.code for each in here.room.server.refused}
        assert codes <= expected, here.room.server.refused
        here.room.server.forget()
    return results


@pytest.fixture(scope="module")
def expected() -> dict[str, Played]:
    return asyncio.run(everything(undisturbed))


OTHERS_COUNT = {"admin export", DeletionOfAccount.__name__}
"""An export's answer is a file, which is not stored: both reads are in the audit log. What the
deletion of an account deletes depends on what others have stored."""
FORMS = {_CancelForm, DeletionForm, _CompetitionConfirmation, DeletionOfAccount}
EXPIRE = {"a menu", "a question", *(each.__name__ for each in FORMS)}
"""Only the process that opened a form has its handler, and a question ends after 15 minutes. Then
the person is told so, and nothing is done."""
EXPIRED_CODES = {40060, 10062, 10015, 50027}
"""Discord's codes for an interaction that is acknowledged, and for one that is too old."""


def _require_done_once(expected: dict[str, Played], found: dict[str, Played]) -> None:
    """What a handler had done before the kill is done once, and what it says is true.

    A token whose secret nobody has seen is useless.
    """
    for name, result in expected.items():
        if name in OTHERS_COUNT:
            continue
        differ = {
            table
            for table in result.stored.keys() | found[name].stored.keys()
            if result.stored.get(table) != found[name].stored.get(table)
        }
        assert differ <= {"MemoryTokens._tokens"}, (name, result, found[name])
        assert found[name].said or name == "a menu", name


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "trouble",
    [
        delivered_twice,
        delivered_late,
        acknowledgement_lost,
        killed_while_it_acknowledges,
        killed_while_it_answers,
        killed_before_it_stores_its_outcome,
        expired_before_it_answers,
        killed_until_the_token_expired,
    ],
    ids=lambda each: each.__name__,
)
def test_each_handler_is_done_once_and_answered_once_after_any_failure(
    expected: dict[str, Played], trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    # discord.py waits a second before it repeats a request
    monkeypatch.setattr(async_, "asyncio", Mock(wraps=asyncio, sleep=at_once))
    found = asyncio.run(everything(trouble))
    assert found.keys() == expected.keys()
    if trouble is killed_before_it_stores_its_outcome:
        _require_done_once(expected, found)
        return
    wrong = {}
    for name, result in expected.items():
        has_expired = name in EXPIRE and any(plain(EXPIRED) in each for each in found[name].said)
        if has_expired:
            assert found[name].stored == {}, name
        elif name in OTHERS_COUNT:
            assert found[name].said == result.said
        elif "expired" in trouble.__name__ and result.is_shown_by_its_display:
            told = tuple(each for each in result.said if IN_DISPLAY.search(each) is None)
            assert found[name] == replace(result, said=told), name
        elif found[name] != result:
            wrong[name] = (result, found[name])
    assert not wrong, "\n".join(map(str, wrong.items()))
