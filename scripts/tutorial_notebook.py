"""Write docs/tutorial.ipynb from docs/tutorial.md, so that the tutorial is written once.

python example, toml file      becomes a cell that runs, or writes the file
<!-- notebook: fit.plot() -->  becomes a cell of its own, of which the page shows nothing
output that a page shows       is left out: cells have their own
everything else                is text

    python scripts/tutorial_notebook.py
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"
_PART = re.compile(r"^```(\w+)\n(.*?)^```\n|^<!-- notebook: (.*?) -->\n", re.MULTILINE | re.DOTALL)
_SNIPPET = re.compile(r'--8<-- "([\w.-]+)"\n')


def cells(page: str) -> Iterator[tuple[str, str]]:
    """Kinds and texts of the cells: "markdown" or "code"."""
    text, at = "", 0
    for part in _PART.finditer(page):
        language, body, shown = part.groups()
        snippet = None if body is None else _SNIPPET.fullmatch(body)
        text += page[at : part.start()]
        at = part.end()
        if shown is None and snippet is None:
            text += part[0]
            continue
        if language == "text":
            continue
        if text.strip():
            yield "markdown", text
        text = ""
        yield "code", shown or _code(language, snippet[1] if snippet else "")
    if (text + page[at:]).strip():
        yield "markdown", text + page[at:]


def _code(language: str, name: str) -> str:
    body = (DOCS / "examples" / name).read_text(encoding="utf-8")
    return body if language == "python" else f"%%writefile {name}\n{body}"


def notebook(page: str) -> dict[str, Any]:
    """The notebook of a page, without outputs."""
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(page)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number:02d}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell | {"source": text.strip("\n").splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def written() -> str:
    """What the file should hold."""
    return json.dumps(notebook(PAGE.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(written(), encoding="utf-8")
    sys.stdout.write(f"{NOTEBOOK}\n")
