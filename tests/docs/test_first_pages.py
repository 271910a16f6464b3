"""What a new reader meets first: the landing page, installation, green on white, code that can be pasted."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("page", ["index.md", "errors/HR-105.md"])
def test_every_extra_is_named_where_one_installs(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in EXTRAS if name not in ("docs", "dev") and f"`{name}`" not in text] == []


def test_the_landing_page_leads_to_privacy_and_tells_what_the_base_has():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert "](privacy.md)" in text.partition("## Five doors")[0]
    assert "`pip install hedgerow` alone" in text


@pytest.mark.parametrize(
    ("example", "page"), [("own_one_line", "models.md"), ("own_network", "models.md"), ("own_bert", "models.md")]
)
def test_examples_of_networks_are_shown_whole(example, page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert re.search(rf'(?m)^ *--8<-- "{example}\.py"$', text)
    assert ast.parse((DOCS / "examples" / f"{example}.py").read_text(encoding="utf-8")).body


@pytest.mark.parametrize("page", sorted(path.stem for path in (DOCS / "examples").glob("from_*.py")))
def test_programs_beside_those_of_other_libraries_are_at_most_eighty_columns_wide(page):
    lines = (DOCS / "examples" / f"{page}.py").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 80] == []


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colour(selector, variable):
    """A colour of the style sheet."""
    text = (DOCS / "style.css").read_text(encoding="utf-8")
    return re.search(rf"(?s){re.escape(selector)} {{[^}}]*{variable}: (#[0-9a-f]{{6}});", text)[1]


@pytest.mark.parametrize(
    ("selector", "variable", "ground"),
    [
        ('[data-md-color-primary="green"]', "--md-primary-fg-color", "#ffffff"),
        ('[data-md-color-accent="green"]', "--md-accent-fg-color", "#ffffff"),
        ('[data-md-color-scheme="default"][data-md-color-primary="green"]', "--md-typeset-a-color", "#f5f5f5"),
        ('[data-md-color-scheme="slate"][data-md-color-primary="green"]', "--md-typeset-a-color", "#26282e"),
        ('[data-md-color-scheme="slate"][data-md-color-primary="green"]', "--md-accent-fg-color", "#26282e"),
    ],
)
def test_greens_can_be_read(selector, variable, ground):
    assert contrast("#4cae4f", "#ffffff") < 3  # the theme's own
    assert contrast(colour(selector, variable), ground) >= 4.5


def test_types_in_tables_of_keys_are_short():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        import hooks
    assert hooks.kind_of(int | None) == ("int | None", "")
    assert hooks.kind_of(hooks.Study | None) == ("section | None", "")
    assert hooks.kind_of(dict[str, tuple[float, ...]]) == ("dict[str, tuple[float, ...]]", "")
    assert hooks.kind_of(Literal["a", "b"]) == ("'a' | 'b'", "")
    assert hooks.kind_of(Literal["a", "b", "c", "d"] | type) == ("str | type", "one of `a`, `b`, `c`, `d`")
    rows = re.findall(r"(?m)^\| `[\w-]+` \| `(.*?)` \|", hooks.study())
    assert len(rows) > 100
    assert max(map(len, rows)) < 60


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_every_column_of_a_table_has_a_heading(page):
    heads = re.findall(r"(?m)^(\|.*\|)\n\| *:?---", page.read_text(encoding="utf-8"))
    assert [head for head in heads if re.search(r"\| +\|", head)] == []
