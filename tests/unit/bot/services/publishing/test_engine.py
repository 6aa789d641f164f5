"""Tests of the loops that keep releases going, and of what one may be begun again."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.domain.ids import ReleaseId
from bot.domain.release import NewRelease, Release
from bot.services.publishing.engine import MOST_TRIES, Proving, proving, release_proven
from bot.services.publishing.pipeline import Releasing
from bot.services.publishing.request import Wish
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)


async def test_what_is_held_is_given_back_untried_when_the_process_ends(place: Place) -> None:
    begun = asyncio.Event()

    async def prove(release: Release, owner: str) -> None:
        assert (release.person, owner.startswith("web-")) == (place.ada, True)
        begun.set()
        await asyncio.Event().wait()

    await place.store.releases.add(NewRelease("web", place.ada, b"", "a wish", "here"))
    async with proving(Proving(place.store, "web", LEASE, prove)):
        await asyncio.wait_for(begun.wait(), 5)
        assert await place.store.releases.claim("web", "two", LEASE) == ()
    (left,) = await place.store.releases.claim("web", "two", LEASE)
    assert left.tries == 1


async def test_a_release_that_ended_with_its_process_too_often_is_given_up(place: Place) -> None:
    wish = Wish(place.ada, "adding", ("CPU",), None)
    release = Release(ReleaseId(1), place.ada, b"", "", "", tries=MOST_TRIES + 1)
    releasing = Releasing(place.store, place.clock, (), lambda _: None)
    with pytest.raises(UserError, match="nothing was published"):
        await release_proven(releasing, release, wish, begun=False)
