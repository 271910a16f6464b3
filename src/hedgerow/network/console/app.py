"""The console's requests: who may see what is `door`'s, what a page shows is `pages`', what a decision does is the inbox's.

    GET   /                      studies that wait and were decided, budgets
    GET   /studies/{study}       one study
    GET   /journal?before=N      everything asked and answered
    GET   /shown                 what a coordinator sees without asking
    GET   /mark                  changes when anything has happened
    POST  /studies/{study}/approve, /studies/{study}/refuse

Nothing is changed by GET. A decision is that of `hedgerow station approve`: the same function writes it.
"""

from __future__ import annotations

import getpass
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.exceptions import HTTPException

from hedgerow.errors import HedgerowError, LedgerDamaged
from hedgerow.network.station.code import installed_version
from hedgerow.network.station.heads import trouble as trouble_of
from hedgerow.network.station.local_data import Roll
from hedgerow.network.station.review import ROLL, Review
from hedgerow.network.station.submissions import Submission

from .contact import Contact
from .door import HEADERS, BrowserSession, Door, is_here, is_own, same
from .frame import Frame, notice, trouble
from .pages import one, studies
from .records import journal, shown
from .rules import noted, rules_of
from .script import SCRIPT
from .style import ICON, STYLE

log = logging.getLogger("hedgerow")

FORM_BYTES = 8192
ENTRIES = 50
"""Of the journal, on a page."""
LATEST = 100
"""Of the journal, from which those beside the studies are taken."""
OPEN = {"/style.css": ("text/css", STYLE), "/page.js": ("text/javascript", SCRIPT), "/icon.svg": ("image/svg+xml", ICON)}
"""What anybody on this machine may load: it tells nothing."""

Next = Callable[[Request], Awaitable[Response]]


class Refused(Exception):
    """A request that gets no more than a sentence."""

    def __init__(self, status: int, heading: str, sentence: str) -> None:
        self.status, self.heading, self.sentence = status, heading, sentence
        super().__init__(heading)


def application(inbox: Review, door: Door, line: Contact, records: int | None = None) -> FastAPI:
    """The console of a station.

    Parameters
    ----------
    inbox : Review
        With a connection to the database of its own.
    door : Door
    line : Contact
    records : int, optional
        How many are here; shown to the owner.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    desk = ReviewDesk(inbox, line, records)

    @app.middleware("http")
    async def guarded(request: Request, go_on: Next) -> Response:
        try:
            answer = await admitted(request, go_on, door)
        except Refused as refusal:
            log.warning("console: %s %r: %s", request.method, request.url.path, refusal.heading)
            answer = HTMLResponse(notice(refusal.heading, refusal.sentence), refusal.status)
        except HedgerowError as error:
            answer = HTMLResponse(notice("That did not work", error.reason, error.remedy), 500)
        except Exception:
            log.exception("the console failed")
            answer = HTMLResponse(notice("That did not work", "The station's log says why."), 500)
        answer.headers.update(HEADERS)
        return answer

    @app.exception_handler(HTTPException)
    async def nothing_here(request: Request, problem: HTTPException) -> Response:
        return HTMLResponse(notice("There is no such page", "The studies are at /."), problem.status_code)

    @app.get("/")
    async def first(request: Request) -> Response:
        return desk.studies(request.state.session)

    @app.get("/studies/{study}")
    async def the_study(request: Request, study: str) -> Response:
        return desk.study(request.state.session, study)

    @app.get("/journal")
    async def the_journal(request: Request, before: str = "") -> Response:
        return desk.journal(request.state.session, before)

    @app.get("/shown")
    async def what_is_shown(request: Request) -> Response:
        return desk.shown(request.state.session)

    @app.get("/mark")
    async def mark(request: Request) -> Response:
        return PlainTextResponse(desk.mark())

    @app.post("/studies/{study}/approve")
    async def approve(request: Request, study: str) -> Response:
        return desk.decide(request.state.session, study, await form_of(request), "approve")

    @app.post("/studies/{study}/refuse")
    async def refuse(request: Request, study: str) -> Response:
        return desk.decide(request.state.session, study, await form_of(request), "refuse")

    return app


async def admitted(request: Request, go_on: Next, door: Door) -> Response:
    """Answer a request of somebody who may ask.

    Raises
    ------
    Refused
    """
    host = request.headers.get("host", "")
    if not is_here(host):
        raise Refused(400, "Not this address", "The console answers at 127.0.0.1 and localhost alone.")
    if request.method == "GET" and request.url.path in OPEN:
        kind, text = OPEN[request.url.path]
        return Response(text, media_type=kind)
    name = f"hedgerow-{host.rpartition(':')[2]}"
    token = request.query_params.get("token")
    if token is not None and request.method == "GET" and request.url.path == "/":
        entered = door.enter(token)
        if entered is None:
            raise Refused(403, "Not the right address", "Open the address that the station printed when it started.")
        answer = RedirectResponse("/", 303)
        answer.set_cookie(name, entered.cookie, httponly=True, samesite="strict", path="/")
        return answer
    session = door.session(request.cookies.get(name, ""), visit=request.url.path != "/mark")
    if session is None:
        raise Refused(403, "Who is there?", "Open the address that the station printed when it started; it holds the key.")
    if request.method not in ("GET", "HEAD") and not is_own(request.headers.get("origin", ""), host):
        raise Refused(403, "From another page", "A decision is made on this page alone.")
    request.state.session = session
    return await go_on(request)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a small form, with the session's own key.

    Raises
    ------
    Refused
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Refused(415, "No form", "A decision comes as a form.")
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > FORM_BYTES:
            raise Refused(413, "Too long", f"A form has at most {FORM_BYTES} bytes.")
    try:
        found = parse_qs(raw.decode(), keep_blank_values=True, max_num_fields=8, errors="strict")
    except ValueError:
        raise Refused(400, "No form", "A decision comes as a form.") from None
    fields = {name: values[0].strip() for name, values in found.items()}
    if not same(fields.get("key", ""), request.state.session.form_key):
        raise Refused(403, "An old form", "Go back, load the page again, and decide there.")
    return fields


class ReviewDesk:
    """Answers requests that were let in."""

    def __init__(self, inbox: Review, line: Contact, records: int | None) -> None:
        self.inbox, self.line, self.records = inbox, line, records

    def studies(self, session: BrowserSession) -> Response:
        """The first page."""
        submissions = self.inbox.submissions.all()
        latest = self.inbox.journal.entries(last=LATEST)
        return HTMLResponse(studies(self.frame(session, submissions), submissions, self.inbox.spent(), latest))

    def study(self, session: BrowserSession, study: str) -> Response:
        """One study."""
        submission, submissions = self.submission(study), self.inbox.submissions.all()
        entries = self.inbox.journal.entries(study=submission.study, last=LATEST)
        return HTMLResponse(one(self.frame(session, submissions), submission, submissions, self.inbox.spent(), entries))

    def journal(self, session: BrowserSession, before: str) -> Response:
        """Entries before a number, or the last ones; the chain is recomputed each time."""
        written, submissions = self.inbox.journal, self.inbox.submissions.all()
        try:
            count, head = written.verify()
            chain = True, f"The chain is whole: {count:,} entries, none changed or lost. Its head: {head[:16] or 'none'}"
        except LedgerDamaged as error:
            chain = False, f"The chain is broken: {error.reason} {error.remedy}"
        if re.fullmatch(r"[0-9]{1,15}", before):
            last = int(before) - 1
            entries = written.entries(after=max(0, last - ENTRIES))[: min(ENTRIES, max(0, last))]
        else:
            entries = written.entries(last=ENTRIES)
        older = entries[0].number if entries and entries[0].number > 1 else None
        return HTMLResponse(journal(self.frame(session, submissions), self.inbox.priced(entries), submissions, chain, older))

    def shown(self, session: BrowserSession) -> Response:
        """What a coordinator sees."""
        roll = self.inbox.base.found(ROLL)
        n_parties = None if roll is None else len(Roll.unpack(roll))
        frame = self.frame(session, self.inbox.submissions.all())
        return HTMLResponse(
            shown(
                frame,
                n_parties,
                self.records,
                installed_version(),
                [*noted(self.inbox.notes()), *rules_of(self.inbox.config.guard)],
            )
        )

    def decide(self, session: BrowserSession, study: str, fields: dict[str, str], action: str) -> Response:
        """Approve or refuse, as the command does."""
        submission, by, because = self.submission(study), fields.get("by", ""), fields.get("because", "")
        frame = self.frame(session, self.inbox.submissions.all())
        if not by or (action == "refuse" and not because):
            return HTMLResponse(trouble(frame, "Nothing was decided", "A decision has a name, and a refusal a reason."), 422)
        try:
            if action == "approve":
                self.inbox.approve(submission.study, by, because)
            else:
                self.inbox.refuse(submission.study, by, because)
        except HedgerowError as error:
            return HTMLResponse(trouble(frame, "Nothing was decided", error.reason, error.remedy), 409)
        return RedirectResponse(f"/studies/{submission.study}", 303)

    def mark(self) -> str:
        """Changes when anything has happened: a question, a decision, a new study."""
        rows = self.inbox.base.rows(
            'SELECT number FROM journal WHERE instr(entry, \'"kind": "board"\') = 0 ORDER BY number DESC LIMIT 1'
        )  # a study that waits asks again and again
        states = self.inbox.base.rows("SELECT study, status FROM submissions ORDER BY study")
        return hashlib.sha256(repr((rows, states)).encode()).hexdigest()[:16]

    def frame(self, session: BrowserSession, submissions: list[Submission]) -> Frame:
        """What is around every page."""
        waiting = sum(submission.status == "waiting" for submission in submissions)
        lost = trouble_of(self.inbox.keys, self.inbox.journal)
        return Frame(self.inbox.config, self.line, waiting, self.mark(), session.form_key, owner(), lost)

    def submission(self, study: str) -> Submission:
        """A study by its whole name."""
        found = self.inbox.submissions.get(study)
        if found is None:
            raise Refused(404, "There is no such study", "It may have come to another station. The studies are at /.")
        return found


def owner() -> str:
    """The account's name, as the command takes it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
