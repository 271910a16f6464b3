"""The handle of parties that hold different columns: alignment, seats, and what a party keeps."""

import numpy as np
import pytest
from tables_apart import tables
from vertical_locals import ages, numbers, one_row, remember, salaries, scaled, three_times, told

import hedgerow as hr
from hedgerow.errors import (
    BudgetExhausted,
    BudgetInvalid,
    ColumnsDiffer,
    HedgerowError,
    MissingColumn,
    NotAligned,
    PartyDeclined,
    SchemaInvalid,
    UnlawfulChannel,
)
from hedgerow.vertical import X25519

ENGINES = {"in process": lambda: hr.InProcess(), "loop": lambda: hr.Loop(), "processes": lambda: hr.Processes(2)}


def test_the_handle_says_what_is_public(aligned, two):
    assert aligned.n == len(two[1])
    assert list(aligned.names) == ["tax", "town"]
    assert aligned.schemas["town"].names == ("age", "gender", "dose")
    assert aligned.owner("salary") == "tax"
    with pytest.raises(MissingColumn, match="salary"):
        aligned.owner("salari")


@pytest.mark.parametrize("engine", [pytest.param(name, marks=pytest.mark.slow) for name in ENGINES])
def test_rows_reach_their_seats_on_every_engine(engine, two):
    both = hr.simulate(two[0], on="nin", seed=0, engine=ENGINES[engine]()).align(on="nin", by=X25519(least=10))
    pooled = two[1]
    want = np.sort(pooled["salary"] + pooled["age"] + pooled["dose"])
    np.testing.assert_allclose(np.sort(both.sum(numbers)[:, 0]), want, atol=1e-8)
    for _ in range(2):
        both.send(salaries, parties=["tax"], to="town", then=remember)
    seen = both.sum(told)[:, 0]
    assert np.allclose(seen, float(pooled["age"] @ pooled["salary"]), rtol=1e-6)


def test_v9_the_hub_sees_another_order_each_time(aligned):
    first, second = aligned.sum(numbers)[:, 0], aligned.sum(numbers)[:, 0]
    np.testing.assert_allclose(np.sort(first), np.sort(second), atol=1e-9)
    assert (first == second).mean() < 0.5


def test_v1_rows_are_in_the_ledger_and_a_budget_refuses_them(aligned, two):
    aligned.sum(numbers)
    aligned.send(salaries, parties=["tax"], to="town", then=remember)
    assert [entry.event.kind for entry in aligned.ledger.entries] == ["none", "rows", "rows"]
    within = hr.simulate(two[0], on="nin", seed=0).within(hr.Budget(epsilon=1.0, delta=1e-6, unit="record"))
    both = within.align(on="nin", by=X25519(least=10))
    for ask in (lambda: both.sum(numbers), lambda: both.send(salaries, parties=["tax"], to="town", then=remember)):
        with pytest.raises(BudgetExhausted):
            ask()


def test_rows_do_not_go_through_noise(aligned):
    noisy = aligned.protect(mechanism=hr.Gaussian(1.0, at="shares", least=2))
    with pytest.raises(UnlawfulChannel, match="rows"):
        noisy.sum(numbers)
    with pytest.raises(UnlawfulChannel, match="rows"):
        noisy.send(salaries, parties=["tax"], to="town", then=remember)


def test_rows_of_the_hub_in_two_orders_are_refused(aligned):
    """As where a party failed after the others had written: a product by two orders would be of wrong people."""
    from hedgerow.engines.simulation import records

    weights = np.ones(len(aligned.sum(numbers)))
    assert aligned.cross(scaled, weights=weights).shape == (2, 2)
    records(aligned._federation).desks["tax"].put("last order", {"key": bytes(32)})
    with pytest.raises(PartyDeclined) as refused:
        aligned.cross(scaled, weights=weights)
    assert set(refused.value.codes.values()) == {NotAligned.code}


def test_a_budget_comes_before_answers_without_noise(aligned):
    aligned.sum(numbers)
    with pytest.raises(BudgetInvalid):
        aligned.within(hr.Budget(epsilon=1.0, delta=1e-6, unit="record"))


def test_v12_a_list_is_aligned_once(two):
    apart = hr.simulate(two[0], on="nin", seed=0)
    apart.align(on="nin", by=X25519(least=10))
    with pytest.raises(PartyDeclined) as refused:
        apart.align(on="nin", by=X25519(least=10))
    assert set(refused.value.codes.values()) == {NotAligned.code}


def test_v11_too_few_common_people_are_refused(two):
    with pytest.raises(PartyDeclined):
        hr.simulate(two[0], on="nin", seed=0).align(on="nin", by=X25519(least=41))


def test_more_openings_than_a_party_allows_are_refused(aligned, monkeypatch):
    monkeypatch.setattr("hedgerow.vertical.seat.MOST_OPENINGS", 2)
    aligned.sum(numbers)
    aligned.sum(numbers)
    with pytest.raises(PartyDeclined) as refused:
        aligned.sum(numbers)
    assert set(refused.value.codes.values()) == {NotAligned.code}


def test_every_column_of_rows_counts_as_an_opening(aligned, monkeypatch):
    monkeypatch.setattr("hedgerow.vertical.seat.MOST_OPENINGS", 5)
    aligned.sum(three_times)
    with pytest.raises(PartyDeclined):
        aligned.sum(three_times)


def test_v6_a_question_that_is_asked_again_has_other_masks(two, monkeypatch):
    """The same question number twice, as after a failure: the hub cannot take one row from the other."""
    from hedgerow.core.run import Run
    from hedgerow.vertical import seat

    rows, packed = [], seat.masked
    monkeypatch.setattr(seat, "masked", lambda *args: rows.append(packed(*args)) or rows[-1])
    both = hr.simulate(two[0], on="nin", seed=0).align(on="nin", by=X25519(least=10))
    monkeypatch.setattr(Run, "next_question", lambda self, branch: 7)
    both.sum(numbers)
    both.sum(numbers)
    assert not (rows[0] == rows[2]).any()


def test_a_refused_alignment_is_not_tried_again(two):
    apart = hr.simulate(two[0], on="nin", seed=0)
    for least in (41, 10):
        with pytest.raises(PartyDeclined):
            apart.align(on="nin", by=X25519(least=least))


def test_v3_what_the_hub_carries_between_parties_is_sealed(two, monkeypatch):
    """Neither a salary nor an id is in a box; the same letter twice makes two boxes that share no bytes."""
    from hedgerow.crypto import sealing

    boxes, sealed = [], sealing.PairSecrets.sealed

    def watched(self, letter, *about):
        boxes.append((bytes(letter), sealed(self, letter, *about)))
        return boxes[-1][1]

    monkeypatch.setattr(sealing.PairSecrets, "sealed", watched)
    both = hr.simulate(two[0], on="nin", seed=0).align(on="nin", by=X25519(least=10))
    for _ in range(2):
        both.send(salaries, parties=["tax"], to="town", then=remember)
    assert boxes
    assert not any(letter and letter in box for letter, box in boxes)
    last, before = boxes[-1], boxes[-2]
    assert last[0] == before[0]
    assert not any(last[1][i : i + 8] in before[1] for i in range(0, len(last[1]) - 8, 8))
    ids = [nin.encode() for frame in two[0].values() for nin in frame["nin"]]
    assert not any(nin in box for nin in ids for _, box in boxes[:20])


def test_masked_rows_at_the_hub_are_uniform(two, monkeypatch):
    """Each byte value of a masked row comes as often as of a uniform stream: a chi-square below its 1 - 1e-6 quantile."""
    from scipy.stats import chi2

    from hedgerow.vertical import seat

    rows, packed = [], seat.masked

    def watched(*args):
        rows.append(packed(*args))
        return rows[-1]

    monkeypatch.setattr(seat, "masked", watched)
    both = hr.simulate(two[0], on="nin", seed=0).align(on="nin", by=X25519(least=10))
    for _ in range(30):
        both.sum(numbers)
    for party in (0, 1):
        seen = np.concatenate([row.reshape(-1).view(np.uint8) for row in rows[party::2]])
        counts = np.bincount(seen, minlength=256)
        assert ((counts - len(seen) / 256) ** 2 / (len(seen) / 256)).sum() < chi2.isf(1e-6, 255)


def test_hidden_rows_of_two_parties_are_a_total(two):
    frames = dict(two[0])
    frames["shop"] = frames["town"][["nin", "age"]].rename(columns={"age": "spent"})
    both = hr.simulate(frames, on="nin", seed=0).align(on="nin", by=X25519(least=10))
    both.send(numbers, parties=["tax", "town"], to="shop", then=remember_total, hidden=True)
    pooled = two[1]
    total = (pooled["salary"] + pooled["age"] + pooled["dose"]).sum()
    assert np.allclose(both.sum(told), total, atol=1e-6)
    assert "the total of rows of tax, town (numbers)" in both.saw["shop"]


@hr.local
def remember_total(broadcast, party, rng):
    party.state["seen"] = np.atleast_1d(party.received.sum())


def test_one_party_sends_to_several(aligned, two):
    aligned.send(ages, parties=["town"], to=["tax", "town"], then=remember)
    pooled = two[1]
    want = {float(pooled["age"] @ pooled["salary"]), float(pooled["age"] @ pooled["age"])}
    assert np.allclose(aligned.sum(told)[0, 0], sum(want), rtol=1e-6)


def test_what_cannot_be_asked_is_refused(aligned, two):
    with pytest.raises(MissingColumn, match="bank"):
        aligned.send(salaries, parties=["tax"], to="bank", then=remember)
    with pytest.raises(PartyDeclined):
        aligned.sum(one_row)
    frames = two[0]
    with pytest.raises(MissingColumn, match="nin"):
        hr.simulate({"tax": frames["tax"], "town": frames["town"].drop(columns="nin")}, on="nin")
    with pytest.raises(SchemaInvalid):
        hr.simulate(frames["tax"], on="nin")
    with pytest.raises(NotAligned):
        hr.simulate({"tax": frames["tax"]}, on="nin").align(on="nin", by=X25519())
    both = {"tax": frames["tax"], "town": frames["town"].assign(salary=1.0)}
    with pytest.raises(ColumnsDiffer, match="salary"):
        hr.simulate(both, on="nin").align(on="nin", by=X25519(least=10)).owner("salary")


def test_questions_to_parties_apart_need_an_alignment(two):
    apart = hr.simulate(two[0], on="nin", seed=0)
    with pytest.raises((NotAligned, HedgerowError)):
        hr.stats.means(apart, ["age"])


def test_traffic_tells_bytes_by_role(aligned):
    aligned.sum(numbers)
    last = aligned.traffic[-1]
    assert last.bytes[("tax", "hub")] == last.bytes[("town", "hub")] == 16 + 8 * aligned.n
    assert last.rounds == 2
    assert tables()[1].shape[0] == aligned.n
