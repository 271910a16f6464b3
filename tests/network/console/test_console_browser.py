"""The console in a real browser: a person reads what a study asks, approves it, and watches the budget fall.

Needs a Chromium and the package `websocket-client`; the browser is driven through its own DevTools protocol.
"""

import base64
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from hedgerow.network.console.contact import Contact
from hedgerow.network.console.serve import serving
from hedgerow.network.station.base import Base
from hedgerow.network.station.review import ROLL, Review
from hedgerow.store import last
from patience import PATIENCE, until
from station_house import MEANS, House

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]
PICTURE = "HEDGEROW_CONSOLE_PICTURE"
"""Environment variable that names the file in which the page is pictured, for the documentation."""

websocket = pytest.importorskip("websocket", reason="websocket-client drives the browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")]


class Browser:
    """One tab."""

    def __init__(self, socket):
        self._socket, self._number, self.problems = socket, 0, []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv())
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self._note(told)

    def _note(self, told):
        about = told.get("params", {})
        if told.get("method") == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.problems.append(about["entry"]["text"])
        if told.get("method") == "Runtime.exceptionThrown":
            self.problems.append(about["exceptionDetails"]["text"])
        if told.get("method") == "Network.requestWillBeSent":
            address = about["request"]["url"]
            if not address.startswith("http://127.0.0.1:"):
                self.problems.append(f"asked for {address}")

    def run(self, script):
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script):
        until(lambda: self.run(script), script, pause=0.05)

    def open(self, address):
        self.run("window.old = true")
        self.call("Page.navigate", url=address)
        self.settle()

    def reload(self):
        self.run("window.old = true")
        self.call("Page.reload")
        self.settle()

    def settle(self):
        self.until("!window.old && document.readyState === 'complete'")

    def press(self, selector):
        """Press the mouse where a person would, in the middle of an element."""
        self.run("window.old = true")
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        x, y = self.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector, words):
        self.run(f"document.querySelector({selector!r}).select()")
        self.call("Input.insertText", text=words)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path):
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder):
    """A Chromium with nothing in it."""
    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        told = folder / "DevToolsActivePort"
        until(lambda: told.exists() and told.read_text().count("\n"), ended=lambda: process.poll() is not None, pause=0.05)
        port = told.read_text().split()[0]
        [tab] = [each for each in httpx.get(f"http://127.0.0.1:{port}/json").json() if each["type"] == "page"]
        socket = websocket.create_connection(tab["webSocketDebuggerUrl"], suppress_origin=True, timeout=PATIENCE)
        try:
            yield Browser(socket)
        finally:
            socket.close()
    finally:
        process.terminate()
        process.wait(30)


BUDGET = {"budget": {"epsilon": 2.0, "delta": 1e-6}, "study_budget": {"epsilon": 1.0, "delta": 1e-6}}
NOISE = '\n[protection.mechanism]\nlaw = "gaussian"\nnoise_multiplier = 5.0\nat = "party"\n'
DOSES = (
    'title = "Age and dose in three wards"\n'
    'description = "Means and spreads, for the yearly letter to the wards."\n'
    + MEANS
    + NOISE
    + '[budget]\nepsilon = 1.0\ndelta = 1e-6\nunit = "record"\n'
)
INCOMES = 'title = "Who earns what"\n' + MEANS.replace('"age"', '"income"')
SECOND = DOSES.replace("Age and dose in three wards", "Doses in the west, a second look").replace(
    "yearly letter to", "archive of"
)


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    guard = BUDGET | {"columns": ["age", "dose", "sick"]}
    return House(tmp_path, dict.fromkeys(("north", "south", "west"), guard))


@contextmanager
def console(house, name):
    """A station's console, over its own connection to the database as in the service."""
    station = house.stations[name]
    station.base.keep(ROLL, station.held.roll.pack())
    line = Contact(now=lambda: house.time)
    house.rail.stations[name] = line.listening(station.receive)
    base = Base(station.base.path)
    try:
        inbox = Review(station.config, station.keys, base, now=lambda: house.time)
        with serving(inbox, line, 0, records=60) as address:
            yield address
    finally:
        base.close()


LEFT = "parseFloat(document.querySelector('.budget .left').textContent)"
BAR = "document.querySelector('.budget .rest').getBoundingClientRect().width"


def test_a_person_reads_approves_and_watches_the_budget_fall(house, tmp_path):
    other = b"a refused study."
    house.board(INCOMES, ("income", "dose"), study=other)
    house.later(days=2, minutes=97)
    house.board(DOSES)
    house.later(minutes=34)
    with console(house, "north") as address, browser(tmp_path / "profile") as tab:
        tab.size(1400, 1000)
        tab.open(address)
        assert "token" not in tab.run("location.href")
        words = tab.run("document.querySelector('.submission').innerText")
        for read in (
            "Age and dose in three wards",
            "5 numbers from each",
            "Gaussian(5)",
            "age",
            "0.8341",
            "north, south, west",
        ):
            assert read in words
        assert "HR-603" in tab.run("document.body.innerText")
        before, width = tab.run(LEFT), tab.run(BAR)
        assert before == 2.0

        tab.type("form[action$=approve] input[name=by]", "Ada")
        tab.press("form[action$=approve] button")
        tab.settle()
        assert "Approved by Ada" in tab.run("document.body.innerText")
        assert {house.stations[name].submissions.status(b"a study's name..".hex()) for name in house.stations} == {
            "approved",
            "waiting",
        }

        for name in ("south", "west"):
            station = house.stations[name]
            Review(station.config, station.keys, station.base).approve("Age and dose in three wards", "Bob")
        house.later(minutes=11)
        built = house.built(DOSES, life=1 << 20)
        assert last(built.listing.program(built.settings)(built.federation)).n > 0

        tab.until("!document.getElementById('news').hidden")  # the page says by itself that something has happened
        tab.press("#news a")
        tab.settle()
        assert tab.run(LEFT) == pytest.approx(before - 0.8341, abs=0.01)
        assert tab.run(BAR) < 0.7 * width
        tab.open(address.partition("?")[0] + "journal")
        assert "The chain is whole" in tab.run("document.body.innerText")
        assert "sum of hedgerow.stats.moments:deviations" in tab.run("document.querySelector('table').innerText")
        assert tab.problems == []
        if PICTURE in os.environ:
            house.later(days=1, minutes=-25)
            house.number += 1 << 60
            house.board(SECOND, study=b"one year later..")
            house.later(seconds=80)
            tab.size(1400, 1180)
            tab.open(address.partition("?")[0])
            tab.picture(os.environ[PICTURE])


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_wider_than_the_window(house, tmp_path, width):
    house.board(DOSES.replace("Age and dose", "<b>" + "W" * 150))
    with console(house, "north") as address, browser(tmp_path / "profile") as tab:
        for dark in (False, True):
            tab.size(width, 900, dark)
            for path in ("", "journal", "shown"):
                tab.open(address if not path else address.partition("?")[0] + path)
                assert tab.run("document.documentElement.scrollWidth") <= width
            assert (tab.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(22, 25, 22)") is dark
        assert tab.problems == []
