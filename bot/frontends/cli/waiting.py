"""Waits with a person for what was handed in, and says what becomes of it without that."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bot.domain.errors import SetupError, StoreError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.status import SubmissionStatus
from bot.frontends.cli.client import Client
from bot.frontends.cli.context import CommandLine
from bot.frontends.cli.draw import draw
from bot.frontends.cli.failures import ExitCode
from bot.frontends.cli.following import follow
from bot.frontends.cli.progress import ProgressLines
from bot.frontends.cli.shapes import dumps, status_json
from bot.reports.status import status_report
from runners.contract.verdict import Verdict

_ABSENCES = 5
"""So many looks in a row without a judge: enough for one that was killed to be restarted."""


async def judged(
    line: CommandLine, client: Client, number: SubmissionId, *, wait: bool
) -> SubmissionStatus:
    """How a stored submission ended; with no `wait`, how it stands."""
    with _parting_words(line, client, number):
        if wait:
            await _warn(line, client, number)
            return await _followed(line, client, number)
        idle = await client.idle()
        if idle is not None:
            line.say(f"nobody works through this queue yet: {idle}")
        return await client.status(number)


async def _warn(line: CommandLine, client: Client, number: SubmissionId) -> None:
    """Say at once what the door had to say of it."""
    with suppress(StoreError):  # who follows it waits for Podium, and knows for how long
        if warning := (await client.status(number)).submission.warning:
            line.say(f"warning: {warning}")


async def _followed(line: CommandLine, client: Client, number: SubmissionId) -> SubmissionStatus:
    """Waits for who judges it, and gives up once nobody is there who could."""
    async with client.attending(line.say):
        with ProgressLines(line.err) as lines:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_desertion(client, number))
                ended = await follow(client, number, lines, f"#{number}")
                watch.cancel()
        return ended


async def _desertion(client: Client, number: SubmissionId) -> None:
    """SetupError once nobody is there who could judge it, and nobody comes in a while."""
    absences = 0
    while True:
        await asyncio.sleep(client.look_s)
        lack = await client.lack(number)
        absences = 0 if lack is None else absences + 1
        if lack is not None and absences >= _ABSENCES:
            raise SetupError(lack)


@contextmanager
def _parting_words(line: CommandLine, client: Client, number: SubmissionId) -> Iterator[None]:
    """Says what becomes of a stored submission which this command does not see to its end."""
    try:
        yield
    except BaseException:
        line.say(
            f"submission #{number} is stored and {client.keeper()}; "
            f"`podium show {number}{client.suffix}` shows it, "
            f"`podium cancel {number}{client.suffix}` stops it"
        )
        raise


def tell(line: CommandLine, ended: SubmissionStatus, *, wait: bool, as_json: bool) -> ExitCode:
    """Show how it ended, or that it waits; gives the exit code."""
    if as_json:
        line.out.out(dumps(status_json(ended)), highlight=False)
    elif wait:
        draw(status_report(ended), line.out)
    else:
        line.out.out(f"submission #{ended.submission.id} is queued", highlight=False)
    return exit_code(ended) if wait else ExitCode.PASSED


def exit_code(ended: SubmissionStatus) -> ExitCode:
    """Passed when every job passed; ours when a job was given up."""
    if any(each.job.state is JobState.FAILED for each in ended.jobs):
        return ExitCode.OURS
    verdicts = [each.evaluation.verdict for each in ended.jobs if each.evaluation is not None]
    passed = len(verdicts) == len(ended.jobs) and set(verdicts) == {Verdict.PASSED}
    return ExitCode.PASSED if passed else ExitCode.VERDICT
