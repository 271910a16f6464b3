"""Servers that ask so that a hidden total is about one party: what stops them, and twins of our protocols that do not.

Forged letters of inconsistent models, neighbours of the server's choice and cohorts of colluders are attacked letter by letter
in `tests/crypto/test_secagg_traps_cohort.py` and `tests/crypto/test_secagg_lying.py`.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.attacks import InconsistentServer, differences, invert, psnr, silencing_weights, sybil_cohort
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2
from hedgerow.crypto import SecAgg, aggregation
from hedgerow.crypto import secagg as protocol
from hedgerow.crypto.conversation import Contribution, drive
from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.crypto.keys import Identity, Roster
from hedgerow.crypto.standing import StandingSet
from hedgerow.errors import BudgetExhausted, DisclosureExceeded, RoundRefused, SettingsInvalid
from hedgerow.learn.local import gradient
from hedgerow.learn.models import linear, mlp
from hedgerow.learn.tensors import prepared
from hedgerow.learn.training import model_of
from hedgerow.privacy import Budget, Gaussian

N = 6
TABLE = hr.data.load("digits").take(range(N))
X = np.asarray(TABLE["image"]) / 16.0
NETWORK = mlp(64, [16], 10)
HIDDEN = SecAgg(largest=64.0)


def federation(**settings):
    return hr.simulate(TABLE, hr.data.of_sizes([1] * N, shuffled=False), record_views=True, **settings)


def ask(handle, which=range(N), **protection):
    model = model_of(NETWORK, handle, None)
    cohort = prepared(handle).pick([handle.names[i] for i in which]) if len(which) < N else prepared(handle)
    return cohort.protect(**{"aggregation": HIDDEN, **protection}).sum(partial(gradient, model=model), model.initial)


# ---- inconsistent models ----------------------------------------------------------------------------------------------------
def inconsistent():
    """A federation whose server sends the third party the model, and all others one that is silent."""
    model = model_of(NETWORK, federation(), None)
    server = InconsistentServer(hr.engines.InProcess(threads=1), "party 3", silencing_weights(model))
    return hr.engines.on(federation(), server), server


def test_a_silenced_first_layer_has_no_slope():
    model = model_of(NETWORK, federation(), None)
    view = prepared(federation())
    found = view.sum(partial(gradient, model=model), silencing_weights(model))["gradient"]
    parts = model.named(found)
    assert not parts["1.weight"].any()
    assert not parts["1.bias"].any()
    assert parts["3.bias"].any()


def test_parties_that_are_sent_another_model_refuse_and_the_round_is_void():
    handle, server = inconsistent()
    with pytest.raises(RoundRefused) as refusal:
        ask(handle)
    assert "HR-242 (5)" in str(refusal.value)
    assert set(server.refused.values()) == {"HR-242"}
    assert [one for one in hr.engines.view(handle, "server") if one.kind == "release"] == []


def test_a_twin_whose_questions_forget_the_model_gives_the_row_away(monkeypatch):
    real = aggregation.context_of

    def forgetful(outbox, layout=None):
        return real(replace(outbox, question=replace(outbox.question, broadcast=None)), layout)

    monkeypatch.setattr(aggregation, "context_of", forgetful)
    handle, server = inconsistent()
    ask(handle)
    found = invert(hr.engines.view(handle, "server"), NETWORK, TABLE.schema, by="one")
    assert server.refused == {}
    assert (found.parties, found.records) == (6, 6)
    assert found.psnr_against(X[2:3])[0] >= 100


def test_only_networks_can_be_silenced():
    with pytest.raises(SettingsInvalid, match="has 1 layers"):
        silencing_weights(model_of(linear(64, 10), federation(), None))


# ---- sybils -----------------------------------------------------------------------------------------------------------------
ROW = np.array([3.0, -1.5, 0.25])


def contribution():
    return Contribution(Layout((("", (3,)),)), ROW, RingEncoding(64, 3, ((3, 2.0**-20),)), b"model")


def test_a_party_that_is_told_its_cohort_gives_its_row_to_a_server_that_invents_the_others():
    found = sybil_cohort(protocol.SecAggParty("clinic", protocol.SecAgg()), contribution())
    assert found.cohort == 3
    assert found.refused == {}
    assert found.row == pytest.approx(ROW, abs=1e-12)


def active(party=protocol.SecAggParty):
    """A party that pins a roster of three."""
    names, settings = ("clinic", "north", "south"), protocol.SecAgg(adversary="active")
    identities = {name: Identity.fresh() for name in names}
    roster = Roster({name: one.public for name, one in identities.items()})
    return party("clinic", settings, roster, identities["clinic"])


def test_keys_that_nobody_of_the_roster_signed_are_refused():
    found = sybil_cohort(active(), contribution(), sybils=("north", "south"))
    assert found.row is None
    assert found.refused == {"clinic": "HR-244"}


class Trusting(protocol.SecAggParty):
    """Takes any key that it is given under a name of the roster, and any signature."""

    def _check_keys(self, name, ids, publics, signatures):
        pass

    def _check_agreement(self, epoch, now, survivors, signers, signatures):
        pass


def test_a_twin_that_checks_no_signature_gives_its_row():
    found = sybil_cohort(active(Trusting), contribution(), sybils=("north", "south"))
    assert found.refused == {}
    assert found.row == pytest.approx(ROW, abs=1e-12)


# ---- differencing -----------------------------------------------------------------------------------------------------------
def test_two_exact_secure_totals_over_all_and_all_but_one_give_its_row():
    handle = federation()
    ask(handle)
    ask(handle, [i for i in range(N) if i != 1])
    rows = differences(hr.engines.view(handle, "server"))
    assert [row.source for row in rows] == ["party 2"]
    found = invert(rows, NETWORK, TABLE.schema, party="party 2")
    assert (found.by, found.records, found.parties) == ("one", 1, 1)
    assert found.psnr_against(X[1:2])[0] >= 100


def test_totals_that_differ_by_two_parties_and_other_questions_give_none():
    handle = federation()
    ask(handle)
    ask(handle, range(4))
    view = hr.engines.view(handle, "server")
    assert differences(view) == []
    other = [replace(one, query="other") if one.round == 2 else one for one in view]
    assert differences(other, cohorts={2: handle.names[:5]}) == []
    assert [one.source for one in differences(view, cohorts={2: handle.names[:5]})] == ["party 6"]


def test_totals_at_two_models_give_none():
    handle = federation()
    ask(handle)
    model = model_of(NETWORK, handle, None)
    cohort = prepared(handle).pick(handle.names[1:]).protect(aggregation=HIDDEN)
    cohort.sum(partial(gradient, model=model), model.initial + np.float32(0.1))
    assert differences(hr.engines.view(handle, "server")) == []
    ask(handle, range(1, N))  # the third total is at the first model again
    assert [(one.round, one.source) for one in differences(hr.engines.view(handle, "server"))] == [(1, "party 1")]


def test_noise_in_both_totals_is_in_the_difference_twice():
    """The variance of 1211 numbers is known to 4.1 %: five deviations are 20 %, so one false alarm in a million."""
    handle = federation()
    model = model_of(NETWORK, handle, None)
    private = prepared(handle).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    cohorts = {1: handle.names, 2: handle.names[1:]}
    for names in cohorts.values():
        private.pick(names).sum(partial(gradient, model=model), model.initial)
    (row,) = differences([one for one in hr.engines.view(handle, "server") if one.kind == "release"], cohorts=cohorts)
    noise = np.asarray(row.values)
    assert np.var(noise) == pytest.approx(2.0, rel=5 * np.sqrt(2 / len(noise)))
    found = invert([row], NETWORK, TABLE.schema, party="party 1", by="one", records=1)
    assert found.psnr_against(X[:1])[0] < psnr(X.mean(0), X[0])


def test_a_budget_refuses_the_second_total():
    handle = federation().within(Budget(epsilon=5.0, delta=1e-5, unit="party"))
    private = {"clip": l2(1.0), "mechanism": Gaussian(1.0)}
    model = model_of(NETWORK, handle, None)
    whole = prepared(handle).protect(**private)
    whole.sum(partial(gradient, model=model), model.initial)
    with pytest.raises(BudgetExhausted):
        prepared(handle).pick(handle.names[1:]).protect(**private).sum(partial(gradient, model=model), model.initial)


def test_a_limit_of_exact_numbers_refuses_the_first():
    with pytest.raises(DisclosureExceeded):
        ask(federation(disclosure=1 / 3))


def test_parties_that_keep_to_one_set_refuse_the_second_total():
    """Between stations: the same protocol, with a set of parties that each keeps (HR-245)."""
    names, settings = [f"p{i}" for i in range(5)], protocol.SecAgg()
    for standing, refused in ((StandingSet, True), (lambda: None, False)):
        parties = {name: protocol.SecAggParty(name, settings, standing=standing()) for name in names}
        server = protocol.Server(settings, names)
        given = {name: replace(contribution(), encoding=RingEncoding(64, 5, ((3, 2.0**-20),)), steady=True) for name in names}
        encoding, codes = given["p0"].encoding, {}
        drive(server.total(names, encoding, b"model"), parties, given)
        second = server.total(names[1:], encoding, b"model")
        if refused:
            with pytest.raises(RoundRefused):
                drive(second, parties, given, refused=codes)
            assert set(codes.values()) == {"HR-245"}
        else:
            assert drive(second, parties, given).counted == tuple(names[1:])
