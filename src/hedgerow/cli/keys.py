"""`hedgerow keys`: make keys, enrol stations, rotate, revoke and list."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hedgerow.crypto import certificates
from hedgerow.errors import CannotWrite, KeyInvalid, MissingData
from hedgerow.network.identity import enrolment
from hedgerow.network.identity.enrolment_files import MOST_BYTES, Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.identity.trust_store import TrustStoreEntry
from hedgerow.report import Fits

console = Console()

app = typer.Typer(help="Make, enrol, rotate, revoke and list the keys of coordinators and stations.", no_args_is_help=True)

SOON = 30
"""Days before its end from which a certificate is said to end soon."""

FolderArgument = Annotated[Path, typer.Argument(help="The key folder of this coordinator or station.")]
OutOption = Annotated[Path, typer.Option(help="Where files to send are written.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask: the fingerprint was compared, or need not be.")]
FingerprintOption = Annotated[str, typer.Option(help="The fingerprint that was told; another is refused.", metavar="HEX")]
HostOption = Annotated[
    list[str] | None, typer.Option("--host", help="A name or address under which stations reach this coordinator.")
]


@app.command()
def init(
    folder: FolderArgument,
    name: Annotated[str, typer.Option(help="What this coordinator or station is called.")],
    authority: Annotated[bool, typer.Option("--authority", help="A coordinator: it issues the certificates.")] = False,
    host: HostOption = None,
    out: OutOption = Path(),
) -> None:
    """Make keys in a new folder. A station also gets a request, to be sent to the coordinator."""
    made = KeyFolder.make(folder, name, authority, hosts=host or ())
    say(f"{name}: keys made in {folder}")
    if authority:
        say(f"authority for {', '.join(made.trust_store.hosts)}; certificate valid until {ends(made.trust_store.me)}")
    else:
        write_request(made, out)
    say(f"fingerprint  {made.trust_store.me.fingerprint}")


@app.command()
def request(folder: FolderArgument, out: OutOption = Path()) -> None:
    """Write a station's request again."""
    write_request(KeyFolder(folder), out)


@app.command()
def enrol(
    folder: FolderArgument,
    enrolment_file: Annotated[Path, typer.Argument(help="At a coordinator a station's request; at a station its welcome.")],
    yes: YesOption = False,
    fingerprint: FingerprintOption = "",
    out: OutOption = Path(),
) -> None:
    """Put a station on the roster and write its welcome; or take a welcome in."""
    holder, raw = KeyFolder(folder), read(enrolment_file)
    if holder.is_authority:
        enrol_station(holder, Request.from_bytes(raw), yes, fingerprint, out)
    else:
        enrol_coordinator(holder, Welcome.from_bytes(raw), yes, fingerprint)


@app.command()
def welcome(
    folder: FolderArgument,
    station: Annotated[list[str] | None, typer.Argument(help="Stations; all by default.")] = None,
    out: OutOption = Path(),
) -> None:
    """Write welcomes again, as the roster is now."""
    write_welcomes(KeyFolder(folder), station or [], out)


@app.command()
def rotate(
    folder: FolderArgument,
    identity: Annotated[
        bool, typer.Option("--identity", help="Of a coordinator: replace its identity too, not only the TLS certificate.")
    ] = False,
    host: HostOption = None,
    out: OutOption = Path(),
) -> None:
    """Replace keys. A station writes a request and goes on with the old ones until its welcome is in."""
    holder = KeyFolder(folder)
    if not holder.is_authority and (identity or host):
        raise KeyInvalid(
            f"{holder.name!r} is a station: --identity and --host are for coordinators.",
            remedy="A station replaces all its keys: leave them out.",
            asked=False,
        )
    enrolment.rotate(holder, identity=identity or not holder.is_authority, hosts=host or ())
    if holder.is_authority:
        what = "identity, agreement key and certificate" if identity else "certificate"
        say(f"{holder.name}: new {what}, valid until {ends(holder.trust_store.me)}")
        say(f"fingerprint  {holder.trust_store.me.fingerprint}")
        write_welcomes(holder, [], out)
    else:
        write_request(holder, out)
        say("The old keys go on until the welcome is in.")


@app.command()
def revoke(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(help="Of a station; at a station, of its coordinator.")],
    reason: Annotated[str, typer.Option(help="Why, for those who read the list later.")],
) -> None:
    """Take a name off the roster, at once and for good."""
    enrolment.revoke(KeyFolder(folder), name, reason)
    say(f"{name}: revoked. Its letters and connections are refused from now on.")


@app.command(name="list")
def list_(
    folder: FolderArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print the roster as JSON.")] = False,
) -> None:
    """List whose keys are held and trusted, until when, and who was revoked."""
    holder = KeyFolder(folder)
    trust_store = holder.trust_store
    if as_json:
        rows = [
            {key: value for key, value in entry.to_json().items() if key != "pem"}
            for entry in (trust_store.me, *trust_store.entries)
        ]
        typer.echo(json.dumps({"name": holder.name, "edition": trust_store.edition, "cards": rows}, indent=1))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "fingerprint", "since", "valid until", "revoked"):
        table.add_column(column, overflow="fold")
    for entry in (trust_store.me, *trust_store.entries):
        name = f"{entry.public_identity.name} (this {'coordinator' if holder.is_authority else 'station'})" * (
            entry is trust_store.me
        )
        gone = f"{entry.revoked}: {entry.reason}" * bool(entry.revoked)
        row = (name or entry.public_identity.name, entry.fingerprint, entry.since, ends(entry), gone)
        table.add_row(*map(escape, row))
    console.print(Fits(table))
    if trust_store.pending:
        say("New keys wait for a welcome; the old ones are in use.")
    elif not trust_store.authority:
        say("Not enrolled yet: send the request, and enrol the welcome.")


def enrol_station(holder: KeyFolder, enrolment_file: Request, yes: bool, told: str, out: Path) -> None:
    """Review a request, have it confirmed where it is new, and welcome the station."""
    standing = enrolment.review(holder, enrolment_file)
    name = enrolment_file.public_identity.name
    say(f"{name}: {standing}\nfingerprint  {enrolment_file.fingerprint}")
    confirm(enrolment_file.fingerprint, told, yes or standing != "new", f"Has {name} told you this fingerprint by telephone?")
    before = holder.trust_store.entry(name)
    raw = enrolment.enrol(holder, enrolment_file)
    if standing == "rotation" and before is not None:
        say(f"signed by its old keys too, {before.fingerprint}, which are retired")
    say(f"{name} is on the roster of {holder.name}.")
    write(out / f"{name}.welcome", raw, "Send it to the station.")


def enrol_coordinator(holder: KeyFolder, enrolment_file: Welcome, yes: bool, told: str) -> None:
    """Review a welcome, have it confirmed where the coordinator is new, and take it in."""
    standing = enrolment.review_welcome(holder, enrolment_file)
    name = enrolment_file.coordinator.name
    say(f"coordinator {name}: {standing}\nfingerprint  {enrolment_file.fingerprint}")
    confirm(enrolment_file.fingerprint, told, yes or standing == "known", f"Has {name} told you this fingerprint by telephone?")
    enrolment.accept(holder, enrolment_file)
    say(f"{holder.name} trusts {name}; its certificate is valid until {ends(holder.trust_store.me)}.")
    say(f"stations on the roster: {', '.join(sorted(enrolment_file.stations))}")


def confirm(fingerprint: str, told: str, agreed: bool, question: str) -> None:
    """Go on if a fingerprint is the one that was told, or a person says so."""
    if told:
        if re.sub(r"[\s:]", "", told).upper() != fingerprint.replace(" ", ""):
            raise KeyInvalid(
                f"the fingerprint is {fingerprint}, not {told!r}.",
                remedy="Nothing was changed. Ask again by telephone; if it still differs, the file was replaced on its way.",
                asked=False,
            )
    elif not agreed and not typer.confirm(question):
        say("Nothing was changed.")
        raise typer.Exit(1)


def write_request(holder: KeyFolder, out: Path) -> None:
    """Write a station's request."""
    write(out / f"{holder.name}.request", enrolment.ask(holder), "Send it to the coordinator.")


def write_welcomes(holder: KeyFolder, names: list[str], out: Path) -> None:
    """Write the welcomes of some stations, or of all."""
    for name in names or sorted(holder.public_identities):
        write(out / f"{name}.welcome", enrolment.welcome(holder, name), "Send it to the station.")


def write(path: Path, raw: bytes, then: str) -> None:
    """Write a file that is to be sent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}.", remedy="Choose another folder with --out.", asked=False) from None
    say(f"wrote {path}  {then}")


def read(path: Path) -> bytes:
    """Return a file that was sent, if it is not longer than any enrolment file."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise MissingData(f"{path}: {error.strerror}.", remedy="Name the file that was sent.") from None


def ends(entry: TrustStoreEntry) -> str:
    """Until when a certificate is valid, in words."""
    if not entry.certificate:
        return ""
    end = certificates.valid_until(entry.certificate)
    days = (end - datetime.now(UTC)).days
    return f"{end:%Y-%m-%d}" + (", expired" if days < 0 else f", in {days} days" if days < SOON else "")


def say(line: str) -> None:
    """Print a line as it is."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)
