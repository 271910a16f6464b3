"""Run the programs of docs/gallery and keep what they make beside them, for the site.

Of each NAME.py: made/NAME.txt is what it printed, made/NAME.svg its first picture, made/NAME.html its report. A program leaves
a `report`, as a study does, or a `picture`, or both; and the federation it `asked` where there is one.

    python scripts/gallery.py [NAME ...]
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import MixedUnits
from hedgerow.privacy import epsilon
from hedgerow.report import Curve, Figure, Grid, Heat, Report, Series, render
from hedgerow.report.figures import line_chart
from hedgerow.report.intervals import interval_chart
from hedgerow.report.markup import Html, tag
from hedgerow.report.style import STYLE

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
DELTA = 1e-5


def main(names: list[str]) -> None:
    (GALLERY / "made").mkdir(exist_ok=True)
    for name in names or sorted(path.stem for path in GALLERY.glob("*.py")):
        printed, left = run(GALLERY / f"{name}.py")
        picture, report = shown(GALLERY / f"{name}.py", left)
        for suffix, text in {"txt": printed, "svg": picture, "html": render(report)}.items():
            (GALLERY / "made" / f"{name}.{suffix}").write_text(text, encoding="utf-8")
        print(name, len(picture), len(render(report)))


def run(path: Path) -> tuple[str, dict[str, Any]]:
    """What a program prints, and the names that it leaves; it runs in an empty folder."""
    said = io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        os.chdir(folder)
        try:
            left = runpy.run_path(str(path))
        finally:
            os.chdir(before)
    return said.getvalue(), left


def shown(path: Path, left: dict[str, Any]) -> tuple[str, Report]:
    """The picture of a program as SVG, and its report."""
    title, text = said_of(path)
    report, picture = left.get("report"), left.get("picture")
    if report is None:
        report = Report(title=title, study="gallery", description=text, **statement(left.get("asked")), **figures(picture))
    return svg_of(left.get("picture", report.curves[0] if report.curves else report.heat)), report


def svg_of(drawn: Any) -> str:
    """A picture as SVG: of a curve, a shaded table, a figure of a fit, or the nodes of a tree."""
    if isinstance(drawn, Heat):
        return heat_map(drawn)
    if isinstance(drawn, Curve):
        return standalone(line_chart(drawn), drawn.series)
    if isinstance(drawn, Figure):
        return standalone(interval_chart(drawn.drawn[0]), ())
    return standalone(tree_chart(drawn), ())


def said_of(path: Path) -> tuple[str, str]:
    """Title and text: the docstring's first line, and the rest as one paragraph."""
    first, _, rest = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")
    return first, " ".join(rest.split())


def figures(picture: Curve | Heat) -> dict[str, Any]:
    return {"heat": picture} if isinstance(picture, Heat) else {"curves": (picture,)}


def statement(asked: Any) -> dict[str, Any]:
    """What a federation released, in a sentence and a table."""
    if asked is None or not len(asked.ledger):
        return {"privacy": "This page shows several runs, or none; none of them is charged here.", "privacy_ok": False}
    entries = asked.ledger.entries
    rows = tuple((entry.round, entry.query.rpartition(":")[2], str(entry.event)) for entry in entries[:40])
    left = Grid("What was asked", ("question", "local function", "event"), rows)
    if all(str(entry.event) == "nonprivate" for entry in entries):
        words = f"No epsilon is claimed: {len(entries)} of {len(entries)} releases went out without noise."
        return {"privacy": words, "privacy_ok": False, "left": left}
    try:
        unit, charges = "record", asked.ledger.charges("record")
    except MixedUnits:
        unit, charges = "party", asked.ledger.charges("party")
    spent = epsilon(charges, delta=DELTA, adjacency="add-remove", accountant="tightest")
    words = f"Epsilon {spent:.3f} at delta {DELTA:g} per {unit}, add-remove adjacency; {len(entries)} releases; seeded noise."
    return {"privacy": words, "privacy_ok": True, "left": left}


def standalone(drawing: Html | None, named: Sequence[Series]) -> str:
    """A drawing of a report as a file of its own, with its colours and a legend."""
    drawing = drawing or tag("svg", viewBox="0 0 640 260")
    rules = re.findall(r"(?m)^(?:svg|\.ink\d).*$", STYLE)
    colours = re.search(r":root \{.*?\n\}\n@media.*?\n  \}\n\}", STYLE, re.DOTALL)
    style = tag("style", Html((colours[0] if colours else "") + "\n" + "\n".join(rules)))
    wide, high = (float(x) for x in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing).groups())  # type: ignore[union-attr]
    legend, x, inks = [], 0.0, 0
    for series in named:
        ink = "muted" if series.style == "muted" else f"{series.style} ink{inks % 5}"
        inks += series.style != "muted"
        legend.append(tag("line", x1=x, x2=x + 22, y1=high + 14, y2=high + 14, class_=ink))
        legend.append(tag("text", series.name, x=x + 27, y=high + 18))
        x += 45 + 7.2 * len(series.name)
    drawing = drawing.replace(
        f'viewBox="0 0 {wide:g} {high:g}"', f'viewBox="-4 -6 {wide + 8:g} {high + (34 if named else 10):g}"'
    )
    drawing = drawing.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    start = drawing.index(">") + 1
    return f"{drawing[:start]}{style}{drawing[start:].removesuffix('</svg>')}{''.join(legend)}</svg>\n"


def tree_chart(nodes: Any) -> Html:
    """A regression tree from the table of its nodes: a row for each leaf, with its mean as a bar."""
    step, row, top, bar = 116.0, 38.0, 26.0, 90.0
    parts: list[Html] = []
    leaves, deepest, largest = [], 0.0, float(nodes["mean"].max())

    def drawn(node: int, depth: int) -> float:
        """Draw what hangs on a node; return its height."""
        nonlocal deepest
        one, x = nodes.loc[node], depth * step
        if not one["feature"]:
            leaves.append((x, top + row * (len(leaves) + 0.5), one))
            deepest = max(deepest, x)
            return float(leaves[-1][1])
        ends = [drawn(int(one["left"]), depth + 1), drawn(int(one["right"]), depth + 1)]
        for sign, y in zip("≤>", ends, strict=True):
            parts.append(tag("text", f"{one['feature']} {sign} {one['cut']:.4g}", x=x + 6, y=y - 5, class_="axis-name"))
            parts.append(tag("line", x1=x, x2=x + step - 6, y1=y, y2=y, class_="main ink0"))
        parts.append(tag("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_="main ink0"))
        y = sum(ends) / 2
        parts.append(tag("line", x1=x - 6, x2=x, y1=y, y2=y, class_="main ink0"))
        return y

    drawn(0, 0)
    for x, y, one in leaves:
        long = bar * float(one["mean"]) / largest
        parts.append(tag("line", x1=x - 6, x2=deepest + 2, y1=y, y2=y, class_="rule"))
        parts.append(tag("rect", x=deepest + 2, y=y - 9, width=long, height=18, class_="band ink1"))
        parts.append(tag("text", f"{one['mean']:.0f}", x=deepest + 8 + long, y=y + 5))
        parts.append(tag("text", f"{one['records']:.0f}", x=deepest + bar + 90, y=y + 5, text_anchor="end"))
    parts.append(tag("text", "mean", x=deepest + 2, y=12, class_="axis-name"))
    parts.append(tag("text", "records", x=deepest + bar + 90, y=12, text_anchor="end", class_="axis-name"))
    size = f"0 0 {deepest + bar + 92:g} {top + row * len(leaves):g}"
    said = "; ".join(f"{one['mean']:.0f} of {one['records']:.0f} records" for _, _, one in leaves)
    return tag("svg", *parts, viewBox=size, role="img", aria_label=f"A tree with {len(leaves)} leaves: {said}.")


def heat_map(heat: Heat) -> str:
    """A shaded table as SVG."""
    top = max(max(row) for row in heat.counts) or 1
    wide, high, parts = 52, 26, []
    for i, (name, row) in enumerate(zip(heat.rows, heat.counts, strict=True)):
        y = 24 + i * high
        parts.append(tag("text", name, x=84, y=y + 17, text_anchor="end"))
        for j, count in enumerate(row):
            x = 92 + j * wide
            parts.append(tag("rect", x=x, y=y, width=wide - 2, height=high - 2, opacity=round(0.08 + 0.72 * count / top, 3)))
            if count:
                parts.append(tag("text", f"{count:g}", x=x + wide / 2 - 1, y=y + 17, text_anchor="middle", class_="count"))
    heads = [tag("text", name, x=92 + j * wide + wide / 2, y=15, text_anchor="middle") for j, name in enumerate(heat.columns)]
    style = Html(
        "text { font: 13px system-ui, sans-serif; fill: #5d6358; } rect { fill: #2c6a4b; } .count { fill: #23271f; }"
        " @media (prefers-color-scheme: dark) { text { fill: #a4a99d; } rect { fill: #8acca5; } .count { fill: #e6e4da; } }"
    )
    size = f"0 0 {92 + wide * len(heat.columns)} {30 + high * len(heat.rows)}"
    return (
        str(tag("svg", tag("style", style), *heads, *parts, viewBox=size, xmlns="http://www.w3.org/2000/svg", role="img"))
        + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
