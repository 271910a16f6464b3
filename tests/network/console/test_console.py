"""The console page: who may see it, who may decide, and that strangers' words stay words."""

import asyncio
import logging
import math
import re
import socket
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from hedgerow.cli.pilot import free_port, lay_out
from hedgerow.errors import HedgerowError
from hedgerow.network.console.app import application
from hedgerow.network.console.contact import Contact
from hedgerow.network.console.door import IDLE_SECONDS, SESSIONS, Door, is_here, is_own
from hedgerow.network.console.frame import Frame, connection
from hedgerow.network.console.reading import clean, grouped, promise, read
from hedgerow.network.console.serve import ADDRESS, address_file, serving
from hedgerow.network.console.sidebar import budgets
from hedgerow.network.station.config import GuardSection, read_config
from hedgerow.network.station.review import ROLL, Review, Spent
from hedgerow.network.station_service import serve
from hedgerow.privacy import Budget
from hedgerow.report.markup import join
from hedgerow.store import last
from patience import PATIENCE, until
from station_house import LOGISTIC, MEANS, PRIVATE, STUDY, House

TOKEN = "the key of this door"
HERE = "http://127.0.0.1:8440"
OTHER = b"another study..."
ID, OTHER_ID = STUDY.hex(), OTHER.hex()
PATHS = ("/", f"/studies/{ID}", "/journal", "/shown", "/mark", "/nothing")
LIMITED = {"budget": {"epsilon": 2.0, "delta": 1e-6}}


class Visitor:
    """A browser without a picture: it keeps cookies and follows nothing by itself."""

    def __init__(self, desk, here=HERE):
        transport = httpx.ASGITransport(desk.app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=here)
        self.here, self.desk = here, desk

    def ask(self, method, path, **how):
        return asyncio.run(self._client.request(method, path, **how))

    def get(self, path, **how):
        return self.ask("GET", path, **how)

    def enter(self):
        assert self.get(f"/?token={TOKEN}").status_code == 303
        return self

    def key(self):
        return re.search(r'name="key" value="([^"]+)"', self.get(f"/studies/{ID}").text)[1]

    def decide(self, action, study=ID, *, origin=None, **fields):
        form = {"key": self.key(), "by": "Ada", "because": ""} | fields
        return self.ask("POST", f"/studies/{study}/{action}", data=form, headers={"origin": origin or self.here})


class Desk:
    """A station whose console can be visited."""

    def __init__(self, tmp_path, guard=LIMITED, records=60):
        self.house = House(tmp_path, {"alpha": guard})
        self.station = self.house.stations["alpha"]
        self.station.base.keep(ROLL, self.station.held.roll.pack())
        self.time, self.line = 0.0, Contact(now=lambda: self.house.time)
        self.inbox = Review(self.station.config, self.station.keys, self.station.base, now=lambda: self.house.time)
        self.app = application(self.inbox, Door(TOKEN, lambda: self.time), self.line, records)

    def status(self, study=ID):
        return self.station.submissions.status(study)

    def run(self, text=PRIVATE, life=1):
        built = self.house.built(text, life=life)
        return last(built.listing.program(built.settings)(built.federation))


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    made.house.board(PRIVATE)
    return made


@pytest.fixture
def visitor(desk):
    return Visitor(desk).enter()


# ---- who may see it -------------------------------------------------------------------------------------------------
def test_the_printed_address_opens_a_session_and_leaves_the_address_bar(desk):
    stranger = Visitor(desk)
    answer = stranger.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert "means" in stranger.get("/").text


@pytest.mark.parametrize("path", PATHS)
def test_without_a_session_nothing_is_told(desk, path):
    stranger = Visitor(desk)
    for answer in (stranger.get(path), stranger.get("/?token=a+wrong+one"), stranger.ask("POST", f"/studies/{ID}/approve")):
        assert answer.status_code == 403
        for words in ("means", "alpha", "hub", "heart"):
            assert words not in answer.text
    assert desk.status() == "waiting"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8440", "127.0.0.1.evil.example:8440", "localhost:x", "", "[::1]:8440"]
)
def test_a_name_that_is_not_this_machine_s_is_refused(visitor, host):
    for path in (*PATHS, f"/?token={TOKEN}", "/style.css"):
        answer = visitor.get(path, headers={"host": host})
        assert answer.status_code == 400
        assert "means" not in answer.text


def test_localhost_and_the_end_of_a_tunnel_are_this_machine(desk):
    for here in ("http://localhost:8440", "http://127.0.0.1:9000"):
        assert "means" in Visitor(desk, here).enter().get("/").text
    assert is_here("localhost")
    assert not is_own("null", "127.0.0.1:8440")
    assert not is_own("https://127.0.0.1:8440", "127.0.0.1:8440")


def test_every_answer_forbids_what_a_page_does_not_need(visitor):
    answers = [visitor.get(path) for path in (*PATHS, "/style.css", "/page.js", f"/?token={TOKEN}", "/?token=x")]
    answers += [visitor.decide("refuse"), visitor.get("/", headers={"host": "evil.example"}), visitor.ask("DELETE", "/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        for rule in ("default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'"):
            assert rule in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"


def test_a_session_ends_when_nobody_has_come_for_long(desk, visitor):
    desk.time += IDLE_SECONDS - 1
    assert visitor.get("/").status_code == 200
    desk.time += IDLE_SECONDS - 1
    assert visitor.get("/mark").status_code == 200  # the page's own looking is no visit
    desk.time += 2
    assert visitor.get("/").status_code == 403


def test_the_oldest_of_too_many_sessions_is_closed():
    door = Door(TOKEN)
    cookies = [door.enter(TOKEN).cookie for _ in range(SESSIONS + 1)]
    assert door.session(cookies[0]) is None
    assert all(door.session(cookie) for cookie in cookies[1:])
    assert door.enter("é" + TOKEN) is None


# ---- who may decide -------------------------------------------------------------------------------------------------
def test_an_approval_is_the_one_that_the_command_writes(desk, visitor):
    desk.house.board(PRIVATE, study=OTHER)
    answer = visitor.decide("approve", because="for the letter")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/studies/{ID}")
    desk.inbox.approve(OTHER_ID, "Ada", "for the letter")
    mine, other = (desk.station.submissions.get(study) for study in (ID, OTHER_ID))
    mine.check_signature(desk.house.key_materials["alpha"].public_identity)
    same = {"study": "", "description": b"", "digest": b"", "signature": b"", "came": ""}
    assert replace(mine, **same) == replace(other, **same)
    assert [entry.code for entry in desk.station.journal.entries(study=ID)] == ["waiting", "approved"]


FORGED = {
    "no key": {"key": ""},
    "another key": {"key": "x" * 43},
    "another page": {"origin": "http://evil.example"},
    "another port": {"origin": "http://127.0.0.1:9999"},
    "a hidden origin": {"origin": "null"},
}


@pytest.mark.parametrize("action", ["approve", "refuse"])
@pytest.mark.parametrize("case", FORGED)
def test_a_forged_form_decides_nothing(desk, visitor, case, action):
    assert visitor.decide(action, because="x", **FORGED[case]).status_code == 403
    assert desk.status() == "waiting"


def test_a_key_of_another_session_decides_nothing(desk, visitor):
    assert visitor.decide("approve", key=Visitor(desk).enter().key()).status_code == 403
    assert desk.status() == "waiting"


def test_what_is_no_small_form_decides_nothing(desk, visitor):
    key, origin = visitor.key(), {"origin": HERE}
    path = f"/studies/{ID}/approve"
    form = {"key": key, "by": "Ada"}
    assert visitor.ask("POST", path, data=form).status_code == 403  # browsers say where a form comes from
    assert visitor.ask("POST", path, json=form, headers=origin).status_code == 415
    assert visitor.ask("POST", path, data=form | {"because": "x" * 9000}, headers=origin).status_code == 413
    assert visitor.ask("POST", path, data=form | {str(i): "" for i in range(9)}, headers=origin).status_code == 400
    binary = {"content-type": "application/x-www-form-urlencoded"} | origin
    assert visitor.ask("POST", path, content=b"by=\xff", headers=binary).status_code == 400
    assert desk.status() == "waiting"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_only_a_form_changes_anything(desk, visitor, method):
    before = desk.station.journal.entries()
    for action in ("approve", "refuse"):
        form = {"key": visitor.key(), "by": "Ada", "because": "x"}
        answer = visitor.ask(method, f"/studies/{ID}/{action}", params=form, data=form, headers={"origin": HERE})
        assert answer.status_code >= 400
    assert (desk.status(), desk.station.journal.entries()) == ("waiting", before)


def test_a_refusal_has_a_reason_that_stays_here(desk, visitor):
    assert visitor.decide("refuse").status_code == 422
    assert desk.status() == "waiting"
    assert visitor.decide("refuse", because="incomes are nobody's business").status_code == 303
    assert "incomes are nobody&#x27;s business" in visitor.get(f"/studies/{ID}").text
    said = desk.house.board(PRIVATE)["alpha"]
    assert (said["status"], said["code"]) == ("refused", "HR-608")
    assert all(b"nobody" not in part for letter in desk.house.opened("alpha") for part in letter.parts)


def test_an_approval_can_be_taken_back_on_the_page(desk, visitor):
    visitor.decide("approve")
    assert "Take the approval back" in visitor.get(f"/studies/{ID}").text
    visitor.decide("refuse", because="enough")
    assert desk.status() == "refused"


def test_what_the_guard_refused_no_form_approves(tmp_path):
    desk = Desk(tmp_path, LIMITED | {"columns": ["age"]})
    desk.house.board(PRIVATE)
    desk.house.board(PRIVATE.replace('["age", "dose"]', '["age"]'), ("age",), study=OTHER)
    visitor = Visitor(desk).enter()
    page = visitor.get(f"/studies/{ID}").text
    assert "The guard refused it" in page
    assert "HR-603" in page
    assert "<form" not in page
    key = re.search(r'name="key" value="([^"]+)"', visitor.get("/").text)[1]
    form = {"key": key, "by": "Ada"}
    answer = visitor.ask("POST", f"/studies/{ID}/approve", data=form, headers={"origin": HERE})
    assert answer.status_code == 409
    assert desk.status() == "refused"


@pytest.mark.parametrize("name", ["means", ID[:8], ID.upper(), "0" * 32, "..%2f..", "%00"])
def test_a_study_has_one_address(visitor, name):
    assert visitor.get(f"/studies/{name}").status_code == 404


# ---- what it shows --------------------------------------------------------------------------------------------------
HOSTILE = 'title = "<script>alert(1)</script>\\u202e"\ndescription = "</p><img src=x onerror=alert(2)>"\n'


def test_strangers_words_stay_words(tmp_path):
    desk = Desk(tmp_path, {"columns": ["age", "dose", "sick"]})
    desk.house.board(HOSTILE + MEANS)
    desk.house.board(HOSTILE + MEANS.replace('"age"', '"income"'), ("income", "dose"), study=OTHER)
    visitor = Visitor(desk).enter()
    visitor.decide("approve", by='"><script>alert(3)</script>', because="<b>x</b>")
    for path in ("/", f"/studies/{ID}", f"/studies/{OTHER_ID}", "/journal"):
        page = visitor.get(path).text
        assert "&lt;script&gt;alert(1)" in page
        assert re.findall(r"<(script|img|b)\b[^>]*>", page) in (["script"], ["script", "b"])  # the page's own, and a count
        assert "alert(3)</script>" not in page
        assert "\u202e" not in page
    assert clean("a\u202eb\n" + "x" * 400).startswith("a\ufffdb x")


def test_a_page_has_no_script_and_no_style_inside(visitor):
    for path in PATHS[:4]:
        page = visitor.get(path).text
        assert re.findall(r"<script[^>]*>[^<]+", page) == []
        assert re.findall(r"\s(style|on\w+)=", page) == []
        assert re.findall(r'(?:src|href|action)="(?!/|")', page) == []


def test_a_person_reads_every_question_before_deciding(visitor):
    page = visitor.get("/").text
    for words in (
        "hub asks",
        "Means and deviations of columns",
        "5 numbers from each: n, sum (2,), squares (2,)",
        "added here, before anything leaves: Gaussian(5)",
        "sum: l2(35.0036) per record",
        "sum of hedgerow.stats.moments:deviations",
        "your own budget counts",
        "<li>age</li>",
    ):
        assert words in page


def test_the_budget_falls_and_the_journal_says_why(desk, visitor):
    def left():
        return float(re.search(r'class="left">([\d.]+)', visitor.get("/").text)[1])

    assert left() == 2.0
    visitor.decide("approve")
    desk.run(life=2)
    assert 1.1 < left() < 1.2
    page = visitor.get("/journal").text
    told = [
        page.index(words)
        for words in ("It was answered", "A question came, and was charged<", ">Approved<", "waits for a decision")
    ]
    assert told == sorted(told)  # newest first
    assert "The chain is whole: 4 entries" in page


def test_parties_that_have_spent_differently_have_bars_of_their_own(desk):
    def spent(epsilon, n_parties):
        return Spent("everything", Budget(2.0, 1e-6, unit="record"), epsilon, n_parties)

    shown = join(budgets(desk.station.config.guard, [spent(math.inf, 1), spent(1.9, 2), *[spent(0.5, 3)] * 4]))
    assert shown.count("<svg") == 4
    assert "and 6 parties that have spent less" in shown
    assert re.findall(r'class="(rest[ \w]*)" width="([^"]*)"', shown)[:3] == [
        ("rest low", "0%"),
        ("rest low", "5%"),
        ("rest", "75%"),
    ]
    assert "everything spent" in shown
    assert 'aria-label="0.1 of 2 left"' in shown
    assert "sets no budget" in join(budgets(GuardSection(), []))


def test_a_changed_journal_is_told(desk, visitor):
    with desk.station.base.transaction() as connection_:
        connection_.execute("DROP TRIGGER journal_never_changed")
        connection_.execute("UPDATE journal SET entry = replace(entry, 'waiting', 'refused')")
    page = visitor.get("/journal").text
    assert "The chain is broken" in page
    assert "entry 1" in page


@pytest.mark.slow
def test_a_long_journal_has_pages(desk, visitor):
    for n in range(120):
        desk.house.later(seconds=1)
        desk.house.ask("board", [PRIVATE.encode(), b""], study=n.to_bytes(16, "big"))
    pages, path = [], "/journal"
    while path:
        pages.append(visitor.get(path).text)
        older = re.search(r'href="(/journal\?before=\d+)"', pages[-1])
        path = older[1] if older else ""
    assert [page.count("<tr>") - 1 for page in pages] == [50, 50, 21]
    assert visitor.get("/journal?before=x").text == visitor.get("/journal").text


def test_a_study_that_asks_again_is_told_once_and_is_no_news(desk, visitor):
    mark = visitor.get("/mark").text
    for _ in range(3):
        desk.house.board(PRIVATE)
    assert len(desk.inbox.journal.entries()) == 1
    assert "waits for a decision" in visitor.get("/journal").text
    assert visitor.get("/mark").text == mark
    visitor.decide("approve")
    assert visitor.get("/mark").text != mark


def test_what_others_see_names_no_number_of_records_unless_it_is_told(tmp_path):
    for guard, words in (({}, "<dd>not told</dd>"), ({"tell_records": True}, "<dd>about 4,320</dd>")):
        desk = Desk(tmp_path / words[4:7], guard | {"columns": ["age"], "hours": ["Mon-Fri 08:00-18:00"]}, records=4321)
        page = Visitor(desk).enter().get("/shown").text
        public, _, own = page.partition("What only you see")
        assert words in public
        assert "4,321" in own
        assert "20 to 90" in public
        assert public.count("forbidden") == 3
        assert "Mon-Fri 08:00-18:00" in own


def test_the_page_tells_whether_the_coordinator_is_there(desk):
    class Link:
        connected = None

    def words(line):
        return connection(Frame(desk.station.config, line, 0, "", "", "")).partition(">")[2]

    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    link = Link()
    line = Contact(link, now=lambda: at)
    assert words(line).startswith("Nothing came from hub since 2 Mar 2026, 12:00 UTC")
    answers = iter([None, b"answer"])
    receive = line.listening(lambda raw: next(answers))
    receive(b"from a stranger")
    assert line.heard is None
    receive(b"from the hub")
    at += timedelta(minutes=5)
    assert words(line).startswith("hub: last letter 5 minutes ago")
    link.connected = True
    assert words(line).startswith("Connected to hub; last letter 5 minutes ago")
    link.connected = False
    assert words(line).startswith("hub cannot be reached; dialling")


def test_questions_that_differ_in_bounds_alone_are_read_together(tmp_path):
    desk = Desk(tmp_path, {})
    desk.house.board(LOGISTIC)
    reading = read(desk.station.submissions.get(ID))
    assert [group.heading for group in reading.groups] == ["Questions 1 to 4"]
    assert reading.promise.heading == "This station's own totals, without noise"
    row = dict(reading.groups[0].rows[0])
    rows = [row | {"questions": f"question {n}", "bound": f"l2({n}) per record"} for n in (1, 2)]
    [group] = grouped(rows)
    assert (
        "One record can move it by at most",
        ("question 1: l2(1) per record", "question 2: l2(2) per record"),
    ) in group.facts
    assert len(grouped([*rows, row | {"leaves": "7 numbers"}])) == 2


@pytest.mark.parametrize(
    ("row", "budget", "kind", "words"),
    [
        ({"event": "nonprivate", "mechanism": "none, plain aggregation"}, True, "open", "this station's exact totals"),
        ({"event": "nonprivate", "mechanism": "none, SecAgg aggregation"}, True, "open", "nothing of this station alone"),
        ({"event": "gaussian(5)", "epsilon": "not private"}, False, "private", "your own budget"),
        ({"event": "gaussian(5)", "epsilon": "0.1 after the first, 0.6931 after the last"}, True, "private", "about 2 at most"),
        ({"event": "gaussian(.1)", "epsilon": "1.2e+03"}, True, "weak", "hardly anything"),
    ],
)
def test_a_promise_is_said_for_people(row, budget, kind, words):
    found = promise([{"mechanism": "Gaussian(5) at the party, plain aggregation", "epsilon": "not private"} | row], "s", budget)
    assert found.kind == kind
    assert words in found.words


# ---- how it is served -----------------------------------------------------------------------------------------------
def test_it_is_served_to_this_machine_alone(desk):
    with serving(desk.inbox, desk.line, 0) as address:
        port = int(address.split(":")[2].partition("/")[0])
        assert httpx.get(address).status_code == 303
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), 1.0)
        with pytest.raises(HedgerowError, match="HR-601"), serving(desk.inbox, desk.line, port):
            pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1.0)


@pytest.mark.slow
def test_a_station_that_has_no_console_needs_none_of_its_packages():
    code = "import sys, hedgerow.network.station_service; sys.exit(bool({'fastapi', 'uvicorn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_its_packages_it_says_which(desk, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(HedgerowError, match=r"HR-105.*uvicorn[\s\S]*network"), serving(desk.inbox, desk.line, 0):
        pass


def test_the_address_is_in_a_file_of_its_owner_and_in_no_log(tmp_path, caplog, capsys, monkeypatch):
    (tmp_path / "state").mkdir()
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with address_file("http://127.0.0.1:8440/?token=secret", tmp_path):
        file = tmp_path / ADDRESS
        assert file.read_text() == "http://127.0.0.1:8440/?token=secret\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()
    assert "127.0.0.1:8440" in caplog.text
    assert "secret" not in caplog.text
    assert "token=secret" in capsys.readouterr().out


@pytest.mark.slow
def test_a_station_serves_its_console_while_it_runs(tmp_path):
    lay_out(tmp_path / "pilot", ["alpha", "beta"], port=free_port(), approval="ask")
    folder, stop = tmp_path / "pilot" / "alpha", threading.Event()
    assert read_config(folder)[0].console is None
    with (folder / "station.toml").open("a") as file:
        file.write("\n[console]\nport = 0\n")
    thread = threading.Thread(target=serve, args=(folder, stop))
    thread.start()
    try:
        until(lambda: (folder / ADDRESS).exists() and (folder / ADDRESS).read_text(), ended=lambda: not thread.is_alive())
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as client:
            address = (folder / ADDRESS).read_text().strip()
            assert "Nothing waits for your decision" in client.get(address).text
            assert "285" in client.get(address.replace("/?", "/shown?")).text
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not (folder / ADDRESS).exists()
