"""The reference, made from the package while the site is built: a page for each public name and each room, and their index.

mkdocstrings writes what stands on the page of a name; which pages there are, in which order, and which example each has, is
decided here. Names that differ in case alone share a page, since some file systems do not tell them apart.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import typer
from hooks import shared_keys
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typing_extensions import is_typeddict

import hedgerow
from hedgerow.errors import catalogue

DOCS = Path(__file__).parent
PACKAGE = Path(hedgerow.__file__).parent
ORDER = (
    "data",
    "stats",
    "learn",
    "sklearn",
    "trees",
    "synth",
    "vertical",
    "market",
    "attacks",
    "privacy",
    "crypto",
    "compression",
    "engines",
    "study",
    "compare",
    "export",
    "report",
    "store",
    "loggers",
    "notebook",
)
INSIDE = ("crypto.secagg", "crypto.privfl", "learn.descent", "learn.tasks", "privacy.choice", "engines.rails", "network")
"""Packages with an `__all__` for other rooms, and not for users."""


@dataclass
class Entry:
    """One public name: the room that shows it, and the group in which it stands."""

    name: str
    value: Any
    room: str
    group: str = ""

    @property
    def page(self) -> str:
        return f"reference/{self.room.replace('.', '/')}/{self.name.lower()}.md"

    @property
    def sentence(self) -> str:
        """The first sentence of the docstring."""
        text = "" if is_value(self.value) else inspect.getdoc(self.value) or ""
        first = " ".join(text.partition("\n\n")[0].split())
        return first if text else f"A value of type `{type(self.value).__name__}`."

    @property
    def path(self) -> str:
        """Where it is defined; a name may be both a module and a function of it, so that the public path would not do."""
        return f"{self.value.__module__}.{self.value.__qualname__}"


@dataclass
class Room:
    """A package with public names, by groups; `elsewhere` are those that another room shows."""

    name: str
    groups: dict[str, list[Entry]] = field(default_factory=dict)
    elsewhere: list[Entry] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        return (inspect.getdoc(self.module) or "").partition("\n")[0]

    @property
    def module(self) -> Any:
        return importlib.import_module(f"hedgerow.{self.name}")

    @property
    def page(self) -> str:
        return f"reference/{self.name.replace('.', '/')}.md"


def is_value(value: Any) -> bool:
    return not (inspect.isclass(value) or inspect.isfunction(value))


def same(value: Any) -> int:
    """What tells a thing under all its names: a room that checks arguments hands out its functions wrapped."""
    return id(inspect.unwrap(value)) if callable(value) else id(value)


@cache
def rooms() -> dict[str, Room]:
    """The rooms in reading order, each followed by the rooms inside it."""
    paths = (path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py") if "__all__" in path.read_text("utf-8"))
    names = [".".join(path.parts) for path in paths if path.parts]
    public = [name for name in names if not any(f"{name}.".startswith(f"{inside}.") for inside in INSIDE)]
    rank = {name: i for i, name in enumerate(ORDER)}
    orders = tomllib.loads((DOCS / "reference" / "groups.toml").read_text("utf-8"))
    seen: dict[int, Entry] = {}
    made = {}
    for name in sorted(public, key=lambda name: (rank.get(name.partition(".")[0], len(rank)), name)):
        made[name] = grouped(Room(name), orders.get(name, {}), seen)
    return made


def grouped(room: Room, order: dict[str, list[str]], seen: dict[int, Entry]) -> Room:
    """Fill a room with its names; `seen` are the names of the rooms before it."""
    public = {name: getattr(room.module, name) for name in room.module.__all__}
    public = {name: value for name, value in public.items() if not inspect.ismodule(value)}
    place = {name: group for group, names in order.items() for name in names}
    room.groups = {group: [] for group in order}
    ranked = sorted(public, key=lambda name: list(place).index(name) if name in place else len(place))
    for name in ranked:
        value = public[name]
        if not is_value(value) and same(value) in seen:
            room.elsewhere.append(seen[same(value)])
            continue
        entry = Entry(name, value, room.name, place.get(name) or kind_of(name, value))
        room.groups.setdefault(entry.group, []).append(entry)
        seen[same(value)] = entry
    room.groups = {group: entries for group, entries in room.groups.items() if entries}
    return room


def kind_of(name: str, value: Any) -> str:
    if name.endswith("State"):
        return "States"
    return "Classes" if inspect.isclass(value) else "Functions" if inspect.isfunction(value) else "Values"


def entries() -> Iterator[Entry]:
    for room in rooms().values():
        for group in room.groups.values():
            yield from group


@cache
def by_page() -> dict[str, list[Entry]]:
    """What each page shows: functions before the class of the same name."""
    found: dict[str, list[Entry]] = {}
    for entry in entries():
        found.setdefault(entry.page, []).append(entry)
    return found


@cache
def examples(room: str) -> dict[str, str]:
    """The examples of a room's names, from the file that the tests run."""
    file = DOCS / "examples" / "names" / f"{room}.txt"
    text = file.read_text("utf-8") if file.exists() else ""
    parts = re.split(r"(?m)^## (\w+)\n", text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def boost(entry: Entry) -> int:
    """How much a search prefers a page: everyday names before others, and those of a room before those of a room inside it."""
    everyday = same(getattr(hedgerow, entry.name, None)) == same(entry.value)
    return 10 if everyday else 4 if "." not in entry.room else 2


def example_of(entry: Entry) -> list[str]:
    """The example of a name, or a link to the one that shows it too."""
    text = examples(entry.room).get(entry.name, "")
    if text.startswith("->"):
        other = next(one for one in entries() if (one.room, one.name) == (entry.room, text.removeprefix("->").strip()))
        return [] if other.page == entry.page else [f"**Example**: see {link(other, entry.page)}.", ""]
    return ["**Example**", "", "```pycon", f">>> import hedgerow as hr\n{text}", "```", ""] if text else []


def link(entry: Entry, page: str) -> str:
    """A Markdown link from a page of the reference."""
    up = "../" * page.count("/")
    return f"[`{entry.name}`]({up}{entry.page})"


def name_page(shown: list[Entry]) -> str:
    """The page of a name."""
    first = shown[0]
    title = " and ".join(dict.fromkeys(entry.name for entry in shown))
    made = ["---", f"title: {title}", "search:", f"  boost: {boost(first)}", "---", ""]
    made += [f'<p class="where" markdown>`hedgerow.{first.room}` · {first.group}</p>', ""]
    for entry in shown:
        if is_value(entry.value):
            made += [f"# `{entry.name}`", "", f"{entry.sentence}", ""]
            if isinstance(entry.value, dict):
                made += [f"Its keys: {', '.join(f'`{key}`' for key in entry.value)}.", ""]
            continue
        made += [f"::: {entry.path}", "    options:", "      heading_level: 1", "      show_root_heading: true", ""]
        if is_typeddict(entry.value):
            made += [shared_keys(entry.value), ""]
        made += example_of(entry)
    beside = [entry for entry in rooms()[first.room].groups[first.group] if entry.page != first.page]
    if beside:
        made += ["---", "", f"{first.group}: " + ", ".join(link(entry, first.page) for entry in beside) + ".", ""]
    return "\n".join(made)


def room_page(room: Room) -> str:
    """The page of a room: what it is for, and a table for each group."""
    made = ["---", f"title: {room.name}", "---", f"# {room.name}", "", f"`hedgerow.{room.name}`", ""]
    made += [inspect.getdoc(room.module) or "", ""]
    inside = [one for one in rooms().values() if one.name.startswith(f"{room.name}.")]
    if inside:
        made += [
            "Rooms inside it: " + ", ".join(f"[{one.name}]({'../' * room.page.count('/')}{one.page})" for one in inside) + ".",
            "",
        ]
    groups = dict(room.groups)
    if room.elsewhere:
        groups["Also public here"] = room.elsewhere
    for group, shown in groups.items():
        made += [f"## {group}", "", "| name | what it is |", "| --- | --- |"]
        made += [f"| {link(entry, room.page)} | {cell(entry.sentence)} |" for entry in shown] + [""]
    return "\n".join(made)


def cell(text: str) -> str:
    return text.replace("|", r"\|")


def index_of_rooms() -> str:
    """Every room with its sentence and how many names it has."""
    made = ["| room | what is in it | names |", "| --- | --- | ---: |"]
    for room in rooms().values():
        n = sum(map(len, room.groups.values()))
        made.append(f"| [{room.name}]({room.page.removeprefix('reference/')}) | {cell(room.sentence)} | {n} |")
    return "\n".join(made)


def index_of_everyday_names() -> str:
    """What `import hedgerow as hr` gives at once."""
    known = {same(entry.value): entry for entry in entries() if not is_value(entry.value)}
    named = [(name, getattr(hedgerow, name)) for name in hedgerow.__all__]
    rows = [
        f"| [`hr.{name}`]({known[same(value)].page.removeprefix('reference/')}) | {cell(known[same(value)].sentence)} |"
        for name, value in named
        if same(value) in known
    ]
    return "\n".join(["| name | what it is |", "| --- | --- |", *rows])


def index_of_commands() -> str:
    """Every command of `hedgerow` with its sentence."""
    from hedgerow.cli.main import app

    rows = [f"| `{words}` | {cell(sentence)} |" for words, sentence in commands("hedgerow", typer.main.get_command(app))]
    return "\n".join(["| command | what it does |", "| --- | --- |", *rows])


def commands(words: str, command: Any) -> Iterator[tuple[str, str]]:
    inside = getattr(command, "commands", None)
    if inside is None:
        arguments = " ".join((p.metavar or p.name).upper() for p in command.params if p.param_type_name == "argument")
        yield f"{words} {arguments}".strip(), " ".join((command.help or "").partition("\n\n")[0].split())
        return
    for name, one in inside.items():
        if not one.hidden:
            yield from commands(f"{words} {name}", one)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the rooms into the navigation, under the entry that holds the index of the reference."""
    for section in config.nav or ():
        if isinstance(section, dict) and section.get("Reference") == ["reference/index.md"]:
            section["Reference"] = ["reference/index.md", *map(nav_of, rooms().values())]
    return config


def nav_of(room: Room) -> dict[str, Any]:
    groups = [{group: list(dict.fromkeys(entry.page for entry in shown))} for group, shown in room.groups.items()]
    seen: set[str] = set()
    for group in groups:
        for name, paths in group.items():
            group[name] = [path for path in paths if path not in seen]
            seen.update(paths)
    return {room.name: [room.page, *(group for group in groups if any(group.values()))]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of names and rooms."""
    for room in rooms().values():
        files.append(File.generated(config, room.page, content=room_page(room)))
    for path, shown in by_page().items():
        files.append(File.generated(config, path, content=name_page(shown)))
    return files


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Say error codes as they are written, and lead from them, and from public names in the text, to their pages."""
    html = re.sub(r"HR - (\d{3})", r"HR-\1", html)
    up = "../" * page.url.count("/") or "./"
    codes, names = set(catalogue()), addresses()

    def led(found: re.Match[str]) -> str:
        if found["code"]:
            whole = found["code"].removesuffix(")") if "<code>(" in found[0] else found["code"]
            return re.sub(
                r"HR-\d{3}",
                lambda one: f'<a href="{up}errors/{one[0]}.html">{one[0]}</a>' if one[0] in codes else one[0],
                whole,
            )
        if found["name"] and (place := names.get(found["name"])) and place != page.url:
            return f'<a href="{up}{place}">{found[0]}</a>'
        return found[0]

    skipped = r"<a\b.*?</a>|<pre\b.*?</pre>|<h\d\b.*?</h\d>|<table class=\"highlighttable.*?</table>"
    name = r"<code>(?:hr|hedgerow)\.(?P<name>[\w.]+)(?:\([^<]*\))?</code>"
    code = r"<code>\(?(?P<code>[^<]*HR-\d{3}[^<]*)</code>" if page.url.startswith("reference/") else r"(?P<code>(?!))"
    return re.sub(f"(?s){skipped}|{code}|{name}", led, html)


@cache
def addresses() -> dict[str, str]:
    """The address of each public name, under every path by which it is public or defined."""
    found = {}
    for entry in entries():
        url = entry.page.removesuffix(".md") + ".html"
        found[f"{entry.room}.{entry.name}"] = url
        if not is_value(entry.value):
            found.setdefault(entry.path.removeprefix("hedgerow."), url)
    for room in rooms().values():
        found[room.name] = room.page.removesuffix(".md") + ".html"
        for entry in room.elsewhere:
            found.setdefault(f"{room.name}.{entry.name}", entry.page.removesuffix(".md") + ".html")
    known = {same(entry.value): entry for entry in entries() if not is_value(entry.value)}
    for name in hedgerow.__all__:
        if entry := known.get(same(getattr(hedgerow, name))):
            found.setdefault(name, entry.page.removesuffix(".md") + ".html")
    return found


DIRECTIVES: dict[str, Any] = {"rooms": index_of_rooms, "everyday": index_of_everyday_names, "commands": index_of_commands}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the directives of the index."""
    return re.sub(rf"(?m)^::: ({'|'.join(DIRECTIVES)})$", lambda found: DIRECTIVES[found[1]](), markdown)
