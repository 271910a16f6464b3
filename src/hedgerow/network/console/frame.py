"""What is around every page of the console. HTML is escaped by construction: `tag` makes markup, every other string is text."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.network.station.config import StationConfig
from hedgerow.report.markup import Html, tag

from .contact import Contact
from .reading import ago, moment


@dataclass(frozen=True)
class Frame:
    """What every page shows around its own matter."""

    config: StationConfig
    line: Contact
    waiting: int
    mark: str
    form_key: str
    owner: str
    trouble: str = ""

    @property
    def timezone(self) -> str:
        """The owner's."""
        return self.config.guard.timezone


def page(frame: Frame, here: str, title: str, *main: str | None) -> str:
    """A whole page; `here` is the address of the tab that it belongs to."""
    tabs = [("/", "Studies"), ("/journal", "Journal"), ("/shown", "What others see")]
    count = tag("b", str(frame.waiting)) if frame.waiting else None
    links = [
        tag("a", name, count if to == "/" else None, href=to, aria_current="page" if to == here else None) for to, name in tabs
    ]
    name = frame.config.name
    header = tag(
        "header",
        tag(
            "div",
            tag("div", tag("p", tag("span", "Hedgerow", class_="brand"), " station", class_="kicker"), tag("h1", name)),
            connection(frame),
            class_="top",
        ),
        tag("nav", *links, aria_label="Pages"),
        tag("p", tag("a", "", href=""), class_="news", id="news", hidden=""),
    )
    footer = tag("footer", tag("p", "This page is served by the station itself, to this machine alone. It shows no record."))
    return document(f"{title} · {name}", tag("body", header, tag("main", *main), footer, data_mark=frame.mark), script=True)


def document(title: str, body: Html, *, script: bool = False) -> str:
    """A document that loads its own style sheet and nothing from elsewhere."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        void("link", rel="stylesheet", href="/style.css"),
        void("link", rel="icon", href="/icon.svg", type="image/svg+xml"),
        tag("script", src="/page.js", defer="") if script else None,
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def notice(heading: str, *sentences: str) -> str:
    """A page that says one thing, to somebody who may not see more."""
    words = [tag("p", sentence, class_="lead") for sentence in sentences]
    kicker = tag("p", tag("span", "Hedgerow", class_="brand"), " station", class_="kicker")
    return document(heading, tag("body", tag("main", kicker, tag("h1", heading), *words)))


def trouble(frame: Frame, heading: str, *sentences: str) -> str:
    """A page that says what did not work, and leads back."""
    words = [tag("p", sentence) for sentence in sentences if sentence]
    back = tag("p", tag("a", "Back to the studies", href="/"), class_="more")
    return page(frame, "", heading, tag("div", tag("section", tag("h2", heading), *words, back), class_="alone"))


def connection(frame: Frame) -> Html:
    """Whether the coordinator is there."""
    line, name = frame.line, frame.config.coordinator.name
    if frame.trouble:
        return tag("p", f"Nothing is answered: {frame.trouble}", class_="line down")
    now = line.now()
    heard = "" if line.heard is None else f"; last letter {ago((now - line.heard).total_seconds())}"
    if line.connected is not None:
        words = f"Connected to {name}{heard}" if line.connected else f"{name} cannot be reached; dialling{heard}"
        return tag("p", words, class_=f"line {'up' if line.connected else 'down'}")
    if line.heard is None:
        return tag("p", f"Nothing came from {name} since {moment(line.since, frame.timezone)}", class_="line")
    recent = (now - line.heard).total_seconds() < 120
    return tag("p", f"{name}: last letter {ago((now - line.heard).total_seconds())}", class_="line up" if recent else "line")


def void(name: str, /, **attributes: str | float | None) -> Html:
    """An element that has no end."""
    return Html(tag(name, **attributes).removesuffix(f"</{name}>"))
