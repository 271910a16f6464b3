"""Sets by name: archives as publishers hand them out are read whole, from a folder or downloaded, and nothing in them runs."""

import io
import struct
import tarfile
import zipfile
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.data import download, load
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.errors import ChecksumMismatch, MissingData, SchemaInvalid

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")


def batches(n=3):
    """Images and labels of each batch, in order."""
    rng = np.random.default_rng(0)
    return {name: (rng.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8), rng.integers(0, 10, n)) for name in BATCHES}


def records(images, labels):
    return b"".join(bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))


def short(text):
    return b"U" + bytes([len(text)]) + text.encode()


def python_2(images, labels, first=b""):
    """A batch as Python 2 pickled it: a dictionary of a name, labels, pixels in a NumPy array, and file names."""
    n, pixels = len(images), images.tobytes()
    whole = b"".join(b"K" + bytes([label]) for label in labels)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85" + short("b") + b"\x87Rq\x09(K\x01"
        b"M"
        + struct.pack("<H", n)
        + b"M\x00\x0c\x86cnumpy\ndtype\nq\x0a"
        + short("u1")
        + b"K\x00K\x01\x87Rq\x0b(K\x03"
        + short("|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<i", len(pixels))
        + pixels
        + b"tb"
    )
    names = b"]q\x0e(" + b"".join(short(f"frog_{k}.png") for k in range(n)) + b"e"
    said = short("batch_label") + b"q\x02" + short("training batch 1 of 5") + b"q\x03"
    return (
        b"\x80\x02"
        + first
        + b"}q\x01("
        + said
        + short("labels")
        + b"q\x04]q\x05("
        + whole
        + b"e"
        + short("data")
        + array
        + short("filenames")
        + names
        + b"u."
    )


def tar_of(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def assert_cifar(table, made):
    train = [made[name] for name in BATCHES[:5]]
    assert_array_equal(table["image"], np.concatenate([images for images, _ in train]))
    assert_array_equal(table["object"], np.concatenate([labels for _, labels in train]))
    assert_array_equal(table.test["image"], made["test_batch"][0])
    assert_array_equal(table.test["object"], made["test_batch"][1])


@pytest.mark.parametrize("kind", ["binary", "python"])
def test_cifar10_is_read_whole_from_either_archive(tmp_path, kind):
    made = batches()
    if kind == "binary":
        members = {f"cifar-10-batches-bin/{name}.bin": records(*batch) for name, batch in made.items()}
    else:
        members = {f"cifar-10-batches-py/{name}": python_2(*batch) for name, batch in made.items()}
    tar_of(tmp_path / f"cifar-10-{kind}.tar.gz", members)
    table = load("cifar10", data_dir=tmp_path)
    assert_cifar(table, made)
    assert "subset" not in table.source


def test_a_batch_that_would_run_something_is_read_and_runs_nothing(tmp_path):
    made, mark = batches(), tmp_path / "was here"
    command = b"cos\nsystem\n(" + short(f"touch '{mark}'") + b"tR0"
    members = {f"cifar-10-batches-py/{name}": python_2(*batch, first=command) for name, batch in made.items()}
    tar_of(tmp_path / "cifar-10-python.tar.gz", members)
    assert_cifar(load("cifar10", data_dir=tmp_path), made)
    assert not mark.exists()


def test_an_archive_that_is_damaged_or_lacks_a_part_says_so(tmp_path):
    file = tmp_path / "cifar-10-binary.tar.gz"
    tar_of(file, {"cifar-10-batches-bin/data_batch_1.bin": b""})
    with pytest.raises(SchemaInvalid, match=r"it lacks cifar-10-batches-bin/data_batch_2\.bin"):
        load("cifar10", data_dir=tmp_path)
    file.write_bytes(b"no archive at all")
    with pytest.raises(SchemaInvalid, match="cannot be read"):
        load("cifar10", data_dir=tmp_path)


def test_cifar10_is_downloaded_once_and_checked(tmp_path, monkeypatch):
    made = batches()
    members = {f"cifar-10-batches-bin/{name}.bin": records(*batch) for name, batch in made.items()}
    packed = tar_of(tmp_path / "there", members).read_bytes()
    asked = []
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    monkeypatch.setenv("HEDGEROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "_download", lambda address: asked.append(address) or packed)
    with pytest.raises(ChecksumMismatch):
        load("cifar10")
    entry = CATALOGUE["cifar10"]
    published = replace(entry.published[0], sha256=sha256(packed).hexdigest())
    monkeypatch.setitem(CATALOGUE, "cifar10", replace(entry, published=(published,)))
    assert_cifar(load("cifar10"), made)
    assert_cifar(load("cifar10"), made)
    assert asked == ["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"] * 2


def activity_members():
    rng, files = np.random.default_rng(1), {}
    for part, n in (("train", 3), ("test", 2)):
        for kind in ("body_acc", "body_gyro", "total_acc"):
            for axis in "xyz":
                values = rng.normal(size=(n, 128)).round(6)
                text = "\n".join("  " + "  ".join(f"{value: .7e}" for value in row) for row in values) + "\n"
                files[f"UCI HAR Dataset/{part}/Inertial Signals/{kind}_{axis}_{part}.txt"] = text
        files[f"UCI HAR Dataset/{part}/y_{part}.txt"] = "\n".join(map(str, rng.integers(1, 7, n))) + "\n"
        files[f"UCI HAR Dataset/{part}/subject_{part}.txt"] = (
            "\n".join(map(str, [1, 3, 5] if part == "train" else [2, 4])) + "\n"
        )
    return files


def zip_of(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_activity_archive_is_read_as_published(tmp_path, wrapped):
    files = activity_members()
    inner = zip_of(files)
    if wrapped:
        whole = zip_of({"UCI HAR Dataset.names": "", "UCI HAR Dataset.zip": inner})
        (tmp_path / "human+activity+recognition+using+smartphones.zip").write_bytes(whole)
    else:
        (tmp_path / "UCI HAR Dataset.zip").write_bytes(inner)
    har = load("har", data_dir=tmp_path)

    def table(part, name):
        return np.loadtxt(io.StringIO(files[f"UCI HAR Dataset/{part}/{name}_{part}.txt"]))

    total, body = (table("train", f"Inertial Signals/{kind}_y") for kind in ("total_acc", "body_acc"))
    assert har["signals"].shape == (3, 9, 128)
    assert_allclose(har["signals"][:, 1], body, atol=1e-6)
    assert_allclose(har["signals"][:, 5], table("train", "Inertial Signals/body_gyro_z"), atol=1e-6)
    assert_allclose(har["signals"][:, 7], total - body, atol=1e-6)
    assert_array_equal(har["activity"], table("train", "y") - 1)
    assert [har.schema["subject"].levels[code] for code in har.test["subject"]] == ["2", "4"]


def test_all_card_payments_are_read_as_published(tmp_path):
    header = ["Time", *(f"V{k}" for k in range(1, 29)), "Amount", "Class"]
    row = ["0", *["-1.5"] * 28, "149.62", '"1"']
    (tmp_path / "creditcard.csv").write_text(",".join(f'"{name}"' for name in header) + "\n" + ",".join(row) + "\n")
    table = load("credit_card", data_dir=tmp_path)
    assert (table["fraud"][0], table["v28"][0], table["amount"][0]) == (1, -1.5, 149.62)


@pytest.mark.parametrize("name", ["cifar10", "har", "credit_card"])
def test_a_set_that_is_absent_says_where_it_comes_from(tmp_path, name):
    with pytest.raises(MissingData) as refusal:
        load(name, data_dir=tmp_path)
    (published,) = CATALOGUE[name].published
    assert published.address in refusal.value.remedy
    assert all(file in refusal.value.remedy for form in (CATALOGUE[name], *CATALOGUE[name].also) for file in form.files)
