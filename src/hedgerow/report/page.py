"""One static HTML page that explains a run: a single file that loads nothing and needs no script.

The order is that of a reader's questions: what was done, what does it reveal, how good is it, how did it get there,
what would have happened otherwise, what exactly left each party, and how can it be run again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hedgerow.errors import CannotWrite
from hedgerow.report.bars import bars_chart, bars_legend
from hedgerow.report.dots import dots_chart, dots_legend
from hedgerow.report.figures import dot_tracks, line_chart, series_inks, swatch
from hedgerow.report.flow import Flow
from hedgerow.report.forest import ForestPlot
from hedgerow.report.forest_chart import forest_charts, reading
from hedgerow.report.headline import headline_list
from hedgerow.report.heat import Heat
from hedgerow.report.markup import Html, join, tag
from hedgerow.report.model import AuditLights, BarChart, Cell, Comparison, Curve, Dots, Grid, Pairs, Report, Series
from hedgerow.report.numerals import fixed, show, show_column
from hedgerow.report.pictures import STYLE as OF_PICTURES
from hedgerow.report.pictures import Pictures, pictures_rows
from hedgerow.report.seen import seen_section
from hedgerow.report.square import square_chart
from hedgerow.report.style import STYLE
from hedgerow.report.tables import curve_table, flow_list, folded, heat_table, party_tables, table

ROUNDING, UNSEEN = 1e-9, 1e-6
"""Differences of up to such a part of a value are rounding, or nothing that a reader would want to know."""
_NOTHING_LOADS = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write(report: Report, path: str | Path) -> None:
    """Write the page of a report, making its folder where that is missing.

    Raises
    ------
    CannotWrite (HR-104)
        The disk is full, a permission is missing, or `path` is a folder.
    """
    write_text(render(report), path)


def write_text(page: str, path: str | Path) -> None:
    """Write a page, as `write` does that of a report."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    except OSError as error:
        raise CannotWrite(
            f"the report could not be written to {path}: {error.strerror}",
            remedy="Name a file in a folder that you may write to.",
            says=False,
        ) from error


def render(report: Report) -> str:
    """Return the complete page."""
    return document(report.title, _header(report), body_of(report), OF_PICTURES if report.pictures else "")


def document(title: str, header: Html, main: Html, style: str = "") -> str:
    """Return a page of these parts, in the house's style and more."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_NOTHING_LOADS),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Hedgerow"),
        tag("style", Html(STYLE + style)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', header, main, _footer()), lang='en')}\n"


def audit_page(title: str, study: str, audit: AuditLights) -> str:
    """Return a page of an audit alone."""
    return document(title, _heading(study, title, audit.sentence), tag("main", _audit(audit)))


def _header(report: Report) -> Html:
    return _heading(report.study, report.title, report.description)


def _heading(study: str, title: str, lead: str) -> Html:
    return tag(
        "header",
        tag("p", tag("span", "Hedgerow", class_="brand"), f" {study}", class_="kicker"),
        tag("h1", title),
        tag("p", lead, class_="lead"),
    )


def body_of(report: Report) -> Html:
    """Everything below the heading."""
    r = report
    if r.headlines:
        return _findings(r)
    tables = [_grid(grid, table(grid)) for grid in r.tables]
    parts = [
        tag("section", tag("h2", "Read this first"), tag("p", r.nothing), class_="warnings nothing") if r.nothing else None,
        _privacy(r),
        _audit(r.audit) if r.audit else None,
        _warnings(r.warnings),
        _section("At a glance", "glance", _figures_of_merit(r)) if r.metrics or r.facts else None,
        *map(forest_section, r.forests),
        *(tables if r.tables_first else ()),
        _section(_over(r.curves), None, tag("div", *map(curve_figure, r.curves), class_="curves")) if r.curves else None,
        _section("Side by side", None, tag("div", *map(dots_figure, r.dots), class_="curves")) if r.dots else None,
        _section("Real beside made-up", None, tag("div", *map(bars_figure, r.bars), class_="curves")) if r.bars else None,
        *map(_heat, r.heats),
        *map(pictures_section, r.pictures),
        _comparison(r.comparison) if r.comparison else None,
        *(() if r.tables_first else tables),
        *map(_flow, r.flows),
        *(_section(title, None, text_block(block)) for title, block in r.text),
        _heat(r.heat) if r.heat else None,
        seen_section(r),
        _grid(r.published, table(r.published)) if r.published else None,
        _grid(r.left, table(r.left)) if r.left else None,
        _grid(r.parties, party_tables(r.parties)) if r.parties else None,
        _section("Notes", None, tag("ul", *(tag("li", note) for note in r.notes))) if r.notes else None,
        _section("Provenance", None, folded("Versions, seeds, command", _provenance(r.provenance))) if r.provenance else None,
    ]
    return tag("main", *parts)


def _findings(report: Report) -> Html:
    """The same in the order of who asks for the answer first: what was found, how sure that is, of whom, and who saw what."""
    r = report
    tables = [_grid(grid, folded("Numbers", table(grid)) if grid.folded else table(grid)) for grid in r.tables]
    figures = tag("div", *map(curve_figure, r.curves), class_="curves") if r.curves else None
    about = [pairs_list(r.metrics, "facts") if r.metrics else None, pairs_list(r.facts, "facts") if r.facts else None]
    parts = [
        tag("section", tag("h2", "Read this first"), tag("p", r.nothing), class_="warnings nothing") if r.nothing else None,
        _privacy(r, "What this page gives away"),
        _audit(r.audit) if r.audit else None,
        tag("section", tag("h2", "At a glance"), headline_list(r.headlines), class_="glance"),
        *map(forest_section, r.forests),
        *tables[:1],
        _section(_over(r.curves), None, figures) if r.curves else None,
        *tables[1:],
        *map(_heat, r.heats),
        *map(_flow, r.flows),
        _warnings(r.warnings, "Read with care", "warnings care"),
        _grid(r.witnesses, table(r.witnesses, cards=3)) if r.witnesses else None,
        _comparison(r.comparison) if r.comparison else None,
        _folded_grid("Numbers that left each party", r.left),
        _folded_grid("Everything that the run publishes", r.published),
        _folded_grid("By party", r.parties),
        tag("section", folded("Side by side", *map(dots_figure, r.dots)), class_="aside") if r.dots else None,
        _section("Notes", None, tag("ul", *(tag("li", note) for note in r.notes))) if r.notes else None,
        _section(
            "Provenance",
            None,
            folded("The run", *about),
            folded("Versions, seeds, command", _provenance(r.provenance)),
            *(folded(title, text_block(block)) for title, block in r.text),
        ),
    ]
    return tag("main", *parts)


def _folded_grid(title: str, grid: Grid | None) -> Html | None:
    return tag("section", folded(title, _note(grid.note), table(grid)), class_="aside") if grid else None


def text_block(text: str) -> Html:
    """Text of several lines as it is set, which scrolls sideways; a single line as a paragraph, which wraps."""
    return tag("pre", text, tabindex="0") if "\n" in text.strip() else tag("p", text, class_="said")


def _footer() -> Html:
    return tag("footer", tag("p", "Written by Hedgerow. This page is one file and loads nothing from anywhere."))


def _section(heading: str, class_: str | None, *children: str | None) -> Html:
    return tag("section", tag("h2", heading), *children, class_=class_)


def _note(words: str) -> Html | None:
    return tag("p", words, class_="note") if words else None


def _grid(grid: Grid, body: Html) -> Html:
    return _section(grid.title, None, _note(grid.note), body)


def _privacy(report: Report, title: str = "") -> Html:
    heading, kind = report.promise
    beside = tag("p", report.exposed, class_="exposed") if report.exposed else None
    return tag("section", tag("h2", title or heading), tag("p", report.privacy), beside, class_=f"privacy {kind}")


def _audit(audit: AuditLights) -> Html:
    """What an audit found: a light, its words, and what it is compared with."""
    rows = (
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", tag("span", light, class_=f"light {light}")),
            tag("td", found),
            tag("td", beside),
        )
        for name, light, found, beside in audit.lights
    )
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("", "light", "found", "beside"))))
    return _section(
        "Audit",
        "audit",
        tag("p", f"Accounted: {audit.accounted}."),
        _note(audit.sentence),
        tag("div", tag("table", head, tag("tbody", *rows)), class_="scroll", tabindex="0"),
        _note(f"The audit would see, with what chance: {audit.power}."),
        bars_figure(audit.scores) if audit.scores else None,
    )


def _warnings(warnings: tuple[str, ...], heading: str = "Worth knowing", class_: str = "warnings") -> Html | None:
    if not warnings:
        return None
    return tag("section", tag("h2", heading), tag("ul", *(tag("li", each) for each in warnings)), class_=class_)


def _figures_of_merit(report: Report) -> Html:
    return join(
        [
            pairs_list(report.metrics, "metrics") if report.metrics else None,
            pairs_list(report.facts, "facts") if report.facts else None,
        ]
    )


def pairs_list(pairs: Pairs, class_: str) -> Html:
    """Labels and their values."""
    said = (tag("dd", show(value), class_="words" if isinstance(value, str) else None) for _, value in pairs)
    return tag("dl", *(tag("div", tag("dt", name), dd) for (name, _), dd in zip(pairs, said, strict=True)), class_=class_)


def _provenance(pairs: Pairs) -> Html:
    """Seeds and versions are names rather than quantities: they are written as they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", str(value))) for name, value in pairs), class_="provenance")


def _over(curves: Sequence[Curve]) -> str:
    """Heading of the figures: some programs and comparisons have none by round."""
    if curves and all(curve.shape for curve in curves):
        return "How good is the prediction?"
    return "Round by round" if any(curve.x_label == "round" for curve in curves) else "Figures"


def curve_figure(curve: Curve) -> Html:
    """A figure with its legend, and its numbers folded away."""
    lasts = [show(series.y[-1]) if series.y else None for series in curve.series]
    ends = curve.x_label == "round" or not any(one.low for one in curve.series)  # of a forecast the last number is no result
    apart = ends and (len(lasts) == 1 or len(set(lasts)) > 1)
    inks = series_inks(curve.series)
    legend = [_legend(one, ink, last if apart else None) for one, ink, last in zip(curve.series, inks, lasts, strict=True)]
    return tag(
        "figure",
        tag("figcaption", tag("h3", curve.title), None if curve.shape else tag("ul", *legend, class_="legend")),
        (square_chart(curve) if curve.shape else line_chart(curve))
        or tag("p", "No value is finite, so there is nothing to draw.", class_="note"),
        _note(curve.note),
        curve_table(curve),
    )


def dots_figure(dots: Dots) -> Html:
    """A figure of several numbers of each of several things, with its legend."""
    return tag(
        "figure",
        tag("figcaption", tag("h3", dots.title), tag("ul", dots_legend(dots), class_="legend")),
        dots_chart(dots) or tag("p", "No value is finite, so there is nothing to draw.", class_="note"),
        _note(dots.note),
    )


def bars_figure(bars: BarChart) -> Html:
    """A figure of bars side by side, with its legend, and its numbers folded away."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(values[place] for _, values in bars.bars)) for place, name in enumerate(bars.labels)
    )
    numbers = Grid(bars.title, (bars.x_label, *(name for name, _ in bars.bars)), rows)
    return tag(
        "figure",
        tag("figcaption", tag("h3", bars.title), tag("ul", bars_legend(bars), class_="legend")),
        bars_chart(bars) or tag("p", "No value is finite, so there is nothing to draw.", class_="note"),
        _note(bars.note),
        folded("Numbers", table(numbers), class_="numbers"),
    )


def forest_section(forest: ForestPlot) -> Html:
    """A forest plot under its title, how it is read, and what follows from the test of whether sites differ."""
    return _section(forest.title, "forest", forest_figure(forest), tag("p", forest.sentence) if forest.sentence else None)


def forest_figure(forest: ForestPlot) -> Html:
    """The two drawings of a forest plot, of which one is shown, and its numbers folded away."""
    return tag(
        "figure",
        forest_charts(forest) or tag("p", "No estimate is finite, so there is nothing to draw.", class_="note"),
        _note(reading(forest)),
        class_="across",
    )


def pictures_section(given: Pictures) -> Html:
    """Rows of pictures with their heading."""
    return _section(given.title, None, tag("p", given.note) if given.note else None, pictures_rows(given))


def _flow(flow: Flow) -> Html:
    return _section(flow.title, None, flow_list(flow), _note(flow.note))


def _legend(series: Series, ink: str, last: str | None) -> Html:
    """Name a line, and where it ended."""
    return tag("li", swatch(ink), tag("span", series.name), None if last is None else tag("b", last))


def _comparison(comparison: Comparison) -> Html:
    drawn = dot_tracks(comparison)
    ends = drawn[0] if drawn else None
    tracks: Sequence[Html | None] = drawn[1] if drawn else [None] * len(comparison.rows)
    values = show_column("", [value for _, value, _ in comparison.rows])
    loss = loss_sentence(comparison)
    head = tag(
        "tr",
        tag("td"),
        tag("th", comparison.metric, scope="col", class_="number"),
        tag("th", *(tag("span", end) for end in ends), class_="track", aria_hidden="true") if ends else None,
    )
    rows = [
        tag(
            "tr",
            tag("th", name, tag("small", note) if note else None, scope="row"),
            tag("td", value, class_="number"),
            tag("td", track, class_="track") if track else None,
        )
        for (name, _, note), value, track in zip(comparison.rows, values, tracks, strict=True)
    ]
    return _section(
        "Beside the alternatives",
        None,
        tag("p", comparison.sentence) if comparison.sentence else None,
        tag("p", loss, class_="loss") if loss else None,
        tag("table", tag("thead", head), tag("tbody", *rows), class_="comparison"),
        _note("Bars show the range over parties.") if comparison.ranges and drawn else None,
    )


def loss_sentence(comparison: Comparison) -> str | None:
    """Return what federation costs in the comparison's own metric, or `None` where there is nothing to compare."""
    loss = comparison.loss
    if loss is None or not math.isfinite(loss):
        return None
    scale = abs(comparison.rows[0][1]) or 1.0
    if abs(loss) <= ROUNDING * scale:
        return f"Federated {comparison.metric} equals the centralised one."
    if abs(loss) < UNSEEN * scale:
        return f"Federated {comparison.metric} equals the centralised one to six digits."
    size = show(abs(loss)) if abs(loss) < 1e-3 else fixed(abs(loss), 4).rstrip("0").rstrip(".")
    return f"Federated {comparison.metric} is {size} {'worse' if loss > 0 else 'better'} than centralised."


def _heat(heat: Heat) -> Html:
    sentence = tag("p", heat.sentence) if heat.sentence else None
    return _section(heat.title, None, sentence, heat_table(heat), _note(heat.note))
