"""The pages for organisations: their files are read by the product, and their commands exist."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args, get_origin

import pytest
import typer

from hedgerow.cli.main import app
from hedgerow.network.aggregator.config import AggregatorConfig
from hedgerow.network.coordinator.config import CoordinatorConfig, load_config
from hedgerow.network.coordinator.submission import refuse_simulation
from hedgerow.network.station.config import StationConfig, read_config
from hedgerow.network.station.policy import admit_columns, admit_program, named_columns
from hedgerow.study import load

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
PAGES = ("federation.md", "station.md", "aggregator.md", "security-office.md", "keys.md")


def test_the_station_of_the_pages_is_open_to_the_study_of_the_pages():
    station, _ = read_config(EXAMPLES / "station.toml")
    study = load(str(EXAMPLES / "heart_means.toml"))
    refuse_simulation(study)
    admit_program(station.guard, study, told="0.1.0", installed="0.1.0", code="")
    columns = station.declared.select(["age", "sbp"]).columns
    admit_columns(station.allowed, station.declared, columns, named_columns(study))
    hub = load_config(EXAMPLES / "coordinator.toml")
    assert (hub.name, hub.rail.address.split(":")[1]) == (station.coordinator.name, station.coordinator.address.split(":")[1])


@pytest.mark.parametrize(
    ("page", "model"),
    [("station.md", StationConfig), ("aggregator.md", AggregatorConfig), ("federation.md", CoordinatorConfig)],
)
def test_each_key_of_a_configuration_is_on_its_page(page, model, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import hooks

    text = hooks.on_page_markdown((DOCS / page).read_text(encoding="utf-8"))
    for path, section in {"": model, **dict(within("", model))}.items():
        told = text.partition(f"### {f'`[{path}]`' if path else 'Top level'}\n")[2].partition("\n### ")[0]
        names = [field.alias or key for key, field in section.model_fields.items() if not field.exclude]
        assert [name for name in names if f"| `{name}` |" not in told] == [], path
    sys.modules.pop("hooks", None)


def within(path, model):
    """Every section that is a field of a section, by its dotted path."""
    for key, field in model.model_fields.items():
        name = f"{path}.{key}".strip(".") + ".NAME" * (get_origin(field.annotation) in (dict, Mapping))
        for kind in (field.annotation, *get_args(field.annotation)):
            if hasattr(kind, "model_fields"):
                yield name, kind
                yield from within(name, kind)


def commands(page):
    """Every command line of a page, in words."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:sh|shell|text|ini)\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`(hedgerow [^`]+)`", text)
    for line in lines:
        if found := re.search(r"(?:^|[\s/])hedgerow ((?:[a-z]+ ?).*)", line.partition("  #")[0]):
            yield found[1].split()


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_of_a_page_exist(page):
    main, found = typer.main.get_command(app), 0
    for words in commands(page):
        command = main
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        if command is main:
            continue  # `hedgerow` in a sentence
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words
        found += 1
    assert found > 1


def test_what_is_said_to_be_tested_is_there():
    named = re.findall(r"`((?:tests|scripts)/[\w/.]+)`", (DOCS / "security-office.md").read_text(encoding="utf-8"))
    assert len(named) > 6
    assert [name for name in named if not (DOCS.parent / name).exists()] == []
