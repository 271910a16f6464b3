"""The page is whole, safe, self-contained and small."""

from __future__ import annotations

import re
import sys
from dataclasses import fields, replace
from html.parser import HTMLParser

import pytest

from hedgerow.errors import CannotWrite
from hedgerow.report import Comparison, Grid, Heat, Report, render, write
from hedgerow.report.page import loss_sentence

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;"


class Outline(HTMLParser):
    """Collects tags and attributes, and fails on a closing tag that does not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def hostile(value):
    """Return the same report with every string in it hostile."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(map(hostile, value))
    if hasattr(value, "__dataclass_fields__"):
        kept = {"style"}  # a closed vocabulary
        return replace(value, **{f.name: hostile(getattr(value, f.name)) for f in fields(value) if f.name not in kept})
    return value


def test_tags_are_balanced(report):
    assert Outline(render(report)).open == []


def test_every_section_is_there_in_order(report):
    headings = re.findall("<h2>(.*?)</h2>", render(report))
    assert headings == [
        "Differentially private",
        "Worth knowing",
        "At a glance",
        "Round by round",
        "Beside the alternatives",
        "Coefficients",
        "Summary",
        "How labels are spread",
        "What left each party",
        "Per party",
        "Notes",
        "Provenance",
    ]


def test_an_empty_report_has_only_its_privacy_statement():
    page = render(Report(title="t", study="s", description="d", privacy="Nothing is promised.", privacy_ok=False))
    assert re.findall("<h2>(.*?)</h2>", page) == ["Not differentially private"]
    assert "Nothing is promised." in page


def test_a_long_line_of_text_wraps_and_only_set_lines_are_preformatted(report):
    line = "From declared ranges to [0, 1]: " + ", ".join(f"column_{i}" for i in range(60)) + "."
    page = render(replace(report, text=(("How features reach the model", line), ("Summary", "a  1\nb  2"))))
    assert f'<p class="said">{line}</p>' in page
    assert '<pre tabindex="0">a  1\nb  2</pre>' in page
    assert page.count("<pre") == 1


def test_hostile_strings_stay_text(report):
    outline = Outline(render(hostile(report)))
    assert not outline.tags & {"script", "img"}
    assert "onerror" not in outline.attributes
    assert HOSTILE in outline.words
    assert outline.open == []


def test_nothing_is_loaded_from_anywhere(report):
    page = render(report)
    assert not re.search(r"https?://|url\(|@import", page)
    assert not Outline(page).tags & {"link", "script", "img", "iframe", "object", "embed", "audio", "video", "use"}
    assert not Outline(page).attributes & {"src", "href", "srcset"}


def test_ids_cannot_collide_because_there_are_none(report):
    assert "id" not in Outline(render(report)).attributes


def test_figures_need_no_plotting_library(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert render(report).count('role="img"') == len(report.curves)


def test_numbers_are_written_for_a_reader_but_seeds_as_they_are(report):
    words = Outline(render(report)).words
    assert "1\N{NARROW NO-BREAK SPACE}437" in words
    assert "20240" in words
    assert "<0.001" in words


def test_two_thousand_parties_make_a_small_page(report):
    names = tuple(f"party {i}" for i in range(2000))
    heat = Heat("spread", names, tuple(map(str, range(200))), ((3,) * 200,) * 2000)
    parties = Grid("Per party", ("party", "records", "accuracy"), tuple((name, 30, i / 2000) for i, name in enumerate(names)))
    page = render(replace(report, heat=heat, parties=parties))
    assert len(page.encode()) < 1_500_000
    assert "40 of 2\N{NARROW NO-BREAK SPACE}000 parties are shown, evenly spaced." in page
    assert "100 of 200 labels are shown, evenly spaced." in page
    assert "The first 30 of 2\N{NARROW NO-BREAK SPACE}000 parties" in page
    assert "party 29<" in page
    assert "party 1999<" in page  # the last row of the heat map
    assert re.search("accuracy</th><td[^>]*>0.0000</td>.*>0.9995</td>", page)


def test_a_figure_without_finite_values_says_so(report):
    broken = replace(report.curves[1], series=(replace(report.curves[1].series[0], y=(float("nan"),) * 4),), line=None)
    assert "No value is finite" in render(replace(report, curves=(broken,)))


@pytest.mark.parametrize(
    ("federated", "sentence"),
    [
        (0.90, "Federated loss is 0.1 worse than centralised."),
        (0.75, "Federated loss is 0.05 better than centralised."),
        (0.80, "Federated loss equals the centralised one."),
        (0.80002, "Federated loss is 2×10⁻⁵ worse than centralised."),
        (float("nan"), None),
    ],
)
def test_the_cost_of_federation_is_stated(federated, sentence):
    rows = (("federated", federated, ""), ("centralised", 0.80, ""))
    assert loss_sentence(Comparison("loss", False, rows)) == sentence


def test_write_makes_the_folder_and_takes_any_text(report, tmp_path):
    write(replace(report, title="lone \ud800 surrogate"), tmp_path / "runs" / "report.html")
    assert (tmp_path / "runs" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_write_refuses_a_folder(report, tmp_path):
    with pytest.raises(CannotWrite, match="HR-104"):
        write(report, tmp_path)


@pytest.mark.parametrize(
    ("ok", "weak", "words"),
    [(True, False, "Differentially private"), (True, True, "promises hardly anything"), (False, False, "Not differentially")],
)
def test_the_heading_says_what_the_epsilon_is_worth(ok, weak, words):
    words_of = {"title": "t", "study": "s", "description": "d", "privacy": "Epsilon 1."}
    report = Report(**words_of, privacy_ok=ok, privacy_weak=weak)
    assert words in render(report)
    assert Report.from_json(report.to_json()) == report
