"""Sets in the archives that their publishers hand out, read without unpacking them to the disk and without running them.

CIFAR-10 for Python is published as pickles. None is unpickled here: its instructions are listed, and the two values that
matter, a string of pixels and a list of labels, are taken from the list.
"""

from __future__ import annotations

import io
import pickletools
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .entry import Parts
from .loaders import Columns, refuse_unreadable

BATCHES = tuple(f"data_batch_{k}" for k in range(1, 6))
_PIXELS = 3 * 32 * 32
_MOST_MEMBER = 100_000_000
"""Bytes of one member of an archive, unpacked: the largest of these sets has 66 million."""


def cifar_binary(archive: Path) -> Parts:
    """Read CIFAR-10 as published for C: batches of records, each a label and 3 072 pixels, in a gzipped tar file."""
    return _cifar(archive, "cifar-10-batches-bin", ".bin", _from_records)


def cifar_python(archive: Path) -> Parts:
    """Read CIFAR-10 as published for Python: batches of pixels and labels, in a gzipped tar file."""
    return _cifar(archive, "cifar-10-batches-py", "", _from_instructions)


def activity(archive: Path) -> Parts:
    """Read UCI's zip of Human Activity Recognition Using Smartphones: windows of nine signals, of 21 and of nine people.

    Signals are body acceleration, angular velocity and gravity, x, y, z each; gravity is the total acceleration that is
    published less the body's. Activities count from 0.
    """

    def parts() -> Parts:
        with zipfile.ZipFile(archive) as outer:
            inner = next((name for name in outer.namelist() if name.endswith("UCI HAR Dataset.zip")), None)
            if inner is None:
                return _activity_part(outer, "train"), _activity_part(outer, "test")
            with zipfile.ZipFile(io.BytesIO(_unzipped(outer, inner))) as found:
                return _activity_part(found, "train"), _activity_part(found, "test")

    return refuse_unreadable(archive, parts)


def _cifar(archive: Path, folder: str, suffix: str, read: Callable[[bytes], tuple[np.ndarray, np.ndarray]]) -> Parts:
    def part(found: dict[str, bytes], names: tuple[str, ...]) -> Columns:
        batches = [read(found[f"{folder}/{name}{suffix}"]) for name in names]
        image = np.concatenate([pixels for pixels, _ in batches]).reshape(-1, 3, 32, 32)
        return {"image": image, "object": np.concatenate([labels for _, labels in batches]).astype(np.int16)}

    def parts() -> Parts:
        wanted = {f"{folder}/{name}{suffix}" for name in (*BATCHES, "test_batch")}
        found: dict[str, bytes] = {}
        with tarfile.open(archive) as members:
            for member in members:
                if member.name.removeprefix("./") in wanted and member.isfile() and member.size <= _MOST_MEMBER:
                    found[member.name.removeprefix("./")] = members.extractfile(member).read()  # type: ignore[union-attr]
        if absent := sorted(wanted - found.keys()):
            raise ValueError(f"it lacks {', '.join(absent)}")
        return part(found, BATCHES), part(found, ("test_batch",))

    return refuse_unreadable(archive, parts)


def _from_records(batch: bytes) -> tuple[np.ndarray, np.ndarray]:
    records = np.frombuffer(batch, np.uint8).reshape(-1, 1 + _PIXELS)
    return records[:, 1:], records[:, 0]


def _from_instructions(batch: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Take pixels and labels from the instructions of a pickle, which are listed and not followed."""
    key, pixels, labels = "", b"", []
    for instruction, given, _ in pickletools.genops(batch):
        if isinstance(given, str | bytes):
            text = given if isinstance(given, str) else given.decode("latin-1")
            if text in ("data", "labels", "filenames", "batch_label"):
                key = text
            elif key == "data" and len(text) > len(pixels):
                pixels = text.encode("latin-1")
        elif key == "labels" and instruction.name in ("BININT1", "BININT2", "BININT", "INT", "LONG", "LONG1"):
            labels.append(given)
    found = np.frombuffer(pixels, np.uint8).reshape(-1, _PIXELS)
    if len(found) != len(labels) or not len(found):
        raise ValueError(f"a batch has {len(found)} images and {len(labels)} labels")
    return found, np.array(labels)


def _activity_part(archive: zipfile.ZipFile, part: str) -> Columns:
    def table(name: str) -> np.ndarray:
        return np.fromstring(_unzipped(archive, f"UCI HAR Dataset/{part}/{name}_{part}.txt").decode("ascii"), sep=" ")

    def signal(name: str) -> np.ndarray:
        return table(f"Inertial Signals/{name}").reshape(-1, 128).astype(np.float32)

    axes = "xyz"
    body, turning, whole = ([signal(f"{kind}_{axis}") for axis in axes] for kind in ("body_acc", "body_gyro", "total_acc"))
    gravity = [total - own for total, own in zip(whole, body, strict=True)]
    subject = table("subject").astype(np.int16)
    return {
        "signals": np.stack([*body, *turning, *gravity], axis=1),
        "activity": table("y").astype(np.int16) - 1,
        "subject": subject.astype(str),
    }


def _unzipped(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        member = archive.getinfo(name)
    except KeyError:
        raise ValueError(f"it lacks {name}") from None
    if member.file_size > _MOST_MEMBER:
        raise ValueError(f"its member {name} has {member.file_size:,} bytes, more than any of this set")
    return archive.read(member)
