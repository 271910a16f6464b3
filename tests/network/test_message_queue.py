"""The message queue: one letter, one answer, whatever the rail does to them."""

import pytest
from virtual import Faults, VirtualRail

from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.rails.rail import Arrived
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity, disclose, enclose

NAMES = ("alpha", "beta", "gamma")


def key_material(name):
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


KEY_MATERIALS = {name: key_material(name) for name in ("hub", *NAMES)}
PUBLIC_IDENTITIES = {name: KEY_MATERIALS[name].public_identity for name in NAMES}


class Echo:
    """Answers each letter with its own name, and the same letter with the same bytes."""

    def __init__(self, name, silent=False):
        self.name, self.silent = name, silent
        self.seen, self.answered = [], {}

    def __call__(self, raw):
        try:
            letter = disclose(KEY_MATERIALS[self.name], {"hub": KEY_MATERIALS["hub"].public_identity}, raw)
        except Exception:
            return None
        self.seen.append(letter)
        if self.silent:
            return None
        if letter.digest not in self.answered:
            about = {"study": letter.study, "number": letter.number, "answers": letter.digest}
            parts = [self.name.encode(), *letter.parts]
            self.answered[letter.digest] = enclose(
                KEY_MATERIALS[self.name], KEY_MATERIALS["hub"].public_identity, "answer", parts, **about
            )
        return self.answered[letter.digest]


def laid(seed=0, faults=None, silent=()):
    echoes = {name: Echo(name, name in silent) for name in NAMES}
    rail = VirtualRail({name: lambda name=name: echoes[name] for name in NAMES}, seed, faults or Faults())
    return MessageQueue(lambda: KEY_MATERIALS["hub"], lambda: PUBLIC_IDENTITIES, rail), rail, echoes


def asked(queue, number=1, seconds=60.0, **more):
    return queue.ask("ask", {name: [f"for {name}".encode()] for name in NAMES}, number=number, seconds=seconds, **more)


def answers(letters):
    return {name: letter.parts for name, letter in letters.items()}


EVERYBODY = {name: (name.encode(), f"for {name}".encode()) for name in NAMES}


def test_every_station_gets_its_own_letter_and_answers_it():
    queue, _, _ = laid()
    assert answers(asked(queue)) == EVERYBODY


@pytest.mark.parametrize("seed", range(40))
def test_lost_repeated_and_altered_bodies_change_no_answer(seed):
    queue, rail, _ = laid(seed, Faults(lost=0.3, repeated=0.3, altered=0.2, slow=0.1))
    for number in range(1, 5):
        found = answers(asked(queue, number, seconds=2000.0))
        assert all(EVERYBODY[name] == parts for name, parts in found.items())
        rail.clock += 1000.0
        queue.wait(1.0)


def test_a_silent_station_costs_one_deadline_and_is_not_asked_again_until_it_speaks():
    queue, rail, echoes = laid(silent={"beta"})
    assert asked(queue).keys() == {"alpha", "gamma"}
    assert rail.clock == pytest.approx(60, abs=1)
    before = len(echoes["beta"].seen)
    asked(queue, 2)
    assert rail.clock < 61
    assert [letter.kind for letter in echoes["beta"].seen[before:]] in ([], ["hello"])
    echoes["beta"].silent = False
    queue.wait(100.0, lambda: "beta" in queue.alive())
    assert asked(queue, 3).keys() == set(NAMES)


def test_a_killed_station_is_given_up_after_the_grace_and_comes_back():
    queue, rail, echoes = laid(silent={"beta"})
    rail.at(5.0, lambda: rail.kill("beta"))
    assert asked(queue).keys() == {"alpha", "gamma"}
    assert rail.clock == pytest.approx(6.0, abs=0.1)
    echoes["beta"].silent = False
    rail.start("beta")
    assert asked(queue, 2).keys() == set(NAMES)


def test_a_station_that_leaves_while_its_letter_is_sealed_is_not_waited_for():
    """Another thread has taken the news that it left, before there was a letter to give up."""
    queue, rail, _ = laid()
    sealed = []

    def leaving():
        sealed.append(rail.clock)
        if len(sealed) == 2:
            rail.kill("beta")
            assert queue.wait(1.0, lambda: "beta" not in queue.alive())
            queue.wait(0.1)
        return KEY_MATERIALS["hub"]

    queue.key_material = leaving
    assert asked(queue).keys() == {"alpha", "gamma"}
    assert rail.clock == pytest.approx(1.1, abs=0.2)
    rail.start("beta")
    assert asked(queue, 2).keys() == set(NAMES)  # it was not silent, so it is asked as soon as it is back


def test_a_letter_goes_out_again_when_the_connection_is_laid_again():
    queue, rail, echoes = laid(silent={"beta"})

    def back():
        echoes["beta"].silent = False
        rail.cut("beta")

    rail.at(5.0, back)
    assert asked(queue).keys() == set(NAMES)
    assert rail.clock < 6


def test_an_answer_that_a_relay_gives_to_another_station_is_refused():
    queue, rail, _ = laid()
    happened = []
    queue.watch = lambda what, station, *_: happened.append((what, station))
    genuine = rail.receive

    def swapped(seconds):
        event = genuine(seconds)
        if isinstance(event, Arrived) and event.station in ("alpha", "beta"):
            return Arrived({"alpha": "beta", "beta": "alpha"}[event.station], event.body)
        return event

    rail.receive = swapped
    assert asked(queue, seconds=5.0).keys() == {"gamma"}
    assert {("forged", "alpha"), ("forged", "beta")} <= set(happened)


def test_an_answer_to_another_letter_is_not_taken():
    queue, rail, _ = laid()
    asked(queue, 1)
    old = [body for way, station, body in rail.tapped if (way, station) == ("from", "alpha")]
    rail.machines["alpha"] = lambda: lambda raw: old[0]
    rail.kill("alpha")
    rail.start("alpha")
    assert asked(queue, 2, seconds=5.0).keys() == {"beta", "gamma"}


def test_whoever_is_revoked_is_neither_asked_nor_heard():
    queue, _, echoes = laid()
    queue.public_identities = lambda: {
        name: public_identity for name, public_identity in PUBLIC_IDENTITIES.items() if name != "gamma"
    }
    assert asked(queue).keys() == {"alpha", "beta"}
    assert echoes["gamma"].seen == []


def test_nothing_is_readable_on_the_rail():
    queue, rail, _ = laid()
    asked(queue)
    assert rail.tapped
    assert not any(b"for alpha" in body or b"for beta" in body for _, _, body in rail.tapped)
