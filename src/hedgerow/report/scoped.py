"""The page's style sheet for two other places: a cell of a notebook, and a figure by itself.

A notebook has a style of its own, light or dark whatever the system says; so every rule is kept to what stands in the cell,
and follows the notebook's theme where that is known (Jupyter, VS Code) and the system's otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .style import STYLE

CELL = ".hedgerow"
FIGURE = ".hedgerow-figure"
_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-md-color-scheme="default"]')
_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast", '[data-md-color-scheme="slate"]')
_DRAWN = ("svg", ".ink")
"""What selectors of drawings begin with."""

_OWN = """
.hedgerow { background: var(--paper); color: var(--ink); font: 0.9375rem/1.5 var(--sans); padding: 0.9rem 1.15rem 1rem;
  border: 1px solid var(--hair); border-radius: 6px; max-width: 60rem; margin: 0.2rem 0; overflow-wrap: anywhere; }
.hedgerow h3 { font: 600 1.0625rem/1.35 var(--serif); margin: 0; letter-spacing: 0; }
.hedgerow p, .hedgerow li { font-size: 0.875rem; line-height: 1.5; margin: 0; }
.hedgerow .kicker { font-size: 0.75rem; margin: 0 0 0.15rem; }
.hedgerow .lead { font-size: 0.875rem; margin-top: 0.15rem; }
.hedgerow section { margin-top: 1.1rem; }
.hedgerow h2 { font: 600 0.9375rem/1.4 var(--sans); margin: 0 0 0.3rem; }
.hedgerow .facts { gap: 0.5rem 1.75rem; margin-top: 0.7rem; padding-top: 0.6rem; }
.hedgerow dt { font-size: 0.75rem; font-weight: 400; margin: 0; }
.hedgerow dd { font-size: 0.9375rem; margin: 0; }
.hedgerow .metrics { display: flex; flex-wrap: wrap; gap: 0.6rem 2rem; margin-top: 0.8rem; }
.hedgerow .metrics dd { font-size: 1.375rem; }
.hedgerow .privacy, .hedgerow .warnings { margin: 0.8rem 0 0; padding: 0.5rem 0.9rem 0.6rem; border-left-width: 3px; }
.hedgerow .privacy h2, .hedgerow .warnings h2 { font-size: 0.8125rem; margin: 0; }
.hedgerow .privacy p { font-size: 0.875rem; }
.hedgerow table { margin: 0; font-size: 0.8125rem; border: 0; table-layout: auto; }
.hedgerow.hedgerow.hedgerow tbody tr { background: none; }
.hedgerow.hedgerow th, .hedgerow.hedgerow td { padding: 0.25rem 1.2rem 0.25rem 0; text-align: left; min-width: 4rem;
  border-bottom: 1px solid var(--hair); line-height: 1.4; }
.hedgerow.hedgerow th.number, .hedgerow.hedgerow td.number { min-width: 0; text-align: right; }
.hedgerow .parts { display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: flex-start; }
.hedgerow .parts > * { min-width: 0; max-width: 100%; margin-top: 1rem; }
.hedgerow .parts > figure { flex: 1 1 21rem; max-width: 27rem; }
.hedgerow .parts h3, .hedgerow .parts h4 { font: 600 0.8125rem/1.4 var(--sans); color: var(--soft); margin: 0 0 0.2rem; }
.hedgerow .curves h3 { font-size: 0.9375rem; }
.hedgerow figure { margin: 0; }
.hedgerow details { margin-top: 0.5rem; }
.hedgerow summary { font-size: 0.8125rem; }
.hedgerow pre { font-size: 0.75rem; line-height: 1.45; color: var(--ink); margin: 0.3rem 0 0; padding: 0.7rem 0.9rem; }
@media screen and (max-width: 40rem) {
  .hedgerow { padding: 0.8rem 0.8rem 0.9rem; }
  .hedgerow .parts > div, .hedgerow .cards { width: 100%; }
  .hedgerow.hedgerow .cards tbody th, .hedgerow.hedgerow .cards tbody td { border: 0; padding: 0; min-width: 0; }
}
"""


@cache
def cell_style() -> str:
    """The style of notebook cells: every selector begins with `.hedgerow`."""
    light, dark = (_palette(which) for which in ("light", "dark"))
    themes = "".join(
        f"{', '.join(f'{place} {CELL}' for place in places)} {{{palette}}}\n"
        for places, palette in ((_LIGHT, light), (_DARK, dark))
    )
    return re.sub(r"\s+", " ", "".join(_scoped(STYLE, CELL)) + themes + _OWN)


@cache
def figure_style() -> str:
    """The style of an SVG by itself, with colours instead of variables, which not every program that draws SVG knows."""
    rules = [(head, body) for head, body in _rules(STYLE) if head.split(",")[0].strip().startswith(_DRAWN)]
    light, dark = (_drawing(rules, _colours(_palette(which))) for which in ("light", "dark"))
    changed = "".join(line for line in dark.splitlines(keepends=True) if line not in light.splitlines(keepends=True))
    return f"{light}@media (prefers-color-scheme: dark) {{\n{changed}}}\n"


def _drawing(rules: list[tuple[str, str]], colours: dict[str, str]) -> str:
    """Rules of drawings; `--stroke` of a series is its colour for the line, and for what is filled."""
    said = [f"{FIGURE} .ground {{ fill: {colours['paper']}; }}"]
    for head, body in rules:
        if "--stroke:" in body and "svg" not in head:  # .ink0 to .ink4
            continue
        said.append(f"{_within(head, FIGURE).replace(' svg', '')} {{{_literal(body, colours)}}}")
    for i in range(5):
        said.append(f"{FIGURE} .ink{i} {{ stroke: {colours[f'ink{i}']}; }}")
        said.append(
            f"{FIGURE} .dot.ink{i}, {FIGURE} .band.ink{i} {{ fill: {colours[f'ink{i}']}; stroke: {colours['paper']}; }}"
        )
    return "\n".join(said) + "\n"


def _literal(body: str, colours: dict[str, str]) -> str:
    body = re.sub(r"--stroke: var\(--(\w+)\);", lambda m: f"stroke: {colours[m[1]]};", body)
    body = re.sub(r"(stroke|fill): var\(--stroke[^;]*;", "", body)
    return re.sub(r"var\(--(\w+)\)", lambda m: colours[m[1]], body).strip()


def _colours(palette: str) -> dict[str, str]:
    return {name: value.strip() for name, value in re.findall(r"--([\w-]+):([^;]+);", _palette("light") + palette)}


@cache
def _palette(which: str) -> str:
    """The variables of the light look, or those that the dark one changes."""
    if which == "light":
        return next(body for head, body in _rules(STYLE) if head == ":root")
    inner = next(body for head, body in _rules(STYLE) if "prefers-color-scheme: dark" in head)
    return next(body for head, body in _rules(inner) if head == ":root")


def _scoped(style: str, scope: str) -> Iterator[str]:
    for head, body in _rules(style):
        if head.startswith("@media print"):
            continue
        if head.startswith("@media"):
            yield f"{head} {{\n{''.join(_scoped(body, scope))}}}\n"
        elif head not in ("html", "body"):
            yield f"{_within(head, scope)} {{{body}}}\n"


def _within(selectors: str, scope: str) -> str:
    every = (one.strip() for one in selectors.split(","))
    return ", ".join(scope if one == ":root" else f"{scope} {one}" for one in every)


def _rules(style: str) -> Iterator[tuple[str, str]]:
    """Heads and bodies of the outermost rules."""
    depth, start, head = 0, 0, ""
    for i, character in enumerate(style):
        if character == "{":
            depth += 1
            if depth == 1:
                head, start = style[start:i].strip(), i + 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                yield head, style[start:i]
                start = i + 1
