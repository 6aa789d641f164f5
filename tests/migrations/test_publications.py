"""Publications in flight are carried over from the shapes that each door had for itself."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import asyncpg
import pytest

from bot.discord.publication_messages import outcome_report
from bot.discord.publication_thread import PublicationThread
from bot.domain.ids import PersonId, PublicationId
from bot.domain.publication import PublicationSummary, PublishChange, PublishRequest
from bot.domain.tasks.lint import CheckStep, Finding, Level
from bot.reports.blocks import Text
from bot.services.publishing.own_checks import Check
from bot.services.publishing.publish import NO_BOARD, REQUEST
from bot.services.publishing.state import PublicationState
from bot.store.migrate import migrate, migrations_folder
from bot.web.publications import remarks_of, steps_of
from tests.conftest import database_url

pytestmark = pytest.mark.postgres
(FILE,) = migrations_folder().glob("*_publications.sql")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# Each as the code before wrote it, to the byte.
REQUESTED = (
    '{"person":1,"name":"double","gpus":["CPU"],"deadline":null,"endless":false,"as_admin":false,'
    '"access":null,"onto":0,"zip_name":"double"}'
)
STEPS = (
    '{"words":"CPU: solutions/correct/a.py passed, as expected","tone":"good","begun":false},'
    r'{"words":"CPU: solutions/wrong/b.py: got passed: nul \u0000; wrong_answer is expected",'
    '"tone":"bad","begun":false}'
)
WEB = {
    "fresh": '{"begun":[],"steps":[],"publishing":false,"outcome":null}',
    "moving": '{"begun":["running the solutions of double on CPU, H100"],"steps":['
    + STEPS
    + ',{"words":"CPU: c.py: test 3/5","tone":null,"begun":true},'
    '{"words":"H100: d.py: waiting","tone":null,"begun":false}],'
    '"publishing":false,"outcome":null}',
    "publishing": '{"begun":["x"],"steps":[' + STEPS + '],"publishing":true,"outcome":null}',
    "published": '{"begun":[],"steps":[' + STEPS + '],"publishing":true,"outcome":'
    '{"title":"Leaderboard double","lines":'
    '[["double on CPU, H100 has task version 2 now.","good"],'
    '["Not run on H100: missing GPU type H100","quiet"]],"board":7,"before":1,'
    '"change":"new-version","code":"","reason":"","version":2,"note":"faster",'
    '"checked":[["CPU",""],["H100","missing GPU type H100"]]}}',
    "unsound": '{"begun":[],"steps":[' + STEPS + '],"publishing":false,"outcome":'
    '{"title":"double on CPU: to be mended","lines":'
    '[["task.yml: no solution under solutions/wrong proves anything","plain"],'
    r'["solutions/wrong/b.py: got passed: nul \u0000; wrong_answer is expected","bad"],'
    '["Nothing was published. Mend it, and hand it in again.","bad"]],"board":null,"before":0,'
    '"change":"unchanged","code":"unsound-task","reason":"double on CPU: b.py: short",'
    '"version":0,"note":"","checked":[]}}',
    "refused": '{"begun":[],"steps":[],"publishing":false,"outcome":{"title":"Leaderboard double",'
    '"lines":[["Our fault, not the task\'s: gone. Nothing was published; try again.","bad"]],'
    '"board":null,"before":0,"change":"unchanged","code":"runner","reason":"gone","version":0,'
    '"note":"","checked":[]}}',
}
DISCORD = {
    "fresh": '{"channel":1,"user":2,"thread":null,"direct":false,"live":null,"publishing":false,'
    '"outcome":null,"told":0,"announced":false}',
    "publishing": '{"channel":1,"user":2,"thread":3,"direct":false,"live":4,"publishing":true,'
    '"outcome":null,"told":0,"announced":false}',
    "published": '{"channel":1,"user":2,"thread":3,"direct":true,"live":4,"publishing":true,'
    '"outcome":{"title":"Leaderboard double","lines":'
    '[["double on CPU, H100 has task version 2 now.","good"],'
    '["not run on H100: missing GPU type H100","quiet"]],"board":7,"before":1,'
    '"change":"new-version"},"told":1,"announced":false}',
    "unsound": '{"channel":1,"user":2,"thread":3,"direct":false,"live":4,"publishing":false,'
    '"outcome":{"title":"double on CPU: to be mended","lines":'
    '[["warning  task.yml: no solution under solutions/wrong proves anything","plain"],'
    '["info     solutions/correct/a.py: solutions/correct/a.py passed, as expected","quiet"],'
    r'["error    solutions/wrong/b.py: got passed: nul \u0000; wrong_answer is expected","bad"],'
    '["Nothing was published. Mend it, and give the command again.","bad"]],"board":null,'
    '"before":0,"change":"unchanged"},"told":0,"announced":false}',
    "half": '{"channel":1,"user":2,"thread":3,"direct":false,"live":4,"publishing":false,'
    '"outcome":{"title":"double on H100: to be mended","lines":'
    '[["error    b.py: bad","bad"],'
    '["its solutions were not run: missing GPU type H100; check it beside a runner that has it",'
    '"bad"],["Nothing was published. Mend it, and give the command again.","bad"]],'
    '"board":null,"before":0,"change":"unchanged"},"told":0,"announced":false}',
    "refused": '{"channel":1,"user":2,"thread":3,"direct":false,"live":4,"publishing":false,'
    '"outcome":{"title":"Leaderboard double","lines":[["no","bad"]],"board":null,"before":0,'
    '"change":"unchanged"},"told":1,"announced":true}',
}


@pytest.fixture
async def migrated(postgres_server: str, tmp_path: Path) -> AsyncIterator[Connection]:
    """A database of before with a row of each shape, after the migration."""
    for file in migrations_folder().glob("0*.sql"):
        if file.name < FILE.name:
            shutil.copy(file, tmp_path)
    server = await asyncpg.connect(postgres_server)
    await server.execute("create database of_publications template template0")
    dsn = database_url(postgres_server, "of_publications")
    await migrate(dsn, tmp_path)
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "insert into people (identity, name, created_at) values ('local:ada', 'ada', now())"
    )
    for door, shapes in (("web", WEB), ("discord", DISCORD)):
        for place in shapes.values():
            await connection.execute(
                "insert into releases (door, person, zip, wish, place, tries)"
                " values ($1, 1, 'zip', $2, $3, 1)",
                *(door, REQUESTED, place),
            )
    await migrate(dsn)
    yield connection
    await connection.close()
    await server.execute("drop database of_publications with (force)")
    await server.close()


async def rows(connection: Connection, door: str) -> dict[str, asyncpg.Record]:
    found = await connection.fetch("select * from releases where door = $1 order by id", door)
    return dict(zip(WEB if door == "web" else DISCORD, found, strict=True))


def check_of(row: asyncpg.Record) -> Check:
    return Check.of(
        PublicationSummary(
            PublicationId(row["id"]), PersonId(1), row["wish"], row["state"], 1, None
        )
    )


def before(name: str) -> str:
    """A place of before, as text; jsonb takes no NUL."""
    return WEB[name].replace(r"\u0000", r"\ufffd")


_NOW = {
    "Nothing was published. Mend it, and hand it in again.":
        "Nothing was published. Fix the errors, then submit it again.",
    "Nothing was published. Mend it, and give the command again.":
        "Nothing was published. Fix the task and run the command again.",
}  # fmt: skip
"""Lines that are no longer stored but written when the outcome is shown, in the words of today."""


def in_words_of_today(lines: list[list[str]]) -> list[list[str]]:
    return [[_NOW.get(words, words), tone] for words, tone in lines]


async def test_a_page_shows_each_check_as_it_did_before(migrated: Connection) -> None:
    for name, row in (await rows(migrated, "web")).items():
        old, check = json.loads(before(name)), check_of(row)
        assert row["place"] == "{}"
        assert (check.name, list(check.state.begun)) == ("double", old["begun"])
        assert check.state.publishing is old["publishing"]
        shown = [
            {"words": each.words, "tone": each.tone, "begun": each.begun}
            for each in steps_of(check)
        ]
        assert shown == old["steps"], name
        if old["outcome"] is None:
            assert check.outcome is None
            continue
        assert check.outcome is not None
        lines = in_words_of_today(old["outcome"].pop("lines"))
        assert [list(each) for each in remarks_of(check)] == lines, name
        now = check.outcome.model_dump(mode="json")
        assert {key: now[key] for key in old["outcome"]} == old["outcome"]


async def test_discord_goes_on_where_it_stopped(migrated: Connection) -> None:
    for name, row in (await rows(migrated, "discord")).items():
        old = json.loads(DISCORD[name].replace(r"\u0000", r"\ufffd"))
        state = PublicationState.model_validate_json(row["state"])
        publishing, outcome = old.pop("publishing"), old.pop("outcome")
        assert json.loads(row["place"]) == old
        thread = PublicationThread.model_validate_json(row["place"])
        assert thread.model_dump(mode="json") == old | {"answer": "", "unseen": False}
        assert (state.publishing, state.steps) == (publishing, ())
        if outcome is None:
            assert state.outcome is None
            continue
        assert state.outcome is not None
        report = outcome_report(state.outcome)
        texts = [each for each in report.blocks if isinstance(each, Text)]
        assert report.title == outcome["title"]
        lines = in_words_of_today(outcome["lines"])
        assert sorted([each.text, each.tone] for each in texts) == sorted(lines), name
        assert (state.outcome.board, state.outcome.before) == (outcome["board"], outcome["before"])
        assert state.outcome.change is PublishChange(outcome["change"])


async def test_what_was_requested_is_read_as_before(migrated: Connection) -> None:
    row = await migrated.fetchrow("select * from releases limit 1")
    assert row is not None
    assert REQUEST.validate_json(row["wish"]) == PublishRequest(
        PersonId(1), "double", ("CPU",), onto=NO_BOARD, zip_name="double"
    )
    assert (bytes(row["zip"]), row["tries"], row["ended_at"]) == (b"zip", 1, None)


async def test_findings_are_findings_again(migrated: Connection) -> None:
    discord, web = await rows(migrated, "discord"), await rows(migrated, "web")
    unsound = PublicationState.model_validate_json(discord["unsound"]["state"]).outcome
    assert unsound is not None
    assert unsound.report is not None
    assert (unsound.report.task, unsound.report.gpu) == ("double", "CPU")
    assert [each.level for each in unsound.report.findings] == ["warning", "info", "error"]
    assert unsound.report.findings[0] == Finding(
        Level.WARNING, "task.yml", "no solution under solutions/wrong proves anything"
    )
    half = PublicationState.model_validate_json(discord["half"]["state"]).outcome
    assert half is not None
    assert half.report is not None
    assert half.report.obstacle.startswith("missing GPU type H100;")
    moving = PublicationState.model_validate_json(web["moving"]["state"])
    assert moving.steps[2:] == (
        CheckStep("", "CPU: c.py", "test 3/5"),
        CheckStep("", "H100: d.py"),
    )
