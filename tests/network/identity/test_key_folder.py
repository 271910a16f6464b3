"""Key folders: closed, whole, read again when they change."""

import json
import os
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from holders import enrolled, talks, unchanged

from hedgerow.crypto import certificates
from hedgerow.crypto.keys import Roster
from hedgerow.errors import CannotWrite, KeyInvalid, StationUnknown
from hedgerow.network.identity import enrolment
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.wire.envelope import disclose, enclose


def test_private_keys_are_in_a_closed_folder(hub):
    assert stat.S_IMODE(hub.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in hub.path.iterdir()} == {0o600}
    again = KeyFolder(hub.path)
    assert again.key_material.public_identity == hub.key_material.public_identity
    assert again.key_material.identity.private == hub.key_material.identity.private
    assert hub.key_material.identity.private.hex() in (hub.path / "private.json").read_text()
    assert hub.key_material.identity.private.hex() not in (hub.path / "roster.json").read_text() + repr(hub)


@pytest.mark.parametrize(("name", "mode"), [("", 0o750), ("", 0o701), ("private.json", 0o644)])
def test_a_folder_that_others_may_read_is_refused(hub, name, mode):
    (hub.path / name).chmod(mode)
    with pytest.raises(KeyInvalid, match=f"{mode:o}") as caught:
        KeyFolder(hub.path)
    assert f"chmod {600 if name else 700} {hub.path / name}" in caught.value.remedy


def test_keys_are_made_once_and_only_with_a_name_that_fits(hub, tmp_path):
    with pytest.raises(KeyInvalid, match="already"):
        KeyFolder.make(hub.path, "hub", authority=True)
    with pytest.raises(KeyInvalid, match="name"):
        KeyFolder.make(tmp_path / "x", "../x")
    with pytest.raises(KeyInvalid, match="no authority"):
        KeyFolder.make(tmp_path / "x", "x", hosts=["here"])
    with pytest.raises(KeyInvalid, match="neither a name"):
        KeyFolder.make(tmp_path / "x", "x", authority=True, hosts=["hö"])
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        KeyFolder.make(tmp_path / "file" / "keys", "x")
    with pytest.raises(KeyInvalid, match="no keys"):
        KeyFolder(tmp_path)


@pytest.mark.parametrize("spoilt", [b"", b"{}", b"[1]", b"\xff", b"[" * 100_000, b'{"hedgerow": 2}', b'{"hedgerow": 1}'])
@pytest.mark.parametrize("name", ["private.json", "roster.json"])
def test_a_damaged_file_is_refused(hub, name, spoilt):
    (hub.path / name).write_bytes(spoilt)
    with pytest.raises(KeyInvalid, match=name):
        KeyFolder(hub.path)


def test_a_folder_of_a_later_version_is_refused(hub):
    told = json.loads((hub.path / "roster.json").read_text())
    (hub.path / "roster.json").write_text(json.dumps({**told, "hedgerow": 2}))
    with pytest.raises(KeyInvalid, match="another version"):
        KeyFolder(hub.path)


def test_no_key_is_written_where_others_may_read(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(KeyInvalid, match="755"):
        KeyFolder.make(tmp_path / "open", "alpha")
    assert list((tmp_path / "open").iterdir()) == []


def test_an_enrolled_station_and_its_coordinator_trust_each_other(hub, alpha, beta):
    for station in (alpha, beta):
        enrolled(hub, station)
        assert talks(hub, station)
    assert set(hub.public_identities) == {"alpha", "beta"}
    assert alpha.public_identities == {"hub": hub.key_material.public_identity}
    assert hub.public_identities["alpha"] == alpha.key_material.public_identity
    assert (
        hub.roster == beta.roster == Roster({each.name: each.key_material.public_identity.identity for each in (alpha, beta)})
    )
    for holder in (hub, alpha):
        certificates.check_issued(holder.tls.certificate, holder.tls.authority, holder.name, key=holder.tls.key)
        assert certificates.fingerprint(holder.tls.certificate) == holder.key_material.public_identity.certificate
    assert certificates.hosts_of(hub.tls.certificate) == ("hub", "hub.example.org", "127.0.0.1")
    assert hub.admits("alpha", alpha.key_material.public_identity.certificate)
    assert not hub.admits("alpha", beta.key_material.public_identity.certificate)
    assert not hub.admits("gamma", beta.key_material.public_identity.certificate)
    assert not alpha.admits("alpha", b"")


def test_a_station_that_is_not_enrolled_has_no_certificate(alpha):
    with pytest.raises(KeyInvalid, match="no certificate yet"):
        alpha.tls  # noqa: B018
    assert dict(alpha.public_identities) == {}


def test_private_keys_never_leave_a_folder(hub, alpha):
    request = enrolment.ask(alpha)
    welcome = enrolment.enrol(hub, Request.from_bytes(request))
    for holder in (hub, alpha):
        for keys in holder.private.keys.values():
            for secret in (keys.identity.private.hex().encode(), keys.agreement.private.hex().encode(), keys.tls):
                assert secret not in request + welcome
    assert hub.private.authority not in welcome


def test_a_revocation_holds_at_once_in_a_process_that_runs(hub, alpha, beta):
    for station in (alpha, beta):
        enrolled(hub, station)
    running = KeyFolder(hub.path)
    raw = enclose(alpha.key_material, hub.key_material.public_identity, "answer", [b"x"])
    assert disclose(running.key_material, running.public_identities, raw).sender == "alpha"
    enrolment.revoke(hub, "alpha", "laptop stolen")
    assert "alpha" not in running.public_identities
    assert not running.admits("alpha", alpha.key_material.public_identity.certificate)
    with pytest.raises(StationUnknown):
        disclose(running.key_material, running.public_identities, raw)
    assert set(running.roster) == {"beta"}
    entry = running.trust_store.entry("alpha")
    assert (entry.reason, bool(entry.revoked)) == ("laptop stolen", True)
    for name in ("alpha", "nobody"):
        with pytest.raises(StationUnknown, match=name):
            enrolment.revoke(hub, name, "again")
        with pytest.raises(StationUnknown, match=name):
            enrolment.welcome(hub, name)


def test_an_expired_certificate_is_not_used(hub, alpha):
    long_ago = datetime.now(UTC) - timedelta(days=800)
    enrolment_file = enrolment.enrol(
        hub, Request.from_bytes(enrolment.ask(alpha)), now=datetime.now(UTC) + timedelta(minutes=5)
    )
    enrolment.accept(alpha, Welcome.from_bytes(enrolment_file))
    entry = alpha.trust_store.me
    with alpha.changing() as store:
        authority, signing = certificates.authority("hub", now=long_ago)
        request = certificates.request("alpha", alpha.private.keys["1"].tls)
        expired = certificates.issue(authority, signing, request, "alpha", now=long_ago)
        store(replace(alpha.trust_store, me=replace(entry, certificate=expired), authority=authority))
    with pytest.raises(KeyInvalid, match="valid from"):
        alpha.tls  # noqa: B018


@pytest.mark.parametrize("stop", range(1, 5))
def test_a_crash_while_keys_change_leaves_the_old_or_the_new(hub, alpha, stop, monkeypatch):
    """The process dies at the n-th file that it puts in place, or just after."""
    enrolled(hub, alpha)
    enrolment.rotate(alpha)
    welcome = Welcome.from_bytes(enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha))))
    n, real = 0, os.replace

    def dies(source, target):
        nonlocal n
        n += 1
        if 2 * n - 1 == stop:
            raise KeyboardInterrupt
        real(source, target)
        if 2 * n == stop:
            raise KeyboardInterrupt

    monkeypatch.setattr("hedgerow.network.identity.key_folder.os.replace", dies)
    old = alpha.key_material.public_identity
    with pytest.raises(KeyboardInterrupt):
        enrolment.accept(alpha, welcome)
    monkeypatch.undo()
    found = KeyFolder(alpha.path)
    assert found.key_material.public_identity == (old if stop == 1 else welcome.public_identity)
    enrolment.accept(found, welcome)
    assert talks(hub, found)
    assert len(found.private.keys) == 1


def enrol_some(path, folder, numbers):
    hub = KeyFolder(path)
    for number in numbers:
        station = KeyFolder.make(folder / f"s{number}", f"s{number}")
        enrolment.enrol(hub, Request.from_bytes(enrolment.ask(station)))


def test_two_that_enrol_at_once_lose_nobody(hub, tmp_path):
    """Locks of the system: threads with folders of their own stand for processes."""
    threads = [threading.Thread(target=enrol_some, args=(hub.path, tmp_path, range(k, 10, 2))) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(hub.public_identities) == {f"s{number}" for number in range(10)}
    assert hub.trust_store.edition == 10


def test_a_full_disk_is_told_and_changes_nothing(hub, alpha, monkeypatch):
    before = unchanged(hub)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hedgerow.network.identity.key_folder.os.fsync", full)
    with pytest.raises(CannotWrite, match="No space left"):
        enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha)))
    monkeypatch.undo()
    assert {name: raw for name, raw in unchanged(hub).items() if not name.endswith(".part")} == before
    assert talks(hub, enrolled(hub, alpha))
