"""The pictures of `phone.py`: which exist, and the messages that they show.

`COMMANDS` and `SOURCES` name everything that the bot sends; a test compares both with the bot.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.e2e.discord.scene import Scene

COMMANDS = frozenset(
    {
        *("leaderboard check cancel", "leaderboard check show"),
        *("leaderboard compare-gpus", "leaderboard create", "leaderboard delete"),
        *("leaderboard help", "leaderboard invite", "leaderboard join", "leaderboard list"),
        *("leaderboard show", "leaderboard show-personal", "leaderboard task"),
        *("leaderboard template", "leaderboard uninvite", "leaderboard update"),
        *(f"leaderboard submit {mode}" for mode in ("benchmark", "profile", "ranked", "test")),
        *(f"profile {word}" for word in ("delete", "export", "link", "notices", "revoke")),
        *("profile tokens", "submission cancel", "submission compare", "submission rerun"),
        *("submission show", "submission source", "submission withdraw"),
        *("admin alerts", "admin audit", "admin ban", "admin channel-allow"),
        *("admin channel-forbid", "admin costs", "admin disqualify", "admin export"),
        *("admin final", "admin limit", "admin limits", "admin notices", "admin pause"),
        *("admin rejudge", "admin requalify", "admin reset-name", "admin resume", "admin roles"),
        *("admin runners", "admin stats", "admin unban", "admin unlimit"),
        *(f"admin competition {word}" for word in ("close", "delete", "extend", "publish")),
        *("admin competition show", "admin submission cancel", "admin submission look"),
        *("Moderate", "Submit this file"),
    }
)
"""The commands and menu commands, each with a picture of its name."""

SOURCES: Mapping[str, tuple[str, ...]] = {
    "live": ("button cancel",),
    "run-again": ("button again",),
    "make-ranked": ("button ranked",),
    "source": ("button source",),
    "details": ("button details",),
    "stop-form": ("button stop", "_CancelForm"),
    "stopped": ("_CancelForm",),
    "board-template": ("board button template",),
    "board-rejudge": ("board button rejudge",),
    "show-next": ("PageButton",),
    "show-place": ("PageSelect",),
    "show-several": ("StandingsGpuSelect",),
    "show-final": ("PageButton",),
    "list-next": ("ListPageButton",),
    "question-submit": ("question submit", "GpuSelect", "ContinueButton"),
    "question-create": ("question create",),
    "question-update": ("question update",),
    "delete-which": ("BoardMenu",),
    "delete-form": ("DeletionForm",),
    "delete-competition-form": ("_CompetitionConfirmation",),
    "delete-account-form": ("DeletionOfAccount",),
    "long-run": ("NotificationButton on",),
    "result-ready": ("NotificationButton off",),
    "check-live": ("CheckButton", "publication_thread._draw"),
    # The answer has the same messages as the thread.
    "check-outcome": ("publication_thread._send_private", "publication_thread._send_answer"),
    "check-failed": ("publication_thread._send_private",),
    "check-question": ("publication_thread._ask_to_rejudge",),
    "announcement": ("publication_thread._announce_new",),
    "results-thread": ("board_threads.public",),
    "public-lines": ("displays.send_once",),
    "thread-report": ("displays.send_once", "submission_steps._advance_answer"),
    "confirmation": ("displays.send_once",),
    "alert": ("alerts._deliver",),
    "notification": ("notifications._deliver",),
    "welcome": ("setup_check.welcome", "setup_check._submission_channel"),
    "error": ("responses.error_message",),
}
"""What else the bot sends, by the picture that shows it."""

BOARD = {"leaderboard_name": "identity"}
SLOW = {"leaderboard_name": "slow"}
WITHIN_S = 120.0


@dataclass
class Album:
    """The messages in the order in which they were received, by name."""

    found: Scene
    shown: dict[str, list[Message]] = field(default_factory=dict)

    def add(self, name: str, *messages: Message) -> None:
        """Keep messages under a name, as they are now."""
        self.shown.setdefault(name, []).extend(map(copy.copy, messages))

    def add_form(self, name: str, opened: Interaction) -> None:
        """Keep a form, drawn as a message with its title and fields."""
        form = opened.form
        assert form is not None
        message = Message(0, opened.channel, opened.user, f"**{form['title']}**")
        self.add(name, replace(message, components=form["components"]))

    async def ask(
        self, who: Person, command: str, variant: str = "", /, **options: Value
    ) -> Interaction:
        """Use a command and keep the messages of its answer under its name."""
        run = await who.slash(command, **options)
        message = await run.final()
        name = "-".join([*command.split(), *variant.split()])
        self.add(name, message, *run.followups)
        return run

    async def click(self, name: str, who: Person, message: Message, label: str) -> Message:
        """Press a button and keep the answer."""
        run = await who.click(message, label)
        answer = await run.final()
        self.add(name, answer)
        return answer

    async def wait_for(self, name: str, words: str, within: float = WITHIN_S) -> Message:
        """Wait for a message with these words anywhere, and keep it."""

        def sent() -> Message | None:
            return next((each for each in self._everything() if words in each.text), None)

        message = await self.found.server.wait_for(sent, within)
        assert message is not None, words
        self.add(name, message)
        return message

    def _everything(self) -> list[Message]:
        channels: list[Channel] = list(self.found.server.world.channels.values())
        sent = [each for channel in channels for each in channel.all_messages.values()]
        return sorted(sent, key=lambda each: -each.id)

    def assert_complete(self) -> None:
        """Check that there is a picture of everything."""
        missing = pictures() - self.shown.keys()
        assert not missing, sorted(missing)


def pictures() -> set[str]:
    """Return the names of all pictures that there must be."""
    return {"-".join(each.split()) for each in COMMANDS} | SOURCES.keys()


def number_of(message: Message) -> int:
    """Return the number of the submission that a message is about."""
    return int(message.text.split("#", 1)[1].split(":")[0].split()[0])


async def wait_for_end(found: Scene, run: Interaction) -> None:
    """Wait for the report in the answer."""

    def ended() -> bool:
        return "Run again" in {each.label for each in run.message.buttons}

    await found.server.wait_for(ended, WITHIN_S)
