"""The gallery: a page for each program of docs/gallery, and their index. `scripts/gallery.py` makes pictures and reports."""

from __future__ import annotations

import ast
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

GALLERY = Path(__file__).parent / "gallery"


def exhibits(nav: list[str | dict[str, object]]) -> list[str]:
    """The names of the programs, in the order of the navigation."""
    section = next(one["Gallery"] for one in nav if isinstance(one, dict) and "Gallery" in one)
    paths = [str(path) for path in section if str(path) != "gallery/index.md"]  # type: ignore[union-attr]
    return [path.removeprefix("gallery/").removesuffix(".md") for path in paths]


def told(name: str) -> tuple[str, str, str]:
    """Title, text and code of a program."""
    source = (GALLERY / f"{name}.py").read_text("utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    return title, text, source.split('"""\n', 2)[-1].strip()


def page(name: str) -> str:
    title, text, code = told(name)
    printed = (GALLERY / "made" / f"{name}.txt").read_text("utf-8").strip()
    return f"""# {title}

{text}

![{title}](made/{name}.svg)

[The report of this run](made/{name}.html) is one file that loads nothing.

```python
{code}
```

```text
{printed}
```
"""


def index(names: list[str]) -> str:
    cards = []
    for name in names:
        title, text, _ = told(name)
        picture = f"[![{title}](made/{name}.svg){{ loading=lazy }}]({name}.md)"
        cards.append(f"- {picture}\n\n    **[{title}]({name}.md)**\n\n    {first_sentence(text)}")
    return (
        "# Gallery\n\nPrograms with the pictures and reports that they make. `scripts/gallery.py` runs them again.\n\n"
        '<div class="grid cards gallery" markdown>\n\n' + "\n\n".join(cards) + "\n\n</div>\n"
    )


def first_sentence(text: str) -> str:
    """As far as the first full stop before a space."""
    words = " ".join(text.split())
    end = words.find(". ")
    return words if end < 0 else words[: end + 1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the gallery."""
    names = exhibits(config.nav or [])
    files.append(File.generated(config, "gallery/index.md", content=index(names)))
    for name in names:
        files.append(File.generated(config, f"gallery/{name}.md", content=page(name)))
    return files
