"""Every error page shows a call that raises its code, and one that does not."""

import re
import warnings
from pathlib import Path

import pytest

from hedgerow.errors import HedgerowError, catalogue

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
WITHOUT_CODE = {"HR-105", "HR-108"}  # a package that is missing, another system
SLOW = {"HR-213", "HR-247", "HR-510", "HR-511"}  # an accountant, or torch
CODES = [pytest.param(code, marks=[pytest.mark.slow] * (code in SLOW)) for code in catalogue() if code not in WITHOUT_CODE]


def page(code: str) -> str:
    return (DOCS / "errors" / f"{code}.md").read_text(encoding="utf-8")


@pytest.fixture
def setting(tmp_path, monkeypatch):
    """The names that all examples share, and an empty folder to write to."""
    monkeypatch.chdir(tmp_path)
    found = {"__name__": "error_setup"}
    exec((DOCS / "examples" / "error_setup.py").read_text(encoding="utf-8"), found)
    return found


@pytest.mark.parametrize("code", CODES)
def test_the_refused_call_is_refused_and_the_other_is_not(code, setting):
    refused, resolved = BLOCK.findall(page(code))
    with pytest.raises(HedgerowError) as caught:
        exec(refused, setting)
    assert caught.value.code == code
    asked = "after parties" in page(code).partition("**Raised**")[2].partition("\n")[0]
    assert caught.value.asked == asked or code in ("HR-104", "HR-404")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(resolved, setting)
