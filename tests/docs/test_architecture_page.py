"""The page on the house: its list of rooms is that of the package, and the layers are those that the linter checks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "hedgerow"
PAGE = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")


def folders(of):
    return {folder.name for folder in of.iterdir() if (folder / "__init__.py").is_file()}


def listed(indent):
    block = PAGE.partition("```text\nsrc/hedgerow/\n")[2].partition("```")[0]
    return {found[1] for line in block.splitlines() if (found := re.match(rf" {{{indent}}}(\w+)/ ", line))}


def test_the_page_lists_every_room_and_no_other():
    assert listed(2) == folders(PACKAGE)
    assert listed(4) == folders(PACKAGE / "network")


def test_the_page_names_the_layers_of_the_linter_in_their_order():
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    ours = [[room.strip().removeprefix("hedgerow.") for room in layer.split("|")] for layer in layers]
    said = PAGE.partition("a linter enforces it: ")[2].partition(". Rooms of one layer")[0]
    outside, _, inside = said.partition("; inside\n`network`, ")
    rooms, parts = ([set(re.findall(r"`(\w+)`", layer)) for layer in text.split(">")] for text in (outside, inside))
    assert parts == [{room.removeprefix("network.") for room in layer} for layer in ours if layer[0].startswith("network.")]
    assert rooms == [set(layer) for layer in network_as_one(ours)]


def network_as_one(layers):
    for layer in layers:
        if layer[0] == "network.station_service":
            yield ["network"]
        elif not layer[0].startswith("network."):
            yield layer


def test_the_files_that_the_table_names_exist():
    table = PAGE.partition("### Where does it go")[2].partition("\n\nThe catalogue reads")[0]
    named = [name for name in re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", table) if "NAME" not in name]
    assert len(named) > 15
    assert [name for name in named if not any((base / name).exists() for base in (PACKAGE, ROOT))] == []
