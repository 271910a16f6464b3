"""Rows of small pictures, grey or in colour, with captions: truth beside what an attack made of it.

Pictures are PNG files inside the page, written here by `zlib` alone, so that a page stays one file without scripts.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from hedgerow.errors import StudyInvalid

from .markup import Html, tag

if TYPE_CHECKING:
    import numpy

MOST_PIXELS = 1 << 16
"""Of one picture."""


@dataclass(frozen=True)
class Picture:
    """A small picture.

    Parameters
    ----------
    width, height : int
    channels : {1, 3}
        Grey, or red, green and blue.
    pixels : str
        The bytes of all rows, from the top, compressed by zlib, in base 64.
    caption : str
        Below it; a few letters.
    words : str
        What it shows, for who cannot see it.
    """

    width: int
    height: int
    channels: int
    pixels: str
    caption: str = ""
    words: str = ""

    def __post_init__(self) -> None:
        sizes = (self.width, self.height, self.channels)
        whole = all(isinstance(one, int) and not isinstance(one, bool) and one >= 1 for one in sizes)
        if not whole or self.channels not in (1, 3) or self.width * self.height > MOST_PIXELS or not self._full:
            raise StudyInvalid(
                f"a picture of {self.width} x {self.height} with {self.channels} channels, or not as many bytes.",
                remedy=f"Give one byte for each pixel and channel, 1 or 3 channels, and at most {MOST_PIXELS} pixels.",
            )

    @classmethod
    def of(cls, values: Any, caption: str = "", words: str = "", *, low: float = 0.0, high: float = 1.0) -> Self:
        """A picture of numbers from `low` (black) to `high` (white); others are cut, and NaN is black.

        Parameters
        ----------
        values : array of shape (height, width), (3, height, width) or (height, width, 3)
        """
        import numpy as np

        given: numpy.ndarray = np.asarray(values, float)
        if given.ndim == 3 and given.shape[0] == 3 and given.shape[2] != 3:
            given = np.moveaxis(given, 0, -1)
        if given.ndim not in (2, 3) or (given.ndim == 3 and given.shape[2] != 3) or not -math.inf < low < high < math.inf:
            raise StudyInvalid(
                f"numbers of shape {given.shape} from {low:g} to {high:g} are no picture.",
                remedy="Give (height, width) or (3, height, width), and a finite high above a finite low.",
            )
        grey = np.rint(255 * np.clip((np.nan_to_num(given, nan=low) - low) / (high - low), 0, 1)).astype(np.uint8)
        packed = base64.b64encode(zlib.compress(grey.tobytes(), 9)).decode()
        return cls(given.shape[1], given.shape[0], 1 if given.ndim == 2 else 3, packed, caption, words)

    @property
    def _full(self) -> bool:
        return isinstance(self.pixels, str) and len(self.raw) == self.width * self.height * self.channels

    @property
    def raw(self) -> bytes:
        """Rows from the top, channels of a pixel side by side."""
        try:
            return zlib.decompressobj().decompress(base64.b64decode(self.pixels, validate=True), 3 * MOST_PIXELS + 1)
        except (ValueError, zlib.error):
            return b""

    @property
    def png(self) -> bytes:
        """As a PNG file (ISO/IEC 15948): header, rows without a filter, end."""
        length, raw = self.width * self.channels, self.raw
        rows = b"".join(b"\0" + raw[i : i + length] for i in range(0, len(raw), length))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 0 if self.channels == 1 else 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


@dataclass(frozen=True)
class PictureRow:
    """Pictures of one thing.

    Parameters
    ----------
    name : str
    said : str
        A line below the name, such as how many records are behind.
    groups : tuple of tuple of Picture
        Those of a group stand close together, such as truth and reconstruction.
    """

    name: str
    said: str
    groups: tuple[tuple[Picture, ...], ...]


@dataclass(frozen=True)
class Pictures:
    """Rows of small pictures.

    Parameters
    ----------
    title : str
    rows : tuple of PictureRow
    note : str
    """

    title: str
    rows: tuple[PictureRow, ...]
    note: str = ""

    @classmethod
    def from_plain(cls, data: Any) -> Self:
        """Of what JSON gives back.

        Raises
        ------
        StudyInvalid (HR-101)
            It is not what pictures are written as.
        """
        try:
            rows = tuple(
                PictureRow(row["name"], row["said"], tuple(tuple(Picture(**one) for one in group) for group in row["groups"]))
                for row in data["rows"]
            )
            return cls(data["title"], rows, data["note"])
        except (KeyError, TypeError) as error:
            raise StudyInvalid(
                f"rows of pictures cannot be read: {type(error).__name__} {error}.",
                remedy="Take the file as a run wrote it: a title, rows with name, said and groups, and a note.",
            ) from error


def pictures_rows(given: Pictures) -> Html:
    """Rows below each other, each with its name, its line and its groups."""
    return tag("div", *map(_row, given.rows), class_="pictures")


def _row(row: PictureRow) -> Html:
    groups = (tag("div", *(_figure(one, row.name) for one in group), class_="group") for group in row.groups)
    return tag(
        "div",
        tag("div", tag("h3", row.name), tag("p", row.said, class_="note"), class_="told"),
        tag("div", *groups, class_="groups"),
        class_="row",
    )


def _figure(one: Picture, name: str) -> Html:
    address = f"data:image/png;base64,{base64.b64encode(one.png).decode()}"
    image = tag("img", src=address, alt=f"{name}: {one.words or one.caption}", width=str(one.width), height=str(one.height))
    return tag("figure", image, tag("figcaption", one.caption) if one.caption else None)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


STYLE = """
.pictures .row { display: grid; grid-template-columns: minmax(10rem, 15rem) 1fr; gap: 0.4rem 1.5rem; padding: 0.8rem 0;
  border-bottom: 1px solid var(--hair); align-items: center; }
.pictures .row:first-child { border-top: 1px solid var(--hair); }
.pictures h3 { font: 600 0.9375rem/1.35 var(--sans); }
.pictures .told .note { margin: 0.15rem 0 0; }
.pictures .groups { display: flex; flex-wrap: wrap; gap: 0.7rem 1.1rem; }
.pictures .group { display: flex; gap: 2px; }
.pictures figure { width: 3.5rem; }
.pictures img { display: block; width: 3.5rem; height: auto; image-rendering: pixelated; outline: 1px solid var(--hair); }
.pictures figcaption { font: 0.75rem/1.4 var(--sans); color: var(--soft); text-align: center; margin-top: 0.15rem;
  white-space: nowrap; }
@media screen and (max-width: 40rem) { .pictures .row { grid-template-columns: 1fr; } }
@media print { .pictures .row { break-inside: avoid; } }
"""
"""Style of these rows on a page."""

CELL_STYLE = STYLE.replace("\n.pictures", "\n.hedgerow .pictures").replace("{ .pictures", "{ .hedgerow .pictures")
"""The same in a cell of a notebook, where it reaches nothing else."""
