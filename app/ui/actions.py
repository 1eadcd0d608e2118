"""Actions on rows: asked back for where they want a reason or concern many, carried out one by one, and told of."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from litestar.response import Template

from app.domain.errors import Conflict, InvalidInput, NotFound
from app.domain.time_text import parse_instant
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.visit import Visit, page

MOST_NAMED = 5
"""Of those that a question is about."""


class Verb(NamedTuple):
    """An action in words."""

    word: str
    """What its button says: `Pause`."""
    past: str
    """What is told afterwards: `paused`."""
    explains: tuple[str, ...] = ()
    """What it does and does not do, a sentence each."""
    asks_reason: bool = False
    asks_until: bool = False
    is_dangerous: bool = False
    """It cannot be taken back."""


class Carried(NamedTuple):
    """What came of an action on several rows."""

    done: int
    refused: list[str]
    """Why, for each row that did not allow it."""


async def ask_back(
    visit: Visit,
    verb: Verb,
    noun: str,
    *,
    url: str,
    names: Sequence[str],
    ids: Sequence[UUID] = (),
    refused: Form | None = None,
) -> Template:
    """Ask whether an action is meant: on what, how many, why and until when; again where the answer was refused."""
    count = len(ids) or 1
    return await ask_whether(
        visit,
        verb,
        f"{verb.word} {noun if count == 1 else f'{count} {noun}s'}?",
        url=url,
        names=names[:MOST_NAMED],
        count=count,
        button=verb.word if count == 1 else f"{verb.word} {count} {noun}s",
        hidden=[("ids", str(one)) for one in ids],
        refused=refused,
    )


async def ask_whether(
    visit: Visit,
    verb: Verb,
    title: str,
    *,
    url: str,
    names: Sequence[str],
    count: int,
    button: str | None = None,
    hidden: Sequence[tuple[str, str]] = (),
    refused: Form | None = None,
) -> Template:
    """Ask a question about `count` things, some or all of them named; `hidden` is sent with the answer."""
    context: dict[str, Any] = {
        "title": title,
        "verb": button or verb.word,
        "explains": verb.explains,
        "asks_reason": verb.asks_reason,
        "asks_until": verb.asks_until,
        "is_dangerous": verb.is_dangerous,
        "url": url,
        "count": count,
        "sample": names,
        "hidden": hidden,
        "form": refused or await _opened(visit),
    }
    return page("confirm.html", visit, status_code=400 if refused else 200, **context)


def asked_until(form: Form, visit: Visit) -> datetime | None:
    """Return until when: wall time in the zone of the page, or an instant. Raises `InvalidInput`."""
    text = form.text("until")
    if text is None:
        return None
    try:
        return parse_instant(text, zone=visit.zone)
    except InvalidInput as error:
        raise error.within("/until") from None


async def carry_out(ids: Iterable[UUID], do: Callable[[UUID], Awaitable[Any]]) -> Carried:
    """Do something to each; one that does not allow it stops no other."""
    done, refused = 0, []
    for one in ids:
        try:
            await do(one)
            done += 1
        except (Conflict, NotFound) as error:
            refused.append(error.detail)
    return Carried(done, refused)


def told(verb: Verb, noun: str, carried: Carried) -> Flash:
    """Say what came of an action on several rows."""
    text = f"{carried.done} {noun if carried.done == 1 else noun + 's'} {verb.past}."
    if not carried.refused:
        return Flash(text)
    return Flash(f"{text} {len(carried.refused)} not: {carried.refused[0]}", kind="bad")


async def _opened(visit: Visit) -> Form:
    """Return the empty form; it leads back to the page that it was opened from."""
    sent = await Form.sent(visit.request) if visit.request.method == "POST" else Form()
    came_from = visit.request.headers.get("referer", "")
    return Form(values={"next": sent.values.get("next") or _path_of(came_from, visit)})


def _path_of(address: str, visit: Visit) -> str:
    base = str(visit.request.base_url).rstrip("/")
    return address[len(base) :] if address.startswith(f"{base}/") else ""
