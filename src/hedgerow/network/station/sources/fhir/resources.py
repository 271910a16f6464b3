"""Files into resources, and references into the patients that they mean.

A resource is known by the `fullUrl` of its bundle entry, or else by type and id. A reference is resolved as the specification
says: an absolute one by `fullUrl`; a relative one against the server that the referring entry came from; and where no server is
named, by type and id. A reference that could mean two patients is refused. Versions in a reference are ignored.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import SourceUnreadable

from .values import Malformed, Resource, listed, mapped

READ = ("Patient", "Observation", "Condition")
BUNDLES = ("collection", "searchset", "document", "transaction", "batch", "message")
RESTFUL = re.compile(r"(https?://.+/)([A-Za-z]+/[A-Za-z0-9.\-]{1,64})")
VERSION = re.compile(r"/_history/[^/]*$")
LINES = (".ndjson", ".jsonl")


@dataclass(frozen=True)
class FhirEntry:
    """A resource, and where it is: its full address without version, or None."""

    resource: Resource
    url: str | None = None

    @property
    def kind(self) -> str:
        return str(self.resource.get("resourceType", ""))

    @property
    def tail(self) -> str | None:
        """Type and id, such as Patient/7."""
        found = self.resource.get("id")
        return f"{self.kind}/{found}" if found else None

    @property
    def base(self) -> str | None:
        """The server of a resource with a web address."""
        found = RESTFUL.fullmatch(self.url or "")
        return found[1] if found else None


def entries_of(document: Any, place: str, url: str | None = None) -> Iterator[FhirEntry]:
    """Return the patients, observations and conditions of a document: one resource, or a bundle.

    Raises
    ------
    SourceUnreadable (HR-614)
        It is no resource; a bundle of versions; or a server says that it failed. `place` names the document.
    """
    try:
        resource = mapped(document)
        kind = resource.get("resourceType")
        if not isinstance(kind, str):
            raise Malformed("resourceType")
        if kind == "OperationOutcome":
            _refuse_failure(resource, place)
        if kind in READ:
            yield FhirEntry(resource, unversioned(url))
        if kind != "Bundle":
            return
        if resource.get("type") not in BUNDLES:
            raise SourceUnreadable(
                f"{place} is a bundle of type {str(resource.get('type'))[:20]!r}.", remedy=f"Give one of {', '.join(BUNDLES)}."
            )
        for entry in map(mapped, listed(resource.get("entry"))):
            held, full = entry.get("resource"), entry.get("fullUrl")
            if held is not None and mapped(entry.get("request")).get("method") != "DELETE":
                yield from entries_of(held, place, full if isinstance(full, str) else None)
    except Malformed as cause:
        raise malformed(cause, place) from None


def read_files(folder: Path, names: tuple[str, ...]) -> Iterator[FhirEntry]:
    """Return the resources of files, in the order of names; a pattern such as `*.ndjson` stands for its files by name.

    Raises
    ------
    SourceUnreadable (HR-614)
        A file is not there, or is no JSON.
    """
    for name in names:
        for path in _matching(folder, name):
            yield from _read(path)


def unversioned(url: str | None) -> str | None:
    """Return an address or reference without the version at its end."""
    return None if url is None else VERSION.sub("", url)


def malformed(cause: Malformed, place: str) -> SourceUnreadable:
    """Return the error of an element that the specification does not allow."""
    return SourceUnreadable(f"{place}: a resource has {cause} that FHIR R4 does not allow.", remedy="Validate the resources.")


def parse(text: bytes | str, place: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise SourceUnreadable(
            f"{place} is no JSON.", remedy="Check that the file or answer is whole, and that it is FHIR JSON."
        ) from None


def _read(path: Path) -> Iterator[FhirEntry]:
    plain = path.name.removesuffix(".gz")
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            if not plain.endswith(LINES):
                yield from entries_of(parse(file.read(), path.name), path.name)
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    place = f"{path.name}, line {number}"
                    yield from entries_of(parse(line, place), place)
    except (OSError, EOFError, zlib.error) as cause:
        raise SourceUnreadable(f"{path.name} cannot be read: {cause}.", remedy="Check that it is whole and readable.") from None


def _matching(folder: Path, name: str) -> list[Path]:
    if (folder / name).is_file():
        return [folder / name]
    parent, pattern = (folder / name).parent, Path(name).name
    found = sorted(path for path in parent.glob(pattern) if path.is_file()) if set(pattern) & set("*?[") else []
    if not found:
        raise SourceUnreadable(f"no file {name!r}.", remedy="Check data.path in station.toml.")
    return found


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _refuse_failure(outcome: Resource, place: str) -> None:
    codes = [
        str(mapped(issue).get("code"))
        for issue in listed(outcome.get("issue"))
        if mapped(issue).get("severity") in ("fatal", "error")
    ]
    if codes:
        raise SourceUnreadable(f"{place}: the server says {', '.join(codes)[:80]}.", remedy="Try the search by hand.")
