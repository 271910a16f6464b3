"""`cross` as a question of the waist: results, refusals, ledger, noise and what the hub carries."""

import math

import cross_locals as here
import numpy as np
import pytest
from cross_locals import COLUMNS, Listed, ages, failing, long, nearly_alike, own, predictor, ragged, tables, uneven
from scipy.stats import chi2

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.crypto import peer_protocol
from hedgerow.crypto.cross.pads import pad_of
from hedgerow.crypto.peers import HUB
from hedgerow.errors import (
    AlignmentRefused,
    ArgumentInvalid,
    BudgetExhausted,
    ContributionInvalid,
    NotAligned,
    PartyDeclined,
    RangeExceeded,
    SettingsInvalid,
    TooFewRecords,
    UnboundedSum,
    UnlawfulChannel,
)
from hedgerow.vertical import ColumnReach, Factors
from hedgerow.vertical.openings import SECRET

TWO, THREE, FOUR = ("tax", "town"), ("tax", "town", "school"), ("tax", "town", "clinic", "school")
ENGINES = {"in process": lambda: hr.InProcess(), "loop": lambda: hr.Loop(), "processes": lambda: hr.Processes(2)}


def aligned(names=TWO, n=here.PEOPLE, least=10, **more):
    held, X = tables(names, n)
    return hr.simulate(held, on="nin", seed=0, **more).align(on="nin", by=Listed(least)), X


def reach(names=TWO):
    """Everything is at most one."""
    return {name: ColumnReach((1.0,) * len(COLUMNS[name])) for name in names if COLUMNS[name]}


def asked(both):
    return len(both.ledger.entries)


# ---- results ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("names", [TWO, THREE, FOUR], ids=len)
def test_products_are_those_of_the_pooled_columns(names):
    both, X = aligned(names)
    close = {"rtol": 0, "atol": 1e-5}
    np.testing.assert_allclose(both.cross(own), X.T @ X, **close)
    Y = np.stack([X[:, 2], np.ones(len(X))], 1)
    np.testing.assert_allclose(both.cross(own, ages), X.T @ Y, **close)
    np.testing.assert_allclose(both.cross(own, ages, np.array(0.5)), X.T @ Y / 2, **close)
    eta = both.sum(predictor)
    mean, pooled = 1 / (1 + np.exp(-eta)), 1 / (1 + np.exp(-X.sum(1)))
    np.testing.assert_allclose(both.cross(own, hub=mean)[:, 0], X.T @ pooled, **close)
    np.testing.assert_allclose(both.cross(own, ages, hub=np.hstack([mean, mean])), X.T @ (Y + pooled[:, None]), **close)
    weighted = both.cross(own, weights=mean[:, 0])  # three factors share the bits of the ring: 18 for a column
    np.testing.assert_allclose(weighted, (X * pooled[:, None]).T @ X, rtol=0, atol=60 * 2.0**-18)


def test_the_hubs_rows_are_taken_in_the_order_of_the_last_sum():
    both, X = aligned()
    stale = both.sum(predictor)[:, 0]
    both.sum(predictor)
    assert np.abs(both.cross(own, hub=stale)[:, 0] - X.T @ X.sum(1)).max() > 0.1


@pytest.mark.parametrize("engine", [pytest.param(name, marks=pytest.mark.slow) for name in ENGINES])
def test_every_engine_gives_the_same_products(engine):
    both, X = aligned(THREE, engine=ENGINES[engine]())
    noisy = both.protect(mechanism=hr.Gaussian(1e-6, at="shares", least=3))
    np.testing.assert_allclose(both.cross(own), X.T @ X, atol=1e-5)
    np.testing.assert_allclose(noisy.cross(own, bound=Factors(reach(THREE))), X.T @ X, atol=1e-2)
    weights = both.sum(predictor)[:, 0] ** 2
    np.testing.assert_allclose(both.cross(own, weights=weights), (X * (X.sum(1) ** 2)[:, None]).T @ X, atol=1e-3)


def test_the_same_columns_are_opened_once():
    both, _ = aligned(n=400)
    for _ in range(3):
        both.cross(own)
    first, *again = [sum(one.bytes.values()) for one in both.traffic[-3:]]
    assert first > 3 * 8 * 400
    assert max(again) < 2000


def test_a_desk_keeps_the_last_openings_and_writes_each_of_them_once():
    both, _ = aligned()
    desk = inside(both._federation).run.engine.held.desks["town"]
    written = []
    put = desk.put
    desk.put = lambda name, entry: (written.append(name), put(name, entry))[1]
    for step in (1, 1, 2, 3, 4, 5, 5):
        both.cross(own, None, np.array(float(step)))
    assert [name for name in written if name.startswith("cross opening ")] == [
        f"cross opening {i} of tax" for i in (0, 1, 2, 3, 0)
    ]


def test_columns_that_a_question_describes_otherwise_and_those_behind_noise_are_opened_anew():
    """Letters that are not sent would tell that columns are the same, which no noise covers."""
    both, _ = aligned(n=400)
    noisy = both.protect(mechanism=hr.Gaussian(1.0, at="shares", least=2))
    both.cross(own)
    both.cross(own, None, np.array(1.0))
    for _ in range(2):
        noisy.cross(own, bound=Factors(reach()))
    assert len({sum(one.bytes.values()) for one in both.traffic[-4:]}) == 1


def test_openings_that_are_not_remembered_alike_are_made_anew():
    """As where a station forgot, or a question came to an end at some parties alone."""
    both, X = aligned(THREE)
    both.cross(own)
    held = inside(both._federation).run.engine.held
    for name, entry in (("town", "cross opened by tax"), ("tax", "cross pads")):
        held.desks[name].put(entry, {})
        np.testing.assert_allclose(both.cross(own), X.T @ X, atol=1e-5)


# ---- refusals -----------------------------------------------------------------------------------------------------------
def test_v11_too_few_common_people_are_refused_before_anybody_is_asked():
    both, _ = aligned(n=9, least=10)
    before = asked(both)
    with pytest.raises(AlignmentRefused, match="9 people, of whom at least 10") as refused:
        both.cross(own)
    assert asked(both) == before
    assert refused.value.asked is False


@pytest.mark.parametrize("few", [1, 9])
@pytest.mark.parametrize("given", ["hub", "weights"])
def test_v11_rows_of_the_hub_that_single_out_few_people_are_refused(given, few):
    both, X = aligned()
    both.sum(predictor)
    some = np.zeros(60)
    some[:few] = 1.0
    before = asked(both)
    for wrong in (some, 1 - some):
        with pytest.raises(TooFewRecords, match=f"singles out {few} of 60"):
            both.cross(own, **{given: wrong})
    assert asked(both) == before
    some[:10] = 1.0
    both.cross(own, **{given: some})
    np.testing.assert_allclose(both.cross(own, weights=np.ones(60)), X.T @ X, atol=1e-3)


def test_v5_reaches_without_room_are_refused_before_anybody_is_asked():
    both, _ = aligned()
    before = asked(both)
    for given in (
        {"weights": np.ones(60), "bound": Factors(ColumnReach(square=1e12))},
        {"bound": Factors(ColumnReach(square=1e20))},
    ):
        with pytest.raises(RangeExceeded, match="fraction bits"):
            both.cross(own, **given)
    assert asked(both) == before


def test_columns_beyond_their_reach_are_refused_at_home():
    both, _ = aligned()
    with pytest.raises(PartyDeclined) as refused:
        both.cross(long, bound=Factors(ColumnReach(square=1.0)))
    assert set(refused.value.codes.values()) == {RangeExceeded.code}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"weights": np.ones(60), "right": ages}, SettingsInvalid),
        ({"weights": np.ones(60), "hub": np.ones(60)}, SettingsInvalid),
        ({"hub": np.ones(59)}, SettingsInvalid),
        ({"hub": np.full(60, np.nan)}, SettingsInvalid),
    ],
)
def test_rows_of_the_hub_that_make_no_sense_are_refused(given, error):
    both, _ = aligned()
    before = asked(both)
    with pytest.raises(error):
        both.cross(own, **given)
    assert asked(both) == before


@pytest.mark.parametrize("rest", [0.0, 0.5])
@pytest.mark.parametrize("n", [1, 9, 51, 59])
def test_v11_a_column_of_few_people_is_refused_at_home(n, rest):
    """The product of one person's indicator with pay is that person's pay; of everybody's but one, the total less it."""
    both, _ = aligned()
    for ask in (lambda b: both.cross(nearly_alike, None, b), lambda b: both.cross(own, nearly_alike, b)):
        with pytest.raises(PartyDeclined) as refused:
            ask(np.array([n, rest]))
        assert set(refused.value.codes.values()) == {TooFewRecords.code}
    for lawful in (0, 10, 50, 60):
        both.cross(nearly_alike, None, np.array([lawful, rest]))


def test_behind_noise_no_column_is_refused_for_few_people():
    """A refusal would tell of single people, whom noise protects."""
    noisy = aligned()[0].protect(mechanism=hr.Gaussian(1e-6, at="shares", least=2))
    found = noisy.cross(nearly_alike, None, np.array([1.0, 0.0]), bound=Factors({"town": ColumnReach((1.0, 1.0))}))
    assert found[1, 1] == pytest.approx(1.0, abs=1e-3)


def test_rows_of_the_hub_need_a_sum_whose_order_they_have():
    both, _ = aligned()
    with pytest.raises(PartyDeclined) as refused:
        both.cross(own, hub=np.ones(60))
    assert set(refused.value.codes.values()) == {NotAligned.code}


def test_right_rows_of_different_widths_are_refused():
    both, _ = aligned()
    with pytest.raises((PartyDeclined, ContributionInvalid)):
        both.cross(own, uneven)


# ---- ledger, budget and noise ---------------------------------------------------------------------------------------------
def test_a_product_is_in_the_ledger_as_what_it_is():
    both, _ = aligned()
    both.cross(own)
    plain = both.ledger.entries[-1]
    assert (plain.verb, plain.event.kind, plain.aggregation) == ("sum", "nonprivate", "products between parties")
    noisy = both.protect(mechanism=hr.Gaussian(2.0, at="shares", least=2))
    noisy.cross(own, bound=Factors(reach()))
    entry = both.ledger.entries[-1]
    assert (entry.event.kind, entry.event.noise_multiplier, entry.unit) == ("gaussian", 2.0, "record")
    assert entry.numbers == 6  # of three columns: a symmetric matrix counts once
    assert entry.bound.startswith(f"l2({math.sqrt(6):.6g}) per record in steps of 2^-")


def test_a_budget_limits_products_and_refuses_those_without_noise():
    held, _ = tables(TWO)
    budget = hr.Budget(epsilon=1.0, delta=1e-6, unit="record")
    both = hr.simulate(held, on="nin", seed=0).within(budget).align(on="nin", by=Listed())
    with pytest.raises(BudgetExhausted):
        both.cross(own)
    noisy = both.protect(mechanism=hr.Gaussian(6.0, at="shares", least=2))
    noisy.cross(own, bound=Factors(reach()))
    spent = hr.Gaussian(0.5, at="shares", least=2)
    with pytest.raises(BudgetExhausted):
        both.protect(mechanism=spent).cross(own, bound=Factors(reach()))


@pytest.mark.parametrize("mechanism", [hr.Gaussian(2.0, at="shares", least=2), hr.Gaussian(2.0)], ids=str)
def test_noise_has_the_deviation_of_bound_and_multiplier(mechanism):
    """Eight releases of six numbers, with a false alarm in one of a billion."""
    both, X = aligned()
    noisy, exact = both.protect(mechanism=mechanism), X.T @ X
    upper = np.triu_indices(3)
    noise = np.concatenate([(noisy.cross(own, bound=Factors(reach())) - exact)[upper] for _ in range(8)])
    found = (noise**2).sum() / (2.0 * math.sqrt(6)) ** 2
    assert chi2.ppf(1e-9, noise.size) < found < chi2.isf(1e-9, noise.size)


def test_noise_needs_factors_and_shapes_that_are_known():
    both, _ = aligned()
    noisy = both.protect(mechanism=hr.Gaussian(1.0, at="shares", least=2))
    before = asked(both)
    for bound in (None, hr.l2(1.0, unit="record")):
        with pytest.raises(UnboundedSum, match="no scale"):
            noisy.cross(own, bound=bound)
    with pytest.raises(RangeExceeded):
        noisy.cross(own, bound=Factors({"tax": ColumnReach((1e15, 1.0)), "town": ColumnReach((1.0,))}))
    assert asked(both) == before


def test_rows_of_the_hub_behind_noise_are_cut_to_what_is_declared():
    both, X = aligned()
    both.sum(predictor)
    noisy = both.protect(mechanism=hr.Gaussian(1e-6, at="shares", least=2))
    with pytest.raises(UnboundedSum, match="largest values are not declared"):
        noisy.cross(own, weights=np.ones(60), bound=Factors(reach()))
    found = noisy.cross(own, weights=np.full(60, 9.0), bound=Factors(reach(), hub=ColumnReach((0.5,))))
    np.testing.assert_allclose(found, X.T @ X / 2, atol=1e-2)


def test_lengths_are_enough_where_made_up_people_show_the_shapes():
    both, X = aligned()
    noisy = both.protect(mechanism=hr.Gaussian(1e-6, at="shares", least=2))
    found = noisy.cross(own, bound=Factors(lengths=(math.sqrt(3), math.sqrt(3))))
    np.testing.assert_allclose(found, X.T @ X, atol=1e-3)
    found = noisy.cross(own, ages, bound=Factors(lengths=(math.sqrt(3), math.sqrt(2))))
    np.testing.assert_allclose(found, X.T @ np.stack([X[:, 2], np.ones(60)], 1), atol=1e-3)


def test_columns_behind_noise_are_cut_and_what_is_not_finite_is_zero():
    both, X = aligned()
    noisy = both.protect(mechanism=hr.Gaussian(1e-6, at="shares", least=2))
    cut = np.clip(10 * X, -1, 1)
    cut[3, 2] = 0
    np.testing.assert_allclose(noisy.cross(long, bound=Factors(reach())), cut.T @ cut, atol=1e-3)


def test_a_party_whose_function_fails_counts_as_zeros_behind_noise(caplog):
    both, X = aligned()
    noisy = both.protect(mechanism=hr.Gaussian(1e-6, at="shares", least=2))
    found = noisy.cross(failing, bound=Factors(reach()))
    X[:, 2] = 0
    np.testing.assert_allclose(found, X.T @ X, atol=1e-3)
    assert "counts as zeros at town: ValueError" in caplog.text


def test_shapes_that_people_decide_are_zeros_behind_noise():
    both, _ = aligned()
    noisy = both.protect(mechanism=hr.Gaussian(1e-6, at="shares", least=2))
    found = noisy.cross(ragged, bound=Factors({name: ColumnReach((1.0,) * 3) for name in TWO}))
    assert np.abs(found).max() < 1e-3


def test_made_up_people_for_whom_a_function_fails_are_a_refusal(monkeypatch):
    both, _ = aligned()
    monkeypatch.setitem(COLUMNS, "town", ["unknown"])
    noisy = both.protect(mechanism=hr.Gaussian(1.0, at="shares", least=2))
    with pytest.raises(UnlawfulChannel, match="not known before parties are asked"):
        noisy.cross(own, bound=Factors(lengths=(1.0, 1.0)))


def test_factors_are_lengths_that_make_sense():
    for wrong in ((0.0, 1.0), (math.inf, 1.0)):
        with pytest.raises(SettingsInvalid):
            Factors(lengths=wrong)
    with pytest.raises(ArgumentInvalid):
        hr.vertical.Factors(lengths=1.0)
    assert Factors(lengths=(2.0, 3.0)).radius == 6.0
    assert Factors().radius == math.inf


# ---- what the hub carries -------------------------------------------------------------------------------------------------
def test_v3_the_hub_carries_sealed_openings_that_its_seeds_do_not_open(monkeypatch):
    """What the hub keeps of two parties' letters is uniform, and with the pads that it knows it is no column."""
    carried = []
    deliver = peer_protocol._Carried._deliver

    def kept(self, sender, letters, came):
        carried.extend((sender, to, raw) for to, raw in letters.items())
        return deliver(self, sender, letters, came)

    monkeypatch.setattr(peer_protocol._Carried, "_deliver", kept)
    held, _ = tables(TWO, 600)
    for name in TWO:
        held[name][COLUMNS[name]] = 1.0  # the same number for everybody
    both = hr.simulate(held, on="nin", seed=0).align(on="nin", by=Listed())
    both.cross(own)
    boxes = [raw for sender, to, raw in carried if HUB not in (sender, to) and len(raw) > 8 * 600]
    assert len(boxes) == 2
    for raw in boxes:
        counts = np.bincount(np.frombuffer(raw, np.uint8), minlength=256)
        assert ((counts - len(raw) / 256) ** 2 / (len(raw) / 256)).sum() < chi2.isf(1e-9, 255)
    seed = next(raw for sender, to, raw in carried if (sender, to) == ("town", HUB) and len(raw) == 76)[-32:]
    box = next(raw for sender, to, raw in carried if (sender, to) == ("town", "tax") and len(raw) > 8 * 600)
    for cut in range(len(box) - 8 * 600 + 1):  # wherever the words may lie
        words = np.frombuffer(box[cut : cut + 8 * 600], "<u8").reshape(600, 1) + pad_of(seed, 600, 1)
        assert len(np.unique(words)) > 500


def test_secrets_of_pads_stay_on_a_partys_desk():
    both, _ = aligned()
    both.cross(own)
    desks = inside(both._federation).run.engine.held.desks
    secrets = {desks[name].get(SECRET)["secret"] for name in TWO}
    assert len(secrets) == 2
    assert all(len(one) == 32 for one in secrets)
