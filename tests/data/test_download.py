"""Downloads: verified, whole or not at all, once, and never when a folder was named. No test leaves this machine."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from numpy.testing import assert_array_equal

from hedgerow.data import download, load
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.data.download import Published, cache_folder, fetch
from hedgerow.errors import CannotWrite, ChecksumMismatch, MissingData

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
CONTENT = b"30,64,1,1\n31,65,0,2\n"
DIGEST = sha256(CONTENT).hexdigest()
DOWNLOADABLE = sorted(name for name, entry in CATALOGUE.items() if entry.published)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no data folder."""
    monkeypatch.setenv("HEDGEROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def publish(tmp_path):
    """Put bytes at a file address."""

    def publish(content: bytes, digest: str = DIGEST) -> Published:
        (tmp_path / "published").write_bytes(content)
        return Published((tmp_path / "published").as_uri(), digest)

    return publish


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a folder by http; return the address, the folder and the list of requests."""
    requests = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    (tmp_path / "site").mkdir()
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path / "site")) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path / "site", requests
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_kept_unpacked_whichever_way_it_is_published(pack, publish, cache):
    path = fetch(publish(pack(CONTENT)), cache / "set" / "file")
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_downloaded_once(server, cache):
    address, site, requests = server
    (site / "file.gz").write_bytes(gzip.compress(CONTENT))
    published = Published(f"{address}/file.gz", DIGEST)
    assert fetch(published, cache / "file") == fetch(published, cache / "file")
    assert requests == ["/file.gz"]


def test_a_damaged_file_in_the_cache_is_downloaded_again(publish, cache):
    cache.mkdir()
    (cache / "file").write_bytes(CONTENT[:-1])
    assert fetch(publish(CONTENT), cache / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "content",
    [
        b"<html>Please log in</html>",
        gzip.compress(b"another file", mtime=0),
        gzip.compress(CONTENT, mtime=0)[:-15],
        b"\x1f\x8bdamaged",
        b"",
    ],
    ids=["page", "another", "cut short", "damaged", "empty"],
)
def test_another_file_is_refused_and_nothing_is_left(content, publish, cache):
    published = publish(content)
    with pytest.raises(ChecksumMismatch, match=f"{published.address} .* {DIGEST} was expected, [0-9a-f]{{64}} found"):
        fetch(published, cache / "file")
    assert not cache.exists()


def test_a_file_that_is_too_large_is_cut_off_and_refused(publish, cache, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", len(CONTENT) - 1)
    for packed in (CONTENT, gzip.compress(CONTENT)):
        with pytest.raises(ChecksumMismatch):
            fetch(publish(packed), cache / "file")


def test_what_cannot_be_downloaded_says_why_and_what_else_to_do(server, cache, tmp_path):
    for address, reason in (
        (f"{server[0]}/absent.gz", "404"),
        ((tmp_path / "absent.gz").as_uri(), "No such file"),
        ("http://127.0.0.1:9/absent.gz", "refused"),
    ):
        with pytest.raises(MissingData, match=f"{address} cannot be downloaded: .*{reason}") as refusal:
            fetch(Published(address, DIGEST), cache / "file")
        assert "--data-dir" in refusal.value.remedy
    assert not cache.exists()


def test_a_cache_folder_that_cannot_be_written_is_named(publish, cache):
    cache.write_text("a file is in the way")
    with pytest.raises(CannotWrite, match="HR-104") as refusal:
        fetch(publish(CONTENT), cache / "set" / "file")
    assert not refusal.value.asked
    assert "HEDGEROW_CACHE" in refusal.value.remedy


def test_the_cache_folder_is_the_named_one_or_the_users(monkeypatch, tmp_path, cache):
    assert cache_folder() == cache
    monkeypatch.delenv("HEDGEROW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "hedgerow"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "hedgerow"


def test_a_set_is_downloaded_only_when_no_folder_is_named(publish, cache, monkeypatch, tmp_path):
    monkeypatch.setitem(CATALOGUE, "haberman", replace(CATALOGUE["haberman"], published=(publish(CONTENT),)))
    with pytest.raises(MissingData, match=f"not found in {tmp_path}") as refusal:
        load("haberman", data_dir=tmp_path)
    assert "Name no folder" in refusal.value.remedy
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="not found in"):
        load("haberman")
    assert not cache.exists()
    monkeypatch.delenv("HEDGEROW_DATA")
    assert_array_equal(load("haberman")["died_within_5y"], [0, 1])
    assert (cache / "tabular" / "haberman.csv").read_bytes() == CONTENT


def test_every_file_of_a_downloadable_set_is_published():
    assert DOWNLOADABLE == ["adult", "cifar10", "credit_card", "fashion_mnist", "haberman", "har", "mnist"]
    for name in DOWNLOADABLE:
        assert len(CATALOGUE[name].published) == len(CATALOGUE[name].files)


@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
@pytest.mark.parametrize(
    "name", [name if name == "haberman" else pytest.param(name, marks=pytest.mark.slow) for name in DOWNLOADABLE]
)
def test_a_mirror_of_the_published_files_passes_the_check(name, monkeypatch):
    entry = CATALOGUE[name]
    if not all((DATA / file).is_file() for file in entry.files):
        pytest.skip(f"the folder has no {', '.join(entry.files)}")
    mirror = [replace(there, address=(DATA / file).as_uri()) for there, file in zip(entry.published, entry.files, strict=True)]
    monkeypatch.setitem(CATALOGUE, name, replace(entry, published=tuple(mirror)))
    downloaded, named = load(name), load(name, data_dir=DATA)
    for column in entry.schema.names:
        assert_array_equal(downloaded[column], named[column])
