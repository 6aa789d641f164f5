"""Tests of moderation in place: an admin decides on the page of a person or a submission."""

import pytest

from bot.domain.ids import PersonId, SubmissionId
from bot.services.audit import audit_rows
from bot.web.context import WebContext
from tests.doubles.agents import make_door
from tests.doubles.browsers import SAME_ORIGIN, Browser, admin_of, signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

FORMS = 'aria-labelledby="moderation"'
IDENTITY = "<code>local:eve</code>"


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


async def pages_about_eve(place: Place) -> tuple[str, str, PersonId]:
    eve = await place.person("eve")
    submission = await place.submit(eve)
    return f"/submissions/{submission.id}", f"/people/{eve}", eve


async def recorded(door: WebContext) -> list[tuple[str, str, str]]:
    """What the audit log has, oldest first."""
    rows = [each.entry for each in await audit_rows(door.store, 100, None)]
    return [(each.action, each.subject, each.reason) for each in reversed(rows)]


async def test_only_admins_get_the_forms_and_the_account(door: WebContext, place: Place) -> None:
    submission, person, _ = await pages_about_eve(place)
    eve, _ = await signed_in(door, "eve")
    stranger, root = Browser(door), await admin_of(door, "root")
    for path in (submission, person):
        for browser in (eve, stranger):
            text = await browser.text(path)
            assert FORMS not in text
            assert "local:eve" not in text
            assert 'href="/admin"' not in text
            assert 'href="/create"' not in text
        text = await root.text(path)
        assert FORMS in text
        assert IDENTITY in text
        assert 'href="/admin"' in text
        assert 'href="/create"' in text


async def test_pages_with_forms_are_not_compressed_because_their_length_would_reveal_the_stamp(
    door: WebContext, place: Place
) -> None:
    root = await admin_of(door, "root")
    for path in (await pages_about_eve(place))[:2]:
        answer = await root.client.get(path, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in answer.headers
        answer = await Browser(door).client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"


async def test_a_chosen_name_is_reset_on_the_persons_page(door: WebContext, place: Place) -> None:
    mallory = await place.store.people.ensure("discord:9", "Rude", "mallory")
    await place.submit(mallory.id)
    path, root = f"/people/{mallory.id}", await admin_of(door, "root")
    assert "Reset the name" in await root.text(path)
    form = {"who": "discord:9", "reason": "be kind", "back": path}
    answer = await root.post("/admin/reset-name", form)
    assert answer.status_code == 303, answer.text
    text = await root.text(answer.headers["Location"])
    assert "until they choose another name" in text
    assert "<h1>mallory</h1>" in text
    assert "Reset the name" not in text
    assert ("reset-name", "person discord:9", "Rude: be kind") in await recorded(door)


async def test_the_gpu_time_of_a_person_is_limited_on_their_page(
    door: WebContext, place: Place
) -> None:
    _, person, _ = await pages_about_eve(place)
    root = await admin_of(door, "root")
    form = {"who": "local:eve", "reason": "a <b>flood", "back": person, "most": "2.50"}
    answer = await root.post("/admin/limit-time", form | {"unit": "dollars"})
    assert answer.status_code == 303, answer.text
    text = await root.text(answer.headers["Location"])
    assert "The personal limit of $2.50 a day (a &lt;b&gt;flood)" in text
    wrong = await root.post("/admin/limit-time", form | {"most": "much"})
    assert wrong.status_code == 400
    assert 'value="much"' in wrong.text
    assert (await root.post("/admin/limit-time", form | {"reason": ""})).status_code == 400
    other = await root.post("/admin/limit-time", form | {"most": "", "unit": "seconds"})
    assert "does not exist" in other.text
    gone = await root.post("/admin/limit-time", form | {"most": "", "unit": "dollars"})
    assert "$2.50" not in await root.text(gone.headers["Location"])
    assert await door.store.costs.quotas() == ()


async def test_each_decision_in_place_is_recorded_and_returns_to_the_page(
    door: WebContext, place: Place
) -> None:
    submission, person, eve = await pages_about_eve(place)
    number = submission.rpartition("/")[2]
    root = await admin_of(door, "root")
    decided = [
        ("cancel", submission, "stuck"),
        ("disqualify", submission, "copied"),
        ("requalify", submission, "not copied"),
        ("rejudge", submission, ""),
        ("ban", submission, "spam"),
        ("unban", person, "sorry"),
        ("ban", person, "spam again"),
    ]
    for action, back, reason in decided:
        fields = {"who": "local:eve", "submission": number, "reason": reason, "back": back}
        until = {"until": "2099-01-31 18:00 UTC"} if reason == "spam again" else {}
        answer = await root.post(f"/admin/{action}", fields | until)
        assert answer.status_code == 303, answer.text
        assert answer.headers["Location"].startswith(f"{back}?done=")
        assert 'role="status"' in await root.text(answer.headers["Location"])
    found = await recorded(door)
    for action, back, reason in decided:
        subject = "person local:eve" if "ban" in action else f"submission {number}"
        assert any(
            done == action.replace("disqualify", "disqualified")
            and about.startswith(subject)
            and words.startswith(reason)
            for done, about, words in found
        ), (action, back)
    ban = await door.store.moderation.ban_of(eve)
    assert ban is not None
    assert ban.until is not None
    assert "until 2099-01-31" in await root.text(person)


async def test_a_refused_decision_keeps_what_was_typed(door: WebContext, place: Place) -> None:
    _, person, eve = await pages_about_eve(place)
    root = await admin_of(door, "root")
    typed = {"who": "local:eve", "reason": "spam <b>", "until": "soon", "back": person}
    answer = await root.post("/admin/ban", typed)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert 'value="spam &lt;b&gt;"' in answer.text
    assert 'value="soon"' in answer.text
    assert f'href="{person}"' in answer.text
    assert await door.store.moderation.ban_of(eve) is None
    for back in ("//evil.test", "/submissions/1/../x", "https://evil.test/people/1", "/admin"):
        answer = await root.post("/admin/ban", typed | {"until": "", "back": back})
        assert answer.headers["Location"] == "/admin?done=banned", back


async def test_a_decision_needs_a_form_of_this_session_and_an_admin(
    door: WebContext, place: Place
) -> None:
    _, person, eve = await pages_about_eve(place)
    root = await admin_of(door, "root")
    ban = {"who": "local:eve", "reason": "x", "back": person}
    mallory, _ = await signed_in(door, "mallory")
    assert (await mallory.post("/admin/ban", ban)).status_code == 403
    assert (await mallory.post("/admin/look", ban | {"submission": "1"})).status_code == 403
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.test"}
    assert (await root.post("/admin/ban", ban, headers=foreign)).status_code == 403
    stale = await root.client.post("/admin/ban", data={**ban, "stamp": "0"}, headers=SAME_ORIGIN)
    assert stale.status_code == 403
    assert await door.store.moderation.ban_of(eve) is None


async def test_an_admin_reads_a_hidden_source_only_with_an_audit_entry(
    door: WebContext, place: Place
) -> None:
    submission, _, _ = await pages_about_eve(place)
    number = submission.rpartition("/")[2]
    root = await admin_of(door, "root")
    source = await place.store.submissions.source(SubmissionId(int(number)))
    assert "which is recorded" in await root.text(submission)
    assert (await root.get(f"{submission}/source")).status_code == 403
    assert not [each for each in await recorded(door) if each[0] == "look"]
    answer = await root.post("/admin/look", {"submission": number, "reason": "a report"})
    assert answer.status_code == 200
    assert source.split()[0] in answer.text
    assert ("look", f"submission {number}", "a report") in await recorded(door)
    eve, _ = await signed_in(door, "eve")
    assert (await eve.get(f"{submission}/source")).text == source


async def test_an_admin_compares_with_a_hidden_source_only_with_an_audit_entry(
    door: WebContext, place: Place
) -> None:
    submission, _, eve = await pages_about_eve(place)
    other = (await place.submit(eve)).id
    path, root = f"{submission}/compare", await admin_of(door, "root")
    answer = await root.get(f"{path}?with={other}")
    assert (answer.status_code, "which is recorded" in answer.text) == (200, True)
    assert f'<a href="{submission}#moderation">Look at the source</a>' in answer.text
    assert "`" not in answer.text
    assert "/admin submission" not in answer.text
    mallory, _ = await signed_in(door, "mallory")
    answer = await mallory.get(f"{path}?with={other}")
    assert "#moderation" not in answer.text
    assert "belongs to another person" in answer.text
    assert "ends-by-gpu" in answer.text, "their results are shown all the same"
    assert "identical" not in answer.text
    refused = await mallory.post(path, {"with": str(other), "reason": "curious"})
    assert refused.status_code == 403
    assert not [each for each in await recorded(door) if each[0] == "look"]
    number = submission.rpartition("/")[2]
    looked = await root.post("/admin/look", {"submission": number, "reason": "a copy?"})
    assert f'action="{path}"' in looked.text
    assert 'name="reason" value="a copy?"' in looked.text
    compared = await root.post(path, {"with": f"#{other}", "reason": "a copy?"})
    assert compared.status_code == 200
    assert f"#{number} and #{other}" in compared.text
    found = await recorded(door)
    for each in (number, str(other)):
        assert ("look", f"submission {each}", "a copy?") in found
