"""Parts of pages that are made from the package while the site is built, so that they cannot fall behind it.

A line of a page that begins with `::: ` is replaced:

    ::: study        every key of a study file; likewise `station`, `coordinator`, `aggregator` and `owners`, of their files
    ::: errors       every code; likewise `programs`, `vertical_programs`, `partitioners`

The reference is made by `pages.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from hedgerow.data import PARTITIONERS
from hedgerow.errors import catalogue
from hedgerow.network.aggregator.config import AggregatorConfig
from hedgerow.network.coordinator.config import CoordinatorConfig
from hedgerow.network.station.config import StationConfig
from hedgerow.study import PROGRAMS, VERTICAL, Study
from hedgerow.study.keys import keys_of, shared_by
from hedgerow.study.plans.owners_file import OwnersFile


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the directives of a page."""
    return re.sub(rf"(?m)^::: ({'|'.join(DIRECTIVES)})$", lambda found: DIRECTIVES[found[1]](), markdown)


def prose(text: str | None) -> str:
    """A numpy-style docstring as Markdown: headings in bold, parameters as a list, examples as code."""
    first, *rest = re.split(r"(?m)^(\w+)\n-{3,}\n", inspect.cleandoc(text or ""))
    made = [first]
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        if heading == "Examples":
            body = f"```python\n{body.strip()}\n```"
        elif heading not in ("Notes", "Releases", "Source"):
            body = re.sub(r"(?m)^(\S.*?)(?: : (.*))?$", lambda found: f"- `{found[1]}` {found[2] or ''}  ", body)
        made += [f"**{heading}**", body]
    return "\n\n".join(made)


def keys(model: type[BaseModel]) -> str:
    """A table of the keys of a section, with type, default and meaning."""
    lines = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    for key, field in model.model_fields.items():
        if field.exclude:
            continue
        kind, choices = kind_of(field.annotation)
        preset = str(field.default) if isinstance(field.default, Path) else field.default
        default = "needed" if field.is_required() else "" if field.default_factory else f"`{preset!r}`"
        meaning = ": ".join(filter(None, [field.description, choices])).replace("|", r"\|")
        lines.append(f"| `{field.alias or key}` | `{kind}` | {default} | {meaning} |")
    return "\n".join(lines)


def kind_of(annotation: Any) -> tuple[str, str]:
    """A type as a table shows it, and the words that it takes where they are many: those go into the sentence."""
    if get_origin(annotation) is Literal:
        words = get_args(annotation)
        if len(words) < 4:
            return " | ".join(map(repr, words)), ""
        return type(words[0]).__name__, "one of " + ", ".join(f"`{word}`" for word in words)
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return "section", ""
    parts = [kind_of(part) for part in get_args(annotation)]
    choices = ", ".join(dict.fromkeys(said for _, said in parts if said))
    names = list(dict.fromkeys(name for name, _ in parts))
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(names), choices
    if get_origin(annotation) is Annotated:
        return parts[0]
    name = (
        "None" if annotation is type(None) else "..." if annotation is ... else getattr(annotation, "__name__", str(annotation))
    )
    return (f"{name}[{', '.join(name for name, _ in parts)}]" if parts else name), choices


def sections(path: str, model: type[BaseModel]) -> Iterator[str]:
    """The keys of a section, then those of the sections inside it."""
    said = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0]
    yield f"### {f'`[{path}]`' if path else 'Top level'}\n\n{said}\n\n{keys(model)}"
    for key, field in model.model_fields.items():
        for kind, many in inside(field.annotation):
            yield from sections(f"{path}.{key}{many}".strip("."), kind)


def inside(annotation: Any, many: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """The sections in a type, however deep, and what stands for a name where there is one for each of several."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation, many
    for part in get_args(annotation):
        yield from inside(part, ".NAME" if get_origin(annotation) in (dict, Mapping) else many)


def study() -> str:
    return "\n\n".join(sections("", Study))


def station() -> str:
    return "\n\n".join(sections("", StationConfig))


def coordinator() -> str:
    return "\n\n".join(sections("", CoordinatorConfig))


def aggregator() -> str:
    return "\n\n".join(sections("", AggregatorConfig))


def owners() -> str:
    lines = "\n\n".join(sections("", OwnersFile)).splitlines()
    return "\n".join(line for line in lines if not line.startswith("| `digest`"))  # is computed


def shared_keys(settings: Any) -> str:
    """A table of the settings that the programs of a room share."""
    hints = get_type_hints(settings, include_extras=True)
    return keys(create_model("Shared", **{name: (hint, hint.__metadata__[0]) for name, hint in hints.items()}))


def programs() -> str:
    """A list of programs, then each with its own keys; those that a room shares come once, before the first that has them."""
    return listed(PROGRAMS)


def vertical_programs() -> str:
    """The same of programs for parties that hold different columns of the same people."""
    return listed(VERTICAL)


def listed(catalogue: Mapping[str, Any]) -> str:
    """Programs of a catalogue that are this package's."""
    ours = {name: one for name, one in catalogue.items() if one.path.startswith("hedgerow.")}
    rows = [f"| [`{name}`](#{name}) | {one.sentence} |" for name, one in ours.items()]
    made, said = ["\n".join(["| name | what it does |", "| --- | --- |", *rows])], False
    for name, listing in ours.items():
        shared, model = shared_by(listing), keys_of(listing)
        if shared and not said:
            made.append(f"### Shared by the programs that train models {{: #shared }}\n\n{keys(part(model, shared))}")
            said = True
        own = part(model, [key for key in model.model_fields if key not in shared])
        more = "\n\nand those that [all programs that train models share](#shared)." if shared else ""
        made.append(f"### `{name}`\n\n{listing.sentence}\n\n{keys(own)}{more}")
    return "\n\n".join(made)


def part(model: type[BaseModel], names: Iterable[str]) -> type[BaseModel]:
    """Some keys of a section."""
    fields = {
        name: (model.model_fields[name].annotation, model.model_fields[name]) for name in names if name in model.model_fields
    }
    return create_model("part", **fields)


def partitioners() -> str:
    return "\n\n".join(f"### `{name}`\n\n{prose(scheme.__doc__)}" for name, scheme in PARTITIONERS.items())


def errors() -> str:
    lines = [f"| [{code}]({code}.md) | `{kind.__name__}` | {kind.__doc__} |" for code, kind in catalogue().items()]
    return "\n".join(["| code | class | when |", "| --- | --- | --- |", *lines])


DIRECTIVES = {
    made.__name__: made
    for made in (study, station, coordinator, aggregator, owners, programs, vertical_programs, partitioners, errors)
}
