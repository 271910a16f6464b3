"""Image and signal sets that are read from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .archives import activity, cifar_binary, cifar_python
from .download import Published
from .entry import CatalogueEntry, Form, Parts, binary, category, declare, integer, number
from .loaders import Columns, read_idx, read_npz

UCI_TEST_SUBJECTS = (2, 4, 9, 10, 12, 13, 18, 20, 24)
"""Volunteers whom the publisher of the activity data held out."""

_IDX_FILES = tuple(f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def _in_folder(folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in _IDX_FILES)


def _published(address: str, *checksums: str) -> tuple[Published, ...]:
    return tuple(Published(f"{address}/{name}", checksum) for name, checksum in zip(_IDX_FILES, checksums, strict=True))


def _digits(train_images: Path, train_labels: Path, test_images: Path, test_labels: Path) -> Parts:
    train = {"image": read_idx(train_images), "digit": read_idx(train_labels)}
    return train, {"image": read_idx(test_images), "digit": read_idx(test_labels)}


def _garments(train_images: Path, train_labels: Path, test_images: Path, test_labels: Path) -> Parts:
    train = {"image": read_idx(train_images), "garment": read_idx(train_labels).astype(np.int16)}
    return train, {"image": read_idx(test_images), "garment": read_idx(test_labels).astype(np.int16)}


def _cifar(train: Path, test: Path) -> Parts:
    return _cifar_part(train), _cifar_part(test)


def _cifar_part(path: Path) -> Columns:
    file = read_npz(path)
    image = np.cumsum(np.cumsum(file["d"], axis=2, dtype=np.uint8), axis=3, dtype=np.uint8)
    image[:, 0] += image[:, 1]  # red and blue are stored as differences from green, modulo 256
    image[:, 2] += image[:, 1]
    return {"image": image, "object": file["y"].astype(np.int16)}


def _pneumonia(path: Path) -> Parts:
    file = read_npz(path)
    train = {"image": file["train_images"], "pneumonia": file["train_labels"].ravel()}
    return train, {"image": file["test_images"], "pneumonia": file["test_labels"].ravel()}


def _activity(path: Path) -> Parts:
    file = read_npz(path)
    steps = np.cumsum(file["hi"].astype(np.int16) * 256 + file["lo"], axis=2, dtype=np.int16)
    columns: dict[str, np.ndarray] = {
        "signals": (steps / 1000).astype(np.float32),
        "activity": file["y"].astype(np.int16),
        "subject": file["subject"],
    }
    held_out = np.isin(file["subject"], UCI_TEST_SUBJECTS)
    train = {name: values[~held_out] for name, values in columns.items()}
    return train, {name: values[held_out] for name, values in columns.items()}


_GARMENTS = "t-shirt trouser pullover dress coat sandal shirt sneaker bag ankle-boot"
_OBJECTS = "airplane automobile bird cat deer dog frog horse ship truck"
_ACTIVITIES = "walking upstairs downstairs sitting standing laying"

IMAGES = {
    "mnist": CatalogueEntry(
        "MNIST: 60000 images of handwritten digits, 10000 for testing, 28 x 28 pixels; Y. LeCun, C. Cortes and "
        "C. Burges; usually given as CC BY-SA 3.0.",
        declare(
            integer("image", 0, 255, shape=(28, 28)),
            category("digit", "0 1 2 3 4 5 6 7 8 9", role="target"),
        ),
        _digits,
        _in_folder("mnist"),
        _published(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    "fashion_mnist": CatalogueEntry(
        "Fashion-MNIST: 60000 images of garments in ten classes, 10000 for testing, 28 x 28 pixels; Zalando Research, "
        "MIT licence.",
        declare(integer("image", 0, 255, shape=(28, 28)), category("garment", _GARMENTS, role="target")),
        _garments,
        _in_folder("fashion_mnist"),
        _published(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    "cifar10": CatalogueEntry(
        "CIFAR-10: 50000 colour images in ten classes, 10000 for testing, 32 x 32 pixels; A. Krizhevsky, V. Nair and "
        "G. Hinton, University of Toronto; free for research with citation.",
        declare(
            integer("image", 0, 255, shape=(3, 32, 32), description="red, green and blue planes"),
            category("object", _OBJECTS, role="target"),
        ),
        cifar_binary,
        ("cifar10/cifar-10-binary.tar.gz",),
        (
            Published(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                archive=True,
            ),
        ),
        also=(
            Form("From its archive for Python.", cifar_python, ("cifar10/cifar-10-python.tar.gz",)),
            Form(
                "This is a subset of it: 20000 images for training, 4000 for testing.",
                _cifar,
                ("cifar10/cifar10_train20k.npz", "cifar10/cifar10_test4k.npz"),
            ),
        ),
    ),
    "pneumoniamnist": CatalogueEntry(
        "PneumoniaMNIST: 4708 chest X-rays of children, 624 for testing, 28 x 28 pixels (the 524 validation images are "
        "left out); MedMNIST v2, J. Yang et al. 2023, from Kermany et al. 2018; CC BY 4.0.",
        declare(integer("image", 0, 255, shape=(28, 28)), binary("pneumonia", role="target")),
        _pneumonia,
        ("pneumoniamnist/pneumoniamnist.npz",),
    ),
    "har": CatalogueEntry(
        "Human Activity Recognition Using Smartphones: 10299 windows of 128 samples of 30 volunteers, nine of them for "
        "testing; D. Anguita et al. 2013, UCI 240, CC BY 4.0 (original readme: no commercial use).",
        declare(
            number("signals", -10, 10, "g, rad/s", shape=(9, 128), description="body, rotation, gravity; x, y, z each"),
            category("activity", _ACTIVITIES, role="target"),
            category("subject", [str(subject) for subject in range(1, 31)], role="id"),
        ),
        activity,
        ("har/human+activity+recognition+using+smartphones.zip",),
        (
            Published(
                "https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",
                "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
                archive=True,
            ),
        ),
        also=(
            Form("From the archive inside.", activity, ("har/UCI HAR Dataset.zip",)),
            Form("Signals are rounded to 0.001, and windows are in another order.", _activity, ("har/ucihar_by_subject.npz",)),
        ),
    ),
}
