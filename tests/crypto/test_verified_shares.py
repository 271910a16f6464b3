"""Verified shares: exact totals of proved rows, liars, servers that tamper, stated limits, and twins that leave a rule out."""

import random
import secrets
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hidden_rounds import Altered, contributions_of, flipped, looks_uniform
from hidden_rounds import encoding_of as of_a_ring
from hidden_rounds import rows_of as rows_in_a_ring
from verified_rounds import (
    IDS,
    LIARS,
    LONG,
    ClaimsTheBound,
    Divides,
    FalseClaim,
    Lying,
    SendsFatBits,
    Watched,
    WrapsAround,
    ask,
    encoding_of,
    layout_of,
    letter_of,
    rows_of,
    steps_of,
    verified,
    watched,
)

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf
from hedgerow.crypto import proved_rows
from hedgerow.crypto.conversation import drive
from hedgerow.crypto.keys import AgreementKey
from hedgerow.crypto.messages import digest
from hedgerow.crypto.proofs.pine import QUERY
from hedgerow.crypto.proofs.prio3 import QUERY as PRIO3_QUERY
from hedgerow.crypto.proofs.prio3 import SEED
from hedgerow.crypto.proofs.transforms import lagrange, nodes
from hedgerow.crypto.proved_rows import FIELD, _inner
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares, Drawing, ProvingParty, VerifyingAggregator
from hedgerow.crypto.shares.aggregator_noise import _FORM
from hedgerow.crypto.shares.derived import agreement, proof_context, share_key
from hedgerow.crypto.shares.letters import AGREE, ENROL, ENROLLED, JUDGE, JUDGED, PROVED, SETTLE, TELL, TOLD
from hedgerow.crypto.shares.round_task import RoundTask
from hedgerow.crypto.streams import ZERO_NONCE, mask_bytes
from hedgerow.errors import HedgerowError, MessageRefused, RoundRefused, SettingsInvalid
from hedgerow.privacy.mechanisms import drawn

BOUNDS = {
    "l2": (l2(1.0), layout_of(LONG)),
    "l2 of few numbers": (l2(1.0), layout_of(8)),
    "l1": (l1(50), layout_of(20)),
    "linf": (linf(3.0), layout_of(10)),
    "by key": ({"a": l2(1.0), "b": l1(7), "c": linf(0.3)}, Layout((("a", (300,)), ("b", (9,)), ("c", (4, 2))))),
}


def rewritten(form, letter, **changes):
    return form.pack(**(dict(zip(form.kinds, form.unpack(letter), strict=True)) | changes))


# ---- totals and dropouts
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("k", [2, 3])
def test_totals_of_honest_rows_at_their_bound_are_exact(name, k):
    bound, layout = BOUNDS[name]
    found = ask(*verified(5, k), encoding_of(bound, layout=layout, k=k))
    assert (found.counted, found.refused) == (IDS[:5], 0)


def test_an_epoch_serves_many_rounds_and_newcomers_under_one_verification_key():
    server, parties = verified(6)
    encoding, keys = encoding_of(size=6), set()
    for n in (4, 4, 6):
        assert ask(server, dict(list(parties.items())[:n]), encoding).counted == IDS[:n]
        keys |= {one._key_of_epoch for one in server.aggregators}
    assert len(keys) == 1
    server._begin()
    ask(server, parties, encoding)
    assert not keys & {one._key_of_epoch for one in server.aggregators}


def test_letters_come_in_parts_and_an_aggregator_holds_one_part_at_a_time(monkeypatch):
    monkeypatch.setattr("hedgerow.crypto.shares.server.PART", 15_000)
    server, parties = verified(9, 3)
    assert ask(server, parties, encoding_of(size=16, k=3)).counted == IDS[:9]
    assert [step for step, _ in server.aggregators[0].letters].count("judge") >= 3
    assert all(one._part is None for one in server.aggregators)


@pytest.mark.parametrize("k", [2, 3])
def test_whatever_is_lost_the_total_is_that_of_the_others_or_refused(k):
    rng, ends = random.Random(5), Counter()
    server, parties = verified(6, k, rounds=5)
    encoding = encoding_of(size=3, k=k)
    for _ in range(12):
        lost = {(step, id) for step in ("enrol", "contribution") for id in IDS[:6] if rng.random() < rng.choice([0.1, 0.8])}
        try:
            found = ask(server, parties, encoding, drops=lambda step, id: (step, id) in lost)
        except RoundRefused:
            ends["refused"] += 1
        else:
            assert not any(("contribution", id) in lost for id in found.counted)
            ends["some"] += 1
    assert min(ends["refused"], ends["some"]) > 0


def test_the_noise_of_each_aggregator_is_added_in_the_field():
    size, aggregators = 2000, watched(2, drawing=Drawing(drawn))
    server, parties = verified(4, 2, aggregators=aggregators)
    encoding = encoding_of(size=size, parties=4)
    words = _FORM.pack(law="gaussian", numbers=[size], scales=[50.0])
    rows = rows_of(parties, encoding)
    given = {id: replace(one, noise=words) for id, one in contributions_of(rows, encoding).items()}
    found = ask(server, parties, encoding, rows, given=given, exact=False, noise=words)
    noise = FIELD.centred(found.total) - steps_of(rows, found.counted, encoding)
    assert np.abs(noise).max() < 500
    assert noise.std() == pytest.approx(50 * 2**0.5, rel=0.1)


# ---- liars
@pytest.mark.parametrize("k", [2, 3])
def test_in_a_round_of_twelve_with_liars_the_total_is_that_of_the_honest_to_the_unit(k):
    server, parties = verified(12, k, dict(enumerate(LIARS)))
    encoding = encoding_of(k=k)
    rows = rows_of(parties, encoding)
    for _ in range(2):
        found = ask(server, parties, encoding, rows)
        assert found.counted == IDS[len(LIARS) :]
        assert found.refused == len(LIARS)


@pytest.mark.parametrize("name", BOUNDS)
def test_forged_rows_change_nothing(name):
    bound, layout = BOUNDS[name]
    server, parties = verified(6, 2)
    encoding = encoding_of(bound, layout=layout)
    rows = rows_of(parties, encoding)
    given = contributions_of(rows, encoding)
    for id in IDS[:2]:
        free, row = encoding.forged(rows[id] * 1000)
        assert free.digest == encoding.digest
        given[id] = replace(given[id], encoding=free, row=row)
    found = ask(server, parties, encoding, rows, given=given)
    assert (found.counted, found.refused) == (IDS[2:6], 2)


def test_one_step_beyond_the_bound_is_refused_and_at_the_bound_it_is_not():
    class JustBeyond(Lying):
        def _row(self, encoding, row):
            found = np.zeros(encoding.size, np.int64)
            found[0], found[1] = 2**20, 1
            return found

    class JustWithin(Lying):
        def _row(self, encoding, row):
            found = np.zeros(encoding.size, np.int64)
            found[0] = 2**20
            return found

    server, parties = verified(6, 2, {0: JustBeyond, 1: JustWithin})
    encoding = encoding_of()
    assert encoding.parts[0].claim.most == 2**40
    assert ask(server, parties, encoding, exact=False).counted == IDS[1:6]


def test_a_round_of_too_many_liars_is_refused_and_names_none_of_them():
    server, parties = verified(5, 2, dict.fromkeys(range(3), ClaimsTheBound))
    with pytest.raises(RoundRefused, match="3 of 5 rows were refused") as refusal:
        ask(server, parties, encoding_of())
    assert not any(id in str(refusal.value) for id in IDS)


def test_a_twin_that_judges_nobody_is_caught(monkeypatch):
    monkeypatch.setattr(proved_rows.ProvedRows, "judge", lambda self, ctxs, *rest: np.ones(len(ctxs), bool))
    server, parties = verified(6, 2, {0: ClaimsTheBound})
    found = ask(server, parties, encoding_of(), exact=False)
    assert found.counted == IDS[:6]
    assert np.linalg.norm(encoding_of().decode(found.total)) > 50


class FalsePart(ProvingParty):
    """Gives all a false part of joint randomness for one aggregator, which replaces it by its own."""

    which = 1

    def _shared(self, *given):
        public, letter = super()._shared(*given)
        at = 32 * self.which
        return public[:at] + flipped(public[at : at + 32], 0) + public[at + 32 :], letter


@pytest.mark.parametrize("which", range(6))
def test_a_party_that_gives_a_false_part_for_one_aggregator_loses_its_own_row_alone(which):
    server, parties = verified(5, 3, {0: type("One", (FalsePart,), {"which": which})})
    found = ask(server, parties, encoding_of(k=3))
    assert (found.counted, found.refused) == (IDS[1:5], 1)


def a_party_that_divides_aggregators():
    server, parties = verified(5, 2, {0: Divides})
    return ask(server, parties, encoding_of(linf(1.0), size=4))


def test_a_party_that_divides_aggregators_loses_its_own_row_alone():
    found = a_party_that_divides_aggregators()
    assert (found.counted, found.refused) == (IDS[1:5], 1)


def test_a_twin_that_compares_no_parts_loses_the_round_to_such_a_party(monkeypatch):
    monkeypatch.setattr(proved_rows, "parts_agree", lambda *given: True)
    with pytest.raises(RoundRefused, match="'agree': HR-242"):
        a_party_that_divides_aggregators()


# ---- what the server may try
def meddling(server, place, step, change, answer=False):
    """Let the server change what it sends one aggregator in a step, or what that aggregator answers."""
    one = server.aggregators[place]
    tell = one.answer

    def between(name, letter):
        if name != step:
            return tell(name, letter)
        return change(tell(name, letter)) if answer else tell(name, change(letter))

    one.answer = between


@pytest.mark.parametrize("what", ["nonce", "public", "box"])
def test_a_letter_that_was_altered_for_all_loses_its_row_alone(what):
    server, parties = verified(6)
    encoding = encoding_of(size=6)

    def altered(step, raw):
        if step != "contribution":
            return raw
        kinds = dict(zip(PROVED.kinds, PROVED.unpack(raw), strict=True))
        return PROVED.pack(**(kinds | {what: flipped(kinds[what], 77)}))

    parties[IDS[1]] = Altered(parties[IDS[1]], answer=altered)
    found = ask(server, parties, encoding)
    assert (found.counted, found.refused) == ((IDS[0], *IDS[2:6]), 1)


@pytest.mark.parametrize("field", ["nonces", "publics", "places", "least", "task"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_server_that_tells_one_aggregator_other_letters_or_another_task_gets_no_total(field, place):
    server, parties = verified(6)
    encoding = encoding_of(size=6)

    def change(letter):
        kinds = dict(zip(TELL.kinds, TELL.unpack(letter), strict=True))
        if field == "least":
            return TELL.pack(**(kinds | {"least": kinds["least"] + 1}))
        if field == "task":
            task = RoundTask.unpacked(kinds["task"])
            return TELL.pack(**(kinds | {"task": replace(task, context=b"another question").packed()}))
        if field == "places":
            rest = {"nonces": kinds["nonces"][:-16], "publics": kinds["publics"][: -(len(kinds["publics"]) // 6)]}
            rest |= {name: kinds[name][: len(kinds[name]) * 5 // 6] for name in ("boxes", "marks")}
            return TELL.pack(**(kinds | rest | {"places": b"\x1f"}))
        return TELL.pack(**(kinds | {field: flipped(kinds[field], 5)}))

    meddling(server, place, "tell", change)
    with pytest.raises(RoundRefused, match="'judge': HR-242"):
        ask(server, parties, encoding)


@pytest.mark.parametrize("field", ["told", "tags", "places"])
def test_what_aggregators_tell_one_another_cannot_be_changed(field):
    server, parties = verified(6, 3)

    def change(letter):
        kinds = dict(zip(TOLD.kinds, TOLD.unpack(letter), strict=True))
        value = b"\x1f" if field == "places" else flipped(kinds[field], 9 + 8 * 64)
        return TOLD.pack(**(kinds | {field: value}))

    meddling(server, 1, "tell", change, answer=True)
    with pytest.raises(RoundRefused, match="HR-24"):
        ask(server, parties, encoding_of(size=6, k=3))


def test_what_an_aggregator_told_itself_cannot_be_changed_for_it():
    server, parties = verified(6)

    def change(letter):
        epoch, round, places, tolds, tags = JUDGE.unpack(letter)
        return JUDGE.pack(epoch=epoch, round=round, places=places, tolds=[flipped(tolds[0], 3), tolds[1]], tags=tags)

    meddling(server, 0, "judge", change)
    with pytest.raises(RoundRefused, match="'judge': HR-242"):
        ask(server, parties, encoding_of(size=6))


def test_the_server_cannot_let_a_refused_row_in_nor_leave_an_accepted_one_out():
    for places in (b"\x3f", b"\x1e"):
        server, parties = verified(6, 2, {0: ClaimsTheBound})
        meddling(server, 0, "agree", lambda letter, places=places: rewritten(AGREE, letter, places=places))
        with pytest.raises(RoundRefused, match="'agree': HR-242"):
            ask(server, parties, encoding_of())


def test_a_judgement_that_the_server_makes_up_gives_no_total():
    server, parties = verified(6, 2, {0: ClaimsTheBound})
    for place in (0, 1):
        meddling(server, place, "judge", lambda letter: rewritten(JUDGED, letter, places=b"\x3f"), answer=True)
    with pytest.raises(RoundRefused, match="'agree': HR-242"):
        ask(server, parties, encoding_of())


def test_of_each_row_one_is_told_once():
    """A second look at the same shares, at another point, would tell of the row."""
    server, parties = verified(6)
    ask(server, parties, encoding_of(size=6))
    one = server.aggregators[0]
    letter = letter_of(one, "tell")
    with pytest.raises(MessageRefused, match="is over"):
        one.answer("tell", letter)
    later = rewritten(TELL, letter, round=5)
    one.answer("tell", later)
    with pytest.raises(MessageRefused, match="before them were judged"):
        one.answer("tell", later)
    with pytest.raises(MessageRefused, match="begun here before"):
        one.answer("tell", rewritten(TELL, letter, round=3))
    one._round = None  # as when newcomers are enrolled
    with pytest.raises(MessageRefused, match="begun here before"):
        one.answer("tell", later)


def test_a_nonce_serves_once_in_an_epoch():
    class Repeats(ProvingParty):
        def _nonce(self):
            return b"always the same."

    server, parties = verified(5, 2, {0: Repeats})
    encoding = encoding_of(size=6)
    assert ask(server, parties, encoding).counted == IDS[:5]
    again = ask(server, parties, encoding)
    assert (again.counted, again.refused) == (IDS[1:5], 1)


def test_one_key_under_two_names_counts_no_row_twice():
    server, parties = verified(4)
    ask(server, parties, encoding_of(size=3))
    aggregator = server.aggregators[0]
    letter = letter_of(aggregator, "enrol")
    epoch, _, _, publics, _ = ENROL.unpack(letter)
    again = ENROL.pack(epoch=epoch, before=4, ids=["another"], publics=publics[:32], signatures=b"")
    assert ENROLLED.unpack(aggregator.answer("enrol", again))[1] == b"\x00"


def test_the_verification_key_is_settled_once_and_before_letters():
    server, parties = verified(5)
    drive(server.open(), parties)
    one, encoding = server.aggregators[0], encoding_of(size=3)
    with pytest.raises(MessageRefused, match="has its verification key"):
        one.answer("settle", letter_of(one, "settle"))
    other = watched(2)
    for step in ("enrol", "offer"):
        fresh = [(a.answer(step, letter_of(a_old, step))) for a, a_old in zip(other, server.aggregators, strict=True)]
    assert fresh
    ask(server, parties, encoding)
    with pytest.raises(MessageRefused, match="before the verification key"):
        other[0].answer("tell", letter_of(one, "tell"))


def test_an_offer_that_was_altered_settles_nothing():
    server, parties = verified(5)
    meddling(
        server, 0, "settle", lambda letter: rewritten(SETTLE, letter, boxes=flipped(SETTLE.unpack(letter)[1], 8 * 76 + 200))
    )
    with pytest.raises(RoundRefused, match="'settle': HR-242"):
        ask(server, parties, encoding_of(size=3))


def test_the_server_and_parties_do_not_learn_the_verification_key():
    server, parties = verified(5)
    ask(server, parties, encoding_of(size=3))
    [key] = {one._key_of_epoch for one in server.aggregators}
    offers = [one._own_offer for one in server.aggregators]
    seen = b"".join(letter for one in server.aggregators for _, letter in one.letters)
    assert not any(secret in seen for secret in (key, *offers))
    assert len(key) == 32


# ---- the context
class AnyProof(RoundTask):
    @property
    def terms(self):
        return digest("additive terms", self.encoding, self.context, self.noise)


def told_of_another_range(monkeypatch, twin):
    """A server that tells aggregators of another range, whose bits are as many, and so weigh otherwise."""
    if twin:
        monkeypatch.setattr(RoundTask, "terms", AnyProof.terms)
    server, parties = verified(5)
    encoding = encoding_of(linf(0.7), size=4)
    [part] = encoding.parts
    other = replace(encoding, parts=(replace(part, claim=replace(part.claim, most=part.claim.most - 1000)),))
    assert (2 * part.claim.most).bit_length() == (2 * other.parts[0].claim.most).bit_length()
    assert other.proved.leader_bytes == encoding.proved.leader_bytes

    def change(letter, form):
        kinds = dict(zip(form.kinds, form.unpack(letter), strict=True))
        return form.pack(**(kinds | {"task": replace(RoundTask.unpacked(kinds["task"]), proof=other.proof).packed()}))

    for place in (0, 1):
        meddling(server, place, "tell", lambda letter: change(letter, TELL))
        meddling(server, place, "agree", lambda letter: change(letter, AGREE))
    rows = rows_of(parties, encoding)
    return ask(server, parties, encoding, rows)


def test_aggregators_that_are_told_of_other_circuits_accept_nothing(monkeypatch):
    with pytest.raises(RoundRefused, match="5 of 5 rows were refused"):
        told_of_another_range(monkeypatch, twin=False)


def test_a_twin_whose_terms_leave_the_circuits_out_gives_a_false_total(monkeypatch):
    with pytest.raises(AssertionError):
        told_of_another_range(monkeypatch, twin=True)


def test_words_of_other_circuits_are_refused():
    encoding = encoding_of(size=4)
    words = encoding.proof
    assert proved_rows.proofs_in(words, 2, 4).claims == encoding.proved.claims
    for told in ((words, 3, 4), (words, 2, 5), (flipped(words, 8 * len(words) - 3), 2, 4), (b"", 2, 4)):
        with pytest.raises(MessageRefused):
            proved_rows.proofs_in(*told)


def test_a_proof_of_another_party_or_round_is_refused():
    """A letter that another party could copy would let it send a row that it does not know."""
    server, parties = verified(5)
    encoding, kept = encoding_of(size=6), []

    class Copies(ProvingParty):
        def _shared(self, made_for, nonce, encoding, row):
            [other] = [party for party in parties.values() if party.id == IDS[1]]
            bonds, self._bonds = self._bonds, self._bonds
            public, self._public = self._public, other._public  # a context that is not its own
            try:
                return super()._shared(made_for, nonce, encoding, row)
            finally:
                self._public, self._bonds = public, bonds
                kept.append(1)

    parties[IDS[0]].__class__ = Copies
    found = ask(server, parties, encoding)
    assert kept
    assert (found.counted, found.refused) == (IDS[1:5], 1)


# ---- who sees what
def test_what_one_aggregator_holds_and_hears_of_a_row_looks_uniform():
    for place in (0, 1):
        server, parties = verified(4, 2)
        one, held = server.aggregators[place], []
        judge = one._judge
        one._judge = lambda letter, one=one, judge=judge: held.append(one._part.found) or judge(letter)
        one._steps = lambda one=one: {**VerifyingAggregator._steps(one), "judge": one._judge}
        encoding = encoding_of(size=3000, parties=4)
        rows = dict.fromkeys(IDS[:4], np.zeros(3000))
        ask(server, parties, encoding, rows)
        assert looks_uniform(held[0].shares.reshape(-1))
        told = [np.frombuffer(letter[: 8 * ((len(letter) - 64) // 8)], "<u8") for letter in held[0].told]
        assert looks_uniform(np.concatenate(told))


def test_two_rounds_of_the_same_row_differ_by_uniform_numbers():
    server, parties = verified(3)
    encoding = encoding_of(size=3000, parties=3)
    rows, seen = rows_of(parties, encoding), []
    for _ in range(2):
        ask(server, parties, encoding, rows)
        seen.append(TELL.unpack(letter_of(server.aggregators[-1], "tell"))[-1])
    first, second = (np.frombuffer(raw[: 8 * (len(raw) // 8)], "<u8") for raw in seen)
    assert looks_uniform(first - second)


def test_a_refused_party_is_asked_as_the_others_are():
    server, parties = verified(5, 2, {0: ClaimsTheBound})
    heard = {id: [] for id in IDS[:5]}
    for id in IDS[:5]:
        parties[id] = Altered(parties[id], letter=lambda step, letter, id=id: heard[id].append((step, letter)) or letter)
    for _ in range(3):
        refused = {}
        assert ask(server, parties, encoding_of(), refused=refused, rows=rows_of(IDS[:5], encoding_of())).refused == 1
        assert refused == {}
    assert heard[IDS[0]] == heard[IDS[1]]


class Unmarked(Watched):
    """Believes any public part that it is given."""

    def _share(self, i, nonce, public, sealed, found, proofs):
        if self._opens:
            return super()._share(i, nonce, public, sealed, found, proofs)
        return mask_bytes(share_key(self._bonds[i], found.purpose), ZERO_NONCE, proofs.seed_bytes)


def guesses(kind):
    """Which of two rows the server and the aggregator that opens letters, together, find to be the first party's.

    They give the other aggregator a false part of joint randomness, and solve what it tells for the row.
    """
    aggregators = watched(2, kind)
    server, parties = verified(4, 2, aggregators=aggregators)
    encoding = encoding_of(linf(1.0), size=4)
    rows = rows_of(parties, encoding)
    told, public = [], []
    honest, leader = aggregators

    def change(letter):
        kinds = dict(zip(TELL.kinds, TELL.unpack(letter), strict=True))
        public.append(kinds["publics"][:64])
        return TELL.pack(**(kinds | {"publics": bytes(32) + kinds["publics"][32:]}))

    meddling(server, 0, "tell", change)
    tell = honest.answer
    honest.answer = lambda step, letter: (told.append(tell(step, letter)) or told[-1]) if step == "tell" else tell(step, letter)
    with pytest.raises(RoundRefused):
        ask(server, parties, encoding, rows)
    _, _, places, said, _ = TOLD.unpack(told[0])
    if not places[0] & 1:
        return None
    [proof], part = encoding.proved.proofs, leader._part
    prio3, circuit, ctx = proof.prio3, proof.circuit, _inner(part.ctxs[0], 0)
    opened = next(x for x in leader.opened if x)
    own_row, *_ = prio3._read(ctx, 0, opened)
    words = prio3.told_bytes - 32
    heard = [FIELD.decode(raw[:words], words // 8).reshape(prio3.proofs, -1) for raw in (part.found.told[0], said)]
    summed = FIELD.add(*heard)
    [gadget] = circuit.gadgets
    query = prio3.domain.numbers(
        FIELD,
        prio3.flp.query_size * prio3.proofs,
        PRIO3_QUERY,
        ctx,
        leader._key_of_epoch,
        bytes([3]),
        TELL.unpack(letter_of(leader, "tell"))[-4][:16],
    )
    points = prio3.flp.points(query.reshape(prio3.proofs, -1))[..., 0]
    weights = lagrange(FIELD, gadget.nodes, points)[:, 1 : gadget.calls + 1]
    parts = [public[0], bytes(32) + public[0][32:]]
    seeds = [prio3._joint(ctx, prio3.domain.joint(SEED, ctx, [raw[:32], raw[32:]])) for raw in parts]
    found = []
    for guess in (rows[IDS[0]], rows[IDS[1]]):
        other = FIELD.sub(proof.encode(encoding.encode(guess)), own_row)
        true, false = (circuit.inputs(other[None], joint, 2)[0] for joint in seeds)
        moved = FIELD.product(weights[:, None, :], FIELD.sub(false, true))[:, 0, :]
        wires = FIELD.sub(summed[:, 1 : 1 + gadget.arity], moved)
        found.append(bool((gadget.of(FIELD, wires) == summed[:, 1 + gadget.arity]).all()))
    return found


class Opens(Watched):
    def _share(self, *given):
        found = super()._share(*given)
        self.opened = [*getattr(self, "opened", []), found]
        return found


class OpensUnmarked(Unmarked, Opens):
    pass


def test_an_aggregator_tells_nothing_of_a_row_whose_public_part_is_not_its_party_s():
    assert guesses(Opens) is None


def test_a_twin_that_believes_any_public_part_tells_which_row_it_is():
    assert guesses(OpensUnmarked) == [True, False]


# ---- the limits, as they are stated
class SpeaksLast(Watched):
    """Waits for what the other told, and says minus that, so that everything adds up to zero."""

    heard = ()

    def _tell(self, letter):
        told = TOLD.unpack(super()._tell(letter))
        _, _, _, said, _ = TOLD.unpack(self.heard[-1])
        size, words = len(said) // int(sum(bin(b).count("1") for b in told[2])), []
        proved = self._proofs(self._round)
        [proof] = proved.proofs
        tail = 2 * 32
        for i in range(0, len(said), size):
            other, own = said[i : i + size], told[3][i : i + size]
            verifier = FIELD.decode(other[:-tail], proof.told_bytes // 8 - tail // 8)
            words.append(FIELD.encode(FIELD.sub(FIELD.zeros(len(verifier)), verifier)) + own[-tail:])
        joined = b"".join(words)
        part = self._part
        for k, word in enumerate(words):
            part.found.told[k] = word
        tags = [
            bytes(32) if secret is None else agreement(secret, self.place, j, self._said(part.told, joined))
            for j, secret in enumerate(self._among)
        ]
        return TOLD.pack(epoch=told[0], round=told[1], places=told[2], told=joined, tags=b"".join(tags))


def test_limit_an_aggregator_that_speaks_last_lets_any_row_in_at_the_honest_one():
    aggregators = watched(2)
    aggregators[1].__class__ = SpeaksLast
    first = aggregators[0].answer

    def told(step, letter):
        answer = first(step, letter)
        if step == "tell":
            aggregators[1].heard = [answer]
        return answer

    aggregators[0].answer = told
    server, parties = verified(4, 2, {0: ClaimsTheBound}, aggregators)
    found = ask(server, parties, encoding_of(), exact=False)
    assert found.counted == IDS[:4]
    assert np.linalg.norm(encoding_of().decode(found.total)) > 90


class KnowsTheKey(ProvingParty):
    """Knows where its proof will be looked at, and bends it there: a row five times too long."""

    key = b""

    def _shared(self, made_for, nonce, encoding, row):
        proved, steps = encoding.proved, 5 * encoding.encode(row)
        [proof] = proved.proofs
        seeds = [mask_bytes(share_key(one, made_for), ZERO_NONCE, proved.seed_bytes) for one in self._bonds[:-1]]
        ctx = proof_context(self._epoch, made_for, self._public)
        own = secrets.token_bytes(proved.own_bytes)
        public, letter = proved.shard(ctx, steps, nonce, seeds, own, lambda p: FalseClaim(p.shape, p.shares).shard)
        q, inner = FIELD.modulus, _inner(ctx, 0)
        size = proof._sizes("query_size")
        t = int(proof.domain.numbers(FIELD, size, QUERY, inner, self.key, proof._counts, nonce)[0])
        [gadget] = proof.norm.circuit.gadgets
        missing = (proof.shape.bound2 - sum(int(v) ** 2 for v in steps)) % q
        bent = [(int(w) - t) % q for w in nodes(FIELD, 2 * gadget.nodes)]
        scale = missing * pow(sum(bent[2 * k] for k in range(1, gadget.calls + 1)) % q, -1, q) % q
        words = FIELD.decode(letter[:-64], len(letter[:-64]) // 8)
        at = proof.shape.shared + gadget.arity
        words[at : at + gadget.sent] = FIELD.add(
            words[at : at + gadget.sent], FIELD.of([scale * b % q for b in bent[: gadget.sent]])
        )
        return public, FIELD.encode(words) + letter[-64:]


def test_limit_a_party_that_knows_the_verification_key_passes_a_row_five_times_too_long():
    server, parties = verified(5, 2, {0: KnowsTheKey, 1: KnowsTheKey})
    drive(server.open(), parties)
    parties[IDS[0]].key = server.aggregators[0]._key_of_epoch
    parties[IDS[1]].key = bytes(32)  # a wrong guess
    found = ask(server, parties, encoding_of(), exact=False)
    assert found.counted == (IDS[0], *IDS[2:5])


# ---- malformed letters
class Malformed(ProvingParty):
    """Seals what is no share: its words are not below the modulus, or are too few."""

    made = staticmethod(lambda letter: letter)

    def _shared(self, *given):
        public, letter = super()._shared(*given)
        return public, self.made(letter)


@pytest.mark.parametrize(
    "made",
    [lambda raw: b"\xff" * len(raw), lambda raw: b"\xff" * 8 + raw[8:], lambda raw: bytes(len(raw)), lambda raw: raw[:-8]],
)
def test_a_malformed_letter_loses_its_row_and_the_round_goes_on(made):
    server, parties = verified(5, 2, {2: type("One", (Malformed,), {"made": staticmethod(made)})})
    assert ask(server, parties, encoding_of(size=6)).counted == (*IDS[:2], *IDS[3:5])


def test_made_up_bytes_crash_no_aggregator():
    rng = random.Random(3)
    server, parties = verified(5)
    ask(server, parties, encoding_of(size=3))
    for one in server.aggregators:
        steps = list(one.letters)
        for _ in range(300):
            step, raw = rng.choice(steps)
            raw = bytearray(raw)
            for _ in range(rng.randrange(1, 4)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            try:
                one.answer(rng.choice([step, step, "judge"]), bytes(raw[: rng.choice([None, rng.randrange(len(raw))])]))
            except HedgerowError:
                continue
    drive(server.open(), parties)
    assert ask(server, parties, encoding_of(size=3)).counted == IDS[:5]


# ---- settings
def test_settings():
    for settings in ({"aggregators": 4}, {"verified": 1}):
        with pytest.raises(SettingsInvalid, match="HR-511"):
            AdditiveShares(**{"verified": True} | settings)
    assert not AdditiveShares(4).verified


def test_an_aggregator_of_verified_shares_adds_up_nothing_else():
    keys = [AgreementKey.fresh() for _ in range(2)]
    aggregators = [VerifyingAggregator(key, [one.public for one in keys]) for key in keys]
    settings = AdditiveShares(2)
    server = AdditiveServer(settings, IDS[:4], aggregators)
    parties = {id: AdditiveParty(id, settings, server.keys) for id in IDS[:4]}
    encoding = of_a_ring(3, 4)
    with pytest.raises(RoundRefused, match="'collect'"):
        drive(
            server.total(IDS[:4], encoding, b"q"), parties, contributions_of(rows_in_a_ring(parties, encoding), encoding, b"q")
        )


def test_three_kinds_of_liars_are_what_they_say():
    """Each of them passes but for the rule that it breaks: the norm, the bits, the checks."""
    assert {ClaimsTheBound, SendsFatBits, WrapsAround} < set(LIARS)
    root = 2**40 - 2**24 - 2**8
    assert root * root % FIELD.modulus == 2
