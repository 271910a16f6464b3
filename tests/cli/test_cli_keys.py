"""`hedgerow keys`: the life of keys as two people type it."""

import json
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.keys import app
from hedgerow.crypto import certificates
from hedgerow.errors import CannotWrite, HedgerowError, KeyInvalid, MissingData, StationUnknown
from hedgerow.network.identity.key_folder import KeyFolder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder, and a terminal that breaks no line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hedgerow.cli.keys.console", Console(width=200))


def keys(*arguments, answer=None):
    """Type a command; an error that is raised on purpose is raised here too."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=answer)
    if isinstance(result.exception, HedgerowError):
        raise result.exception
    return result


def done(*arguments, answer=None):
    result = keys(*arguments, answer=answer)
    assert result.exit_code == 0, result.output
    return result.output


def told(output):
    """The fingerprint that a command shows."""
    return re.search(r"fingerprint  ((?:[0-9A-F]{4} ?){8})", output)[1].strip()


@pytest.fixture
def made():
    """What `init` shows at a coordinator and a station."""
    hub = done("init", "hub", "--name", "hub", "--authority", "--host", "hub.example.org", "--host", "127.0.0.1")
    return hub, done("init", "alpha", "--name", "alpha")


@pytest.fixture
def enrolled(made):
    done("enrol", "hub", "alpha.request", "--yes")
    done("enrol", "alpha", "alpha.welcome", "--yes")


def trust(station="alpha"):
    """Whether both hold the other's public identity as it is now."""
    hub, other = KeyFolder("hub"), KeyFolder(station)
    return (
        hub.public_identities.get(station) == other.key_material.public_identity
        and other.public_identities.get("hub") == hub.key_material.public_identity
    )


def test_a_station_is_enrolled_by_two_files_and_two_fingerprints(made):
    hub, alpha = made
    asked = done("enrol", "hub", "alpha.request", answer="y\n")
    assert told(asked) == told(alpha)
    assert "alpha: new" in asked
    welcomed = done("enrol", "alpha", "alpha.welcome", answer="y\n")
    assert told(welcomed) == told(hub)
    assert trust()


@pytest.mark.parametrize("wrong", ["hub", "alpha"])
def test_a_fingerprint_that_was_told_decides(made, wrong):
    prints = dict(zip(("hub", "alpha"), map(told, made), strict=True))
    typed = {name: prints[name].replace(" ", ":").lower() for name in prints}
    typed[wrong] = "00" * 16
    enrolment_files = {"alpha": ("hub", "alpha.request"), "hub": ("alpha", "alpha.welcome")}
    for name, (folder, enrolment_file) in enrolment_files.items():
        if name == wrong:
            with pytest.raises(KeyInvalid, match=prints[name]):
                done("enrol", folder, enrolment_file, "--fingerprint", typed[name])
            break
        done("enrol", folder, enrolment_file, "--fingerprint", typed[name])
    assert not trust()


def test_nothing_changes_for_who_says_no(made):
    result = keys("enrol", "hub", "alpha.request", answer="n\n")
    assert result.exit_code == 1
    assert "Nothing was changed" in result.output
    assert dict(KeyFolder("hub").public_identities) == {}


def test_a_station_rotates_without_a_telephone(enrolled):
    before = KeyFolder("alpha").key_material.public_identity
    assert "old keys go on" in done("rotate", "alpha")
    assert "New keys wait" in done("list", "alpha")
    assert KeyFolder("alpha").key_material.public_identity == before
    shown = done("enrol", "hub", "alpha.request")
    assert "alpha: rotation" in shown
    assert "retired" in shown
    done("enrol", "alpha", "alpha.welcome")
    assert trust()
    assert KeyFolder("alpha").key_material.public_identity.identity != before.identity


@pytest.mark.slow
@pytest.mark.parametrize("identity", [False, True])
def test_a_coordinator_rotates_and_welcomes_everybody_again(enrolled, identity):
    done("init", "beta", "--name", "beta")
    done("enrol", "hub", "beta.request", "--yes")
    done("enrol", "beta", "beta.welcome", "--yes")
    before = KeyFolder("hub").key_material.public_identity
    shown = done("rotate", "hub", *["--identity"] * identity, "--out", "post")
    assert {line.split()[1] for line in shown.splitlines() if line.startswith("wrote")} == {
        "post/alpha.welcome",
        "post/beta.welcome",
    }
    after = KeyFolder("hub").key_material.public_identity
    assert after.certificate != before.certificate
    assert (after.identity != before.identity) == identity
    for name in ("alpha", "beta"):
        done("enrol", name, f"post/{name}.welcome")
        assert trust(name)


def test_a_revoked_station_is_listed_with_the_reason(enrolled):
    assert "revoked" in done("revoke", "hub", "alpha", "--reason", "laptop [stolen]")
    assert not trust()
    shown = done("list", "hub")
    assert "laptop [stolen]" in shown
    with pytest.raises(StationUnknown, match="taken off"):
        done("revoke", "hub", "alpha", "--reason", "again")
    with pytest.raises(KeyInvalid, match="revoked or replaced"):
        done("enrol", "hub", "alpha.request", "--yes")


def test_the_list_shows_names_fingerprints_and_ends(enrolled):
    shown = done("list", "hub")
    for holder in ("hub", "alpha"):
        assert KeyFolder(holder).trust_store.me.fingerprint in shown
    assert "hub (this coordinator)" in shown
    listed = json.loads(done("list", "hub", "--json"))
    assert [public_identity["name"] for public_identity in listed["cards"]] == ["hub", "alpha"]
    assert listed["cards"][1]["valid_until"]
    assert KeyFolder("hub").key_material.identity.private.hex() not in json.dumps(listed)
    assert "Not enrolled yet" in [done("init", "beta", "--name", "beta"), done("list", "beta")][1]


def test_a_certificate_that_ends_is_said_to(enrolled):

    holder = KeyFolder("hub")
    request = certificates.request("hub", holder.private.keys["1"].tls)
    for days_ago, words in ((390, "in 7 days"), (500, "expired")):
        then = datetime.now(UTC) - timedelta(days=days_ago)
        authority, signing = certificates.authority("hub", now=then)
        old = certificates.issue(authority, signing, request, "hub", now=then)
        with holder.changing() as store:
            store(replace(holder.trust_store, me=replace(holder.trust_store.me, certificate=old)))
        assert words in done("list", "hub")


def test_requests_and_welcomes_are_written_again(enrolled, tmp_path):
    done("request", "alpha", "--out", "post")
    done("welcome", "hub", "alpha", "--out", "post")
    assert {path.name for path in (tmp_path / "post").iterdir()} == {"alpha.request", "alpha.welcome"}
    done("enrol", "alpha", "post/alpha.welcome")
    with pytest.raises(StationUnknown):
        done("welcome", "hub", "nobody")


@pytest.mark.parametrize(
    ("command", "error", "why"),
    [
        (("init", "hub", "--name", "hub"), KeyInvalid, "already"),
        (("init", "new", "--name", "a b"), KeyInvalid, "name"),
        (("init", "new", "--name", "x", "--host", "here"), KeyInvalid, "no authority"),
        (("list", "nowhere"), KeyInvalid, "no keys"),
        (("enrol", "hub", "nothing.request"), MissingData, "nothing.request"),
        (("enrol", "hub", "alpha.welcome"), KeyInvalid, "not a request"),
        (("enrol", "alpha", "alpha.request"), KeyInvalid, "not a welcome"),
        (("rotate", "alpha", "--identity"), KeyInvalid, "is a station"),
        (("rotate", "beta"), KeyInvalid, "not welcomed yet"),
        (("request", "hub"), KeyInvalid, "nobody to ask"),
        (("welcome", "hub", "--out", "alpha.request"), CannotWrite, "alpha.request"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_refused_with_a_reason_and_a_remedy(enrolled, command, error, why):
    done("init", "beta", "--name", "beta")
    with pytest.raises(error, match=why) as caught:
        done(*command)
    assert caught.value.remedy


def test_a_folder_that_others_may_read_is_refused(made, tmp_path):
    (tmp_path / "hub").chmod(0o755)
    with pytest.raises(KeyInvalid, match="755"):
        done("list", "hub")


@pytest.mark.slow
def test_the_commands_of_the_page_do_what_it_says():
    page = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in page.splitlines() if line.strip().startswith("hedgerow keys ")]
    assert {command[2] for command in commands} == {
        command.name or command.callback.__name__ for command in app.registered_commands
    } - {"request"}
    for command in commands:
        done(*command[2:], answer="y\n")
        if "alpha.welcome" in command:
            assert talk()
    assert not KeyFolder("hub/keys").public_identities


def talk():
    """Whether coordinator and station of the page hold each other's public identities."""
    hub, alpha = KeyFolder("hub/keys"), KeyFolder("alpha/keys")
    return (
        hub.public_identities["alpha"] == alpha.key_material.public_identity
        and alpha.public_identities["hub"] == hub.key_material.public_identity
    )
