"""The README's examples run as they are written."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_the_examples_of_the_readme_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert len(blocks) == 3
    assert "converged in 9 rounds" in capsys.readouterr().out
    assert names["ended"].stopped == "budget"


def test_what_the_readme_links_to_exists():
    text = README.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) > 6
    assert [link for link in links if not (README.parent / link).exists()] == []
