"""The tutorial as a notebook: it is what the page says, and it runs."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("tutorial_notebook", ROOT / "scripts" / "tutorial_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_that_of_the_page(script):
    """If this fails: python scripts/tutorial_notebook.py"""
    assert script.NOTEBOOK.read_text(encoding="utf-8") == script.written()


def test_every_example_of_the_page_is_a_cell(script):
    page = script.PAGE.read_text(encoding="utf-8")
    made = list(script.cells(page))
    code = [text for kind, text in made if kind == "code"]
    prose = "".join(text for kind, text in made if kind == "markdown")
    assert "fit.plot()" in code
    assert sum(text.startswith("%%writefile") for text in code) == 2
    assert "<!--" not in prose
    assert "8<" not in prose
    assert all(line in prose for line in page.splitlines() if line.startswith("## "))


@pytest.mark.slow
def test_the_notebook_runs_and_shows_its_values(tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    book = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    NotebookClient(book, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {"".join(cell.source): cell.outputs for cell in book.cells if cell.cell_type == "code"}
    kinds = {source: {kind for output in outputs for kind in output.get("data", ())} for source, outputs in shown.items()}
    assert "image/svg+xml" in kinds["fit.plot()"]
    assert all("text/html" in kinds[name] for name in ("hospitals", "fit", "hospitals.ledger", "run", "protected.ledger"))
    words = json.dumps(shown["run"])
    assert "the budget was spent" in words
    trained = next(outputs for source, outputs in shown.items() if "hr.drive(train, protected)" in source)
    assert any(
        "round" in json.dumps(output) and "fedavg" in json.dumps(output) for output in trained
    )  # what showed its progress
