"""`hedgerow pilot`: a coordinator and stations laid out on one machine, to try a federation before there is one.

FOLDER/hub              coordinator.toml, keys/
FOLDER/STATION          station.toml, keys/, records.csv
FOLDER/AGGREGATOR       aggregator.toml, keys/; where rows are split among aggregators
FOLDER/study.toml       a study to submit; `hedgerow run` runs the same file as a simulation
FOLDER/records.csv      all records, for that
FOLDER/kits             NVIDIA FLARE's, where that is the rail
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hedgerow import data
from hedgerow.errors import CannotWrite, SettingsInvalid

from .json_output import JsonOption, print_json

console = Console()

HUB, KITS = "hub", "kits"
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
ADDING = ("ministry", "university", "ombudsman", "registry", "observatory")
COLUMNS = ("mean_radius", "mean_texture", "mean_smoothness", "malignant")
FORMULA = "malignant ~ mean_radius + mean_texture + mean_smoothness"


def pilot(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    stations: Annotated[int, typer.Option(min=2, max=len(NAMES), help="How many stations.")] = 3,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the coordinator listens on the loopback; free by default.")
    ] = 0,
    approval: Annotated[str, typer.Option(help="automatic, or ask: a person approves at each station.")] = "automatic",
    rail: Annotated[str, typer.Option(help="grpc, socket or nvflare.")] = "grpc",
    aggregators: Annotated[
        int, typer.Option(max=len(ADDING), help="Split rows among so many aggregators, two or more; secagg by default.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Lay out a federation on this machine: keys enrolled, configurations written, records of breast cancer divided."""
    names, adding = NAMES[:stations], ADDING[:aggregators]
    lay_out(folder, names, port=port or free_port(), approval=approval, rail=rail, aggregators=adding)
    kits = [f"{folder / KITS / name / 'startup' / 'start.sh'}" for name in ("server", *names)] if rail == "nvflare" else []
    begin = [
        *kits,
        f"hedgerow coordinator start {folder / HUB}",
        *(f"hedgerow aggregator start {folder / name}" for name in adding),
        *(f"hedgerow station start {folder / name}" for name in names),
    ]
    then = [f"hedgerow submit {folder / 'study.toml'} --at {folder / HUB}", f"hedgerow status --at {folder / HUB}"]
    same = f"hedgerow run {folder / 'study.toml'}"
    if as_json:
        print_json(
            {"folder": folder, "stations": names, "aggregators": adding, "start": begin, "then": then, "simulation": same}
        )
        return
    among = (
        f"A coordinator, {stations} stations and {len(adding)} aggregators"
        if adding
        else f"A coordinator and {stations} stations"
    )
    say(f"{among} lie in {folder}. In a terminal for each:")
    for line in begin:
        say(f"  {line}")
    say("Then, in another:")
    for line in then:
        say(f"  {line}")
    say(f"The same study as a simulation: {same}")


def lay_out(
    folder: Path,
    names: Sequence[str],
    *,
    port: int,
    approval: str = "automatic",
    rail: str = "grpc",
    limits: Mapping[str, Any] | None = None,
    guard: Mapping[str, Any] | None = None,
    program: Mapping[str, Any] | None = None,
    aggregators: Sequence[str] = (),
) -> None:
    """Write everything that a pilot needs.

    Parameters
    ----------
    names : sequence of str
        The stations.
    rail : {"grpc", "socket", "nvflare"}
        What carries letters; sockets only on one machine.
    limits : mapping, optional
        Of the coordinator; see `coordinator.toml`.
    guard : mapping, optional
        Added to each station's `[guard]`.
    program : mapping, optional
        Of the study; a logistic regression by default.
    aggregators : sequence of str
        Who adds up rows that are split; rows go through secure aggregation without.
    """
    if folder.exists() and any(folder.iterdir()):
        raise CannotWrite(f"{folder} is not empty.", remedy="Choose a new folder.", asked=False)
    asked = dict(program or {"name": "logistic_regression", "formula": FORMULA})
    if len(aggregators) == 1 or (aggregators and rail == "nvflare"):
        remedy = "Two or more, over grpc or socket."
        raise SettingsInvalid(f"{len(aggregators)} aggregators over the rail {rail!r}.", remedy=remedy)
    if approval not in ("automatic", "ask") or rail not in ("grpc", "socket", "nvflare"):
        remedy = "approval: automatic or ask; rail: grpc, socket or nvflare."
        raise SettingsInvalid(f"approval={approval!r}, rail={rail!r}.", remedy=remedy)
    table = data.load("breast_cancer").select(list(COLUMNS))
    parts = data.iid(parties=len(names))(table, 0).tables(table)
    own, theirs = _rails(folder.absolute(), (*names, *aggregators), rail, port)
    pins = _aggregators(folder, {name: theirs[name] for name in aggregators})
    _enrol(folder, names, aggregators)
    about = {"name": HUB, "rail": own, "limits": dict(limits or {})}
    _write(folder / HUB / "coordinator.toml", about | ({"aggregators": list(aggregators)} if aggregators else {}))
    for name, part in zip(names, parts, strict=True):
        rules: dict[str, Any] = {"approval": approval, "programs": [{"name": asked["name"]}], "least_records": 20}
        config = {
            "name": name,
            "coordinator": {"name": HUB, **theirs[name]},
            "data": {"name": "records", "source": "csv", "path": "records.csv", "columns": _declared(part.schema)},
            "aggregators": pins or None,
            "guard": rules | {"require": {"hidden_rows": True}} | dict(guard or {}),
        }
        _write(folder / name / "station.toml", config)
        part.to_pandas().to_csv(folder / name / "records.csv", index=False)
    table.to_pandas().to_csv(folder / "records.csv", index=False)
    by: dict[str, Any] = {"by": "additive", "aggregators": len(aggregators)} if aggregators else {"by": "secagg"}
    _write(folder / "study.toml", _study(table, asked, len(names), by))


def _rails(folder: Path, names: Sequence[str], rail: str, port: int) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The rail's section of the coordinator's configuration, and those of the stations."""
    if rail == "grpc":
        address = f"127.0.0.1:{port}"
        return {"kind": rail, "address": address}, {name: {"rail": rail, "address": address} for name in names}
    sockets = folder / "sockets"
    sockets.mkdir(mode=0o700, parents=True)
    hub = sockets / HUB
    if rail == "socket":
        return {"kind": rail, "path": str(hub)}, {name: {"rail": rail, "path": str(hub)} for name in names}
    from hedgerow.engines.rails.nvflare.provision import provision

    doors = {name: sockets / name for name in names}
    kits = provision(folder / KITS, doors, coordinator=hub, port=port)
    own = {"kind": rail, "path": str(hub), "kit": str(kits["submitter"])}
    return own, {name: {"rail": rail, "path": str(doors[name])} for name in names}


def _aggregators(folder: Path, rails: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Make the folders of aggregators, and return their public keys for shares by name."""
    from hedgerow.network.aggregator_service import lay_out

    made = {name: lay_out(folder / name, name, {"name": HUB, **section}) for name, section in rails.items()}
    return {name: one.shares.public.hex() for name, one in made.items()}


def _study(table: data.Table, program: Mapping[str, Any], parties: int, by: Mapping[str, Any]) -> dict[str, Any]:
    ranges = {column.name: [column.low, column.high] for column in table.schema if column.low is not None}
    return {
        "title": "Malignant or benign, between organisations",
        "description": "The stations keep their records; the coordinator sees totals and no row.",
        "data": {"path": "records.csv", "target": table.schema.target, "ranges": ranges},
        "partition": {"by": "iid", "parties": parties},
        "program": dict(program),
        "protection": {"aggregation": dict(by)},
    }


def _enrol(folder: Path, names: Sequence[str], aggregators: Sequence[str] = ()) -> None:
    """What two people do by mail and telephone, in one process."""
    from hedgerow.network.identity import enrolment
    from hedgerow.network.identity.enrolment_files import Request, Welcome
    from hedgerow.network.identity.key_folder import KeyFolder

    hub = KeyFolder.make(folder / HUB / "keys", HUB, authority=True)
    stations = [KeyFolder.make(folder / name / "keys", name) for name in names]
    stations += [KeyFolder(folder / name / "keys") for name in aggregators]
    for station in stations:
        enrolment.enrol(hub, Request.from_bytes(enrolment.ask(station)))
    for station in stations:  # once all are on the roster, which each of them pins
        enrolment.accept(station, Welcome.from_bytes(enrolment.welcome(hub, station.name)))


def _declared(schema: data.Schema) -> dict[str, Any]:
    return {column.name: _column(column) for column in schema}


def _column(column: data.Column) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": column.kind, "role": column.role, "unit": column.unit or None}
    if column.kind == "binary":
        return found
    return found | {"range": None if column.low is None else [column.low, column.high], "levels": list(column.levels) or None}


def _write(path: Path, values: Mapping[str, Any]) -> None:
    from hedgerow.core.toml import to_toml

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_toml(values).lstrip() + "\n", encoding="utf-8")


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def say(line: str) -> None:
    """Print a line as it is."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)
