"""`hedgerow explain`: the page of an error's code, which is in the package, so that it can be read without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import hedgerow
from hedgerow.errors import HedgerowError, StudyInvalid, catalogue, suggestion
from hedgerow.report import Fits

from .json_output import JsonOption, print_json

console = Console()


def explain(
    code: Annotated[
        str, typer.Argument(help="As HR-105, 105 or MissingExtra, or a study; every code is listed by default.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Tell what an error's code means and what to do: HR-105, as at the end of a message. Of a study, who will learn what."""
    kinds = catalogue()
    if code and is_study(code):
        from hedgerow.study import load

        explain_study(load(code), as_json, code)
        return
    if not code:
        _list(kinds, as_json)
        return
    kind = _found(code, kinds)
    text = page(kind.code)
    if as_json:
        print_json(_described(kind) | {"page": text})
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        console.print(Markdown(text))
    else:
        typer.echo(text)


def is_study(name: str) -> bool:
    """Whether a bundled study or a study file is meant."""
    from hedgerow.study import bundled

    return name in bundled() or name.endswith(".toml")


def explain_study(study: Any, as_json: bool = False, named: str = "") -> None:
    """Print what a study computes and, where parties hold different columns, who will learn what. Reads no data.

    `named` is how the terminal named it: a file, or a bundled study.
    """
    from hedgerow.report.console import print_roles
    from hedgerow.study import rules_of, sentence_about, will_learn
    from hedgerow.study.agreed import agreed_in_words
    from hedgerow.study.attacked import attack_in_words

    said = {"study": study.name, "title": study.title, "does": sentence_about(study)}
    said |= {"agreed": agreed} if (agreed := agreed_in_words(study)) else {}
    said |= {"attack": attack} if (attack := attack_in_words(study)) else {}
    if study.apart:
        said |= {"rules": rules_of(study), "learns": {role: list(words) for role, words in will_learn(study).items()}}
    if as_json:
        print_json(said)
        return
    console.print(f"{said['title'] or said['study']}: {said['does']}", markup=False, highlight=False)
    for name, words in agreed.items():
        console.print(f"{name}: {words}", markup=False, highlight=False)
    if attack:
        console.print(f"Attack: {attack}.", markup=False, highlight=False)
    if not study.apart:
        console.print(
            f"`hedgerow rehearse {named or study.name}` lists every question that it would ask.", markup=False, highlight=False
        )
        return
    table = Table("", "", box=SIMPLE_HEAD, pad_edge=False, show_header=False)
    for name, value in said["rules"].items():
        table.add_row(name, str(value))
    console.print(Fits(table))
    print_roles("Who will learn what", said["learns"].items(), console)


def page(code: str) -> str:
    """Return the page of a code: that of the installed package, or of the checkout that it is imported from."""
    root = Path(hedgerow.__file__).parent
    for folder in (root / "error_pages", root.parents[1] / "docs" / "errors"):  # setup.py copies the second to the first
        if (folder / f"{code}.md").is_file():
            return (folder / f"{code}.md").read_text(encoding="utf-8").strip()
    kind = catalogue()[code]
    return f"# {code} {kind.__name__}\n\n{_sentence(kind)}"


def _found(code: str, kinds: dict[str, type[HedgerowError]]) -> type[HedgerowError]:
    names = {kind.__name__.lower(): kind for kind in kinds.values()}
    word = code.strip().lower()
    kind = names.get(word) or kinds.get(f"HR-{word.removeprefix('hr').removeprefix('-')}")
    if kind is None:
        near = suggestion(code.strip(), [one.__name__ for one in kinds.values()])
        said = f"{near} " if near.startswith("Did") and not any(map(str.isdigit, word)) else ""
        raise StudyInvalid(
            f"no error has the code {code!r}.", remedy=f"{said}`hedgerow explain` lists every code and its name."
        )
    return kind


def _list(kinds: dict[str, type[HedgerowError]], as_json: bool) -> None:
    if as_json:
        print_json({"errors": [_described(kind) for kind in kinds.values()]})
        return
    table = Table("code", "error", "what happened", box=SIMPLE_HEAD, pad_edge=False)
    for code, kind in kinds.items():
        table.add_row(code, kind.__name__, _sentence(kind))
    console.print(Fits(table))


def _described(kind: type[HedgerowError]) -> dict[str, str]:
    return {"code": kind.code, "name": kind.__name__, "sentence": _sentence(kind)}


def _sentence(kind: type[HedgerowError]) -> str:
    return (kind.__doc__ or "").strip().partition("\n\n")[0]
