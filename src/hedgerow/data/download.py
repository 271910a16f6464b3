"""Files of catalogued data sets: downloaded once, checked, and kept in the cache folder.

Gzipped files are kept unpacked, and so are they checked: a file that its publisher packs again is still the same file. An
archive is kept as it is. What fails its check is never written.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from hedgerow.errors import CannotWrite, ChecksumMismatch, MissingData

TIMEOUT_S = 30
MAX_BYTES = 200_000_000  # no catalogued file is larger, packed or unpacked
_GZIP = 16 + zlib.MAX_WBITS
_ELSE = "or get it elsewhere, put it into a folder,\nand name that folder with --data-dir or HEDGEROW_DATA."


@dataclass(frozen=True)
class Published:
    """The address of a file, which may be gzipped there, and the checksum of its unpacked bytes, in hexadecimal.

    An `archive` is kept as it is, and the checksum is its own.
    """

    address: str
    sha256: str
    archive: bool = False


def cache_folder() -> Path:
    """Return the folder that HEDGEROW_CACHE names, else `hedgerow` in XDG_CACHE_HOME or ~/.cache."""
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return Path(os.environ.get("HEDGEROW_CACHE") or user_cache / "hedgerow").expanduser()


def fetch(published: Published, path: Path) -> Path:
    """Return `path`, which then holds the published file, unpacked; download it unless it does already.

    Raises
    ------
    MissingData (HR-402)
        It cannot be downloaded.
    ChecksumMismatch (HR-411)
        Another file is at its address now; nothing is written.
    CannotWrite (HR-104)
        The cache folder cannot be written to.
    """
    if path.is_file() and sha256(path.read_bytes()).hexdigest() == published.sha256:
        return path
    content = _download(published.address)
    content = content if published.archive else _unpacked(content)
    found = sha256(content).hexdigest()
    if found != published.sha256:
        raise ChecksumMismatch(
            f"{published.address} is not the catalogued file: sha256 {published.sha256} was expected, {found} found.",
            remedy=f"Try again, for it may have been cut short; {_ELSE}",
        )
    _write(path, content)
    return path


def _download(address: str) -> bytes:
    """Return what is at `address`; what is too large is cut off, and so fails its check."""
    try:
        with urlopen(address, timeout=TIMEOUT_S) as response:
            content: bytes = response.read(MAX_BYTES)
    except (OSError, HTTPException) as cause:
        raise MissingData(f"{address} cannot be downloaded: {cause}.", remedy=f"Check the connection, {_ELSE}") from cause
    return content


def _unpacked(content: bytes) -> bytes:
    """Return `content` without its gzip wrapper; what has none, or a damaged one, is returned as it is."""
    with suppress(zlib.error):
        return zlib.decompressobj(_GZIP).decompress(content, MAX_BYTES)
    return content


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step, so that no crash and no other process leaves a part of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise CannotWrite(
            f"{path}: {error.strerror}.",
            remedy="Make room, or name another cache folder with HEDGEROW_CACHE.",
            asked=False,
            says=False,
        ) from error
