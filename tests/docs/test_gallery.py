"""The gallery: its programs run and print what their pages show, and their pictures and reports are small and load nothing."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hedgerow.report import Report

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.py"))
QUICK = {"accountants", "who_has_what", "roc_curve", "calibration_curve"}


@pytest.fixture
def script(monkeypatch):
    """`scripts/gallery.py`."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import gallery

    return gallery


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in NAMES])
def test_a_program_prints_what_its_page_shows_and_leaves_a_picture_and_a_report(name, script):
    printed, left = script.run(GALLERY / f"{name}.py")
    assert printed == (GALLERY / "made" / f"{name}.txt").read_text(encoding="utf-8")
    picture, report = script.shown(GALLERY / f"{name}.py", left)
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert isinstance(report, Report)
    assert report.curves or report.heat


def test_everything_that_was_made_is_of_a_program_in_the_navigation():
    made = {path.name for path in (GALLERY / "made").iterdir()}
    assert made == {f"{name}.{suffix}" for name in NAMES for suffix in ("html", "svg", "txt")}
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r"- gallery/(\w+)\.md", told)) == sorted([*NAMES, "index"])
    assert len(NAMES) >= 12


def test_what_was_made_is_small_and_loads_nothing():
    files = list((GALLERY / "made").iterdir())
    assert sum(file.stat().st_size for file in files) < 1_000_000
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"<script|(src|href)=|url\(|@import", text), file.name
        assert not re.search(r"(?<![\w.])/(work|home|tmp|root|Users|mnt|opt)/", text), file.name
