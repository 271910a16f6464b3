"""The documentation builds, is complete, and speaks of nothing outside the project."""

import inspect
import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import BaseModel

from hedgerow.data import PARTITIONERS
from hedgerow.errors import catalogue
from hedgerow.study import PROGRAMS, VERTICAL
from hedgerow.study.keys import keys_of
from hedgerow.study.study import Study

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*") if path.suffix in (".md", ".py", ".toml", ".txt"))
ROOMS = sorted(path.parent.name for path in (ROOT / "src" / "hedgerow").glob("*/__init__.py") if "__all__" in path.read_text())
SOUGHT = ("Gaussian", "quickstart", "docker", "GPU", "Dataset")


@pytest.fixture(scope="module")
def hooks():
    """The generator of tables, `docs/hooks.py`."""
    return beside_the_pages("hooks")


@pytest.fixture(scope="module")
def reference():
    """The generator of the reference, `docs/pages.py`."""
    return beside_the_pages("pages")


def beside_the_pages(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return import_module(name)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path / "site")))
    built = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    assert not [name for name, text in built.items() if re.search(r'<(script|link|img)[^>]+(src|href)="?https?:', text)]
    assert not [name for name, text in built.items() if re.search(r"--8 ?&lt; ?--|::: ", text)]
    assert not [name for name, text in built.items() if re.search(r'<a [^>]*href="(?!https?:)[^"#]*/("|#)', text)]  # no folders
    home = built["index.html"]
    assert "iframe-worker.js" in home
    assert (tmp_path / "site" / "search" / "search_index.js").read_text().startswith("var __index = {")
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text())["docs"]
    for word in SOUGHT:
        titles = [entry["title"] for entry in index if re.search(rf"\b{word}", entry["title"], re.IGNORECASE)]
        assert titles, f"no page and no section has {word!r} in its title, where a search looks first"
    boosts = {entry["location"]: entry.get("boost", 1) for entry in index}
    assert (
        boosts["reference/privacy/gaussian.html"]
        > boosts["reference/privacy/accounting/gaussian_delta.html"]
        > boosts["accounting.html"]
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_no_page_names_a_path_of_a_machine(page):
    assert not re.search(r"(?<![\w.])/(work|home|tmp|root|Users|mnt|opt)/|[A-Z]:\\\\", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["house.md", *(f"design/{path.name}" for path in DOCS.glob("design/*.md"))])
def test_files_and_tests_that_a_page_names_exist(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for name in re.findall(r"`((?:tests/)?[a-z_]+(?:/[a-z_]+)*\.py)`", text):
        assert (ROOT / name).exists() or (ROOT / "src" / "hedgerow" / name).exists(), name
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in tests, name


def test_each_key_of_a_study_file_is_on_its_page(hooks):
    page = hooks.on_page_markdown((DOCS / "study.md").read_text(encoding="utf-8"))
    names = {"Top level": Study} | {f"`[{path}]`": kind for path, kind in sections("", Study)}
    for heading, section in names.items():
        text = page.partition(f"### {heading}\n")[2].partition("\n### ")[0]
        keys = [field.alias or key for key, field in section.model_fields.items()]
        assert [key for key in keys if f"| `{key}` |" not in text] == [], heading
    for name, listing in {**PROGRAMS, **VERTICAL}.items():
        text = page.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        text += page.partition("{: #shared }")[2].partition("\n### ")[0] if "(#shared)" in text else ""
        assert [key for key in keys_of(listing).model_fields if f"| `{key}` |" not in text] == [], name
    for name, scheme in PARTITIONERS.items():
        text = page.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        assert [key for key in scheme.__dataclass_fields__ if f"- `{key}`" not in text] == [], name


def sections(path, model):
    """Every section inside a section, by its dotted path; NAME stands for each of several."""
    for key, field in model.model_fields.items():
        many = ".NAME" if getattr(field.annotation, "__origin__", None) is dict else ""
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield f"{path}.{key}{many}".strip("."), kind
                yield from sections(f"{path}.{key}{many}".strip("."), kind)


@pytest.mark.parametrize("room", ROOMS)
def test_each_public_name_of_a_room_has_a_page_that_its_room_links_to(room, reference):
    module = import_module(f"hedgerow.{room}")
    shown = reference.rooms()[room]
    listed = {entry.name: entry for group in (*shown.groups.values(), shown.elsewhere) for entry in group}
    assert set(module.__all__) - set(listed) == {name for name in module.__all__ if inspect.ismodule(getattr(module, name))}
    index = reference.room_page(shown)
    for name, entry in listed.items():
        page = reference.name_page(reference.by_page()[entry.page])
        assert f"[`{name}`](" in index
        assert f"{entry.page})" in index
        assert f"# `{name}`\n" in page if reference.is_value(entry.value) else f"::: {entry.path}\n" in page


def test_the_order_of_the_reference_names_what_exists(reference):
    order = tomllib.loads((DOCS / "reference" / "groups.toml").read_text(encoding="utf-8"))
    for room, groups in order.items():
        named = [name for names in groups.values() for name in names]
        assert len(named) == len(set(named)), room
        assert set(named) <= set(import_module(f"hedgerow.{room}").__all__), room
    assert next(iter(reference.rooms()["learn"].groups)) == "Algorithms"


def test_pages_of_the_reference_differ_in_more_than_case(reference):
    pages = list(reference.by_page())
    assert len({page.lower() for page in pages}) == len(pages) > 300


def test_each_error_has_a_page_with_its_name_and_is_listed(hooks):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "errors").glob("HR-*.md")}
    assert {code: text.split("\n", 1)[0] for code, text in pages.items()} == {
        code: f"# {code} {kind.__name__}" for code, kind in catalogue().items()
    }
    index = hooks.on_page_markdown((DOCS / "errors" / "index.md").read_text(encoding="utf-8"))
    assert [code for code in catalogue() if f"[{code}]({code}.md)" not in index] == []


@pytest.mark.parametrize("code", catalogue())
def test_an_error_page_says_what_why_when_and_how(code):
    text = (DOCS / "errors" / f"{code}.md").read_text(encoding="utf-8")
    for part in ("**What happened.**", "**Why Hedgerow refuses.**", "**Raised** ", "## Resolve", "```"):
        assert part in text
