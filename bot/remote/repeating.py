"""Hands something in just once, however often the line to the server breaks on the way."""

from uuid import uuid4

from bot.domain.api.submissions import SubmissionAnswer
from bot.domain.errors import SetupError, StoreError, UserError
from bot.remote.client.requests import Requests, UnsureError
from bot.remote.outage import BUSY, PATIENCE_S, Outage, Say

KEY = "Idempotency-Key"
_UNSURE = "whether it was taken in is not known: `podium history` tells, before you try again"


async def made_once(
    requests: Requests,
    path: str,
    body: object,
    *,
    say: Say,
    within_s: float,
    patience_s: float = PATIENCE_S,
) -> SubmissionAnswer:
    """The submission that a request makes; where no answer comes it is sent again with its key.

    A server that cannot be reached at first is not asked on. SetupError when it has had the
    request, and was away for `patience_s` since.
    """
    key = str(uuid4())
    outage = Outage(requests.url, say, patience_s)
    lost = False
    while True:
        try:
            answer = await requests.post(
                path, SubmissionAnswer, body, within_s=within_s, headers={KEY: key}
            )
        except UnsureError as error:
            lost = True
            await _wait(outage, StoreError(error.lost))
        except SetupError as error:
            if not lost:
                raise
            await _wait(outage, error)
        except UserError as error:
            if not lost or error.code != BUSY:
                raise
            await _wait(outage, StoreError(error.message))
        else:
            outage.over()
            return answer


async def _wait(outage: Outage, error: StoreError) -> None:
    try:
        await outage.wait(error)
    except SetupError as ended:
        raise SetupError(f"{ended}; {_UNSURE}") from error
