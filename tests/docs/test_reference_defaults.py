"""The defaults that the pages of the reference show are those of the signatures."""

import inspect
from importlib import import_module
from pathlib import Path

import griffe
import pytest
from typing_extensions import is_typeddict

ROOT = Path(__file__).parents[2]


def beside_the_pages(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        return import_module(name)


def as_shown(*extensions):
    """The package as mkdocstrings reads it."""
    return griffe.GriffeLoader(
        search_paths=[ROOT / "src"], docstring_parser="numpy", extensions=griffe.load_extensions(*extensions)
    ).load("hedgerow")


def parameters(docstring):
    """Each parameter of a docstring, and the default that its page shows."""
    return {
        one.name.lstrip("*"): one.value
        for section in docstring.parse("numpy", warnings=False)
        if section.kind is griffe.DocstringSectionKind.parameters
        for one in section.value
    }


def contradictions(package, entries):
    """Parameters whose page shows a default that the signature does not have, or none where it has one."""
    found = set()
    for entry in entries:
        said = package[entry.path.removeprefix("hedgerow.")].docstring
        given = inspect.signature(entry.value).parameters
        for name, shown in parameters(said).items() if said else ():
            has = name in given and given[name].default is not inspect.Parameter.empty
            if (shown is not None) != has:
                found.add((entry.name, name, shown))
    return found


@pytest.mark.slow
def test_pages_show_the_defaults_of_the_signatures():
    reference = beside_the_pages("pages")
    entries = [entry for entry in reference.entries() if not (reference.is_value(entry.value) or is_typeddict(entry.value))]
    written = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "extensions: [docs/defaults.py]" in written
    assert contradictions(as_shown(beside_the_pages("defaults").Defaults), entries) == set()


def test_a_choice_is_no_default(tmp_path):
    (tmp_path / "lone.py").write_text(
        'def measure(unit, scale, base=2):\n    """Measure.\n\n    Parameters\n    ----------\n'
        '    unit : {"metre", "foot"}\n        A unit.\n    base, scale : int\n        Numbers.\n    """\n'
    )
    read = {
        name: parameters(griffe.load("lone", search_paths=[tmp_path], extensions=found)["measure"].docstring)
        for name, found in {
            "plain": griffe.load_extensions(),
            "ours": griffe.load_extensions(beside_the_pages("defaults").Defaults),
        }.items()
    }
    assert read["plain"] == {"unit": '"metre"', "base": "2", "scale": "2"}
    assert read["ours"] == {"unit": None, "base": "2", "scale": None}
