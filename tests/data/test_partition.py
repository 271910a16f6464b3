"""Partitioners: what each promises, and what all of them promise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.data import (
    PARTITIONERS,
    Column,
    Schema,
    Table,
    by_column,
    concept_drift,
    concept_shift,
    covariate_shift,
    dirichlet_labels,
    dirichlet_quantity,
    feature_noise,
    iid,
    labels_per_party,
    of_sizes,
    partitioner,
    shards,
    stores,
)
from hedgerow.errors import EmptyParty, HedgerowWarning, MissingColumn, PartitionInvalid

LEVELS = ("a", "b", "c", "d")
SCHEMA = Schema(
    (
        Column("x", "number", low=-4, high=4, clip=True),
        Column("k", "integer", low=0, high=9),
        Column("open", "number"),
        Column("image", "integer", low=0, high=255, shape=(4, 4)),
        Column("y", "category", levels=LEVELS, role="target"),
        Column("charge", "number", low=0, high=10, role="ignore"),
        Column("sick", "binary", role="ignore"),
    )
)


def records(n=120, seed=0):
    return Table(SCHEMA.synthetic(n, np.random.default_rng(seed)), SCHEMA, name="records")


TABLE = records()


@st.composite
def schemes(draw):
    parties = draw(st.integers(1, 6))
    alpha, fraction = draw(st.floats(0.2, 50)), draw(st.floats(0, 1))
    return draw(
        st.sampled_from(
            [
                by_column("y"),
                by_column("k"),
                iid(parties),
                stores(),
                of_sizes([7, 1, 12][:parties], draw(st.booleans())),
                shards(parties, draw(st.integers(1, 3))),
                labels_per_party(parties, draw(st.integers(1, 4))),
                dirichlet_labels(parties, alpha),
                dirichlet_quantity(parties, alpha, min_records=3),
                feature_noise(parties, fraction),
                covariate_shift(parties, "x", fraction),
                concept_drift(parties, degrees=draw(st.sampled_from([15.0, 90.0])), shift=fraction),
                concept_shift(parties, fraction),
            ]
        )
    )


@given(schemes(), st.sampled_from(["y", "charge", "sick", "k"]), st.integers(0, 2**31))
def test_every_partition_is_disjoint_complete_non_empty_and_deterministic(scheme, target, seed):
    table = TABLE.with_roles(target=target)
    try:
        partition = scheme(table, seed)
    except (EmptyParty, PartitionInvalid):
        assume(False)
    together = np.concatenate(partition.indices)
    assert len(np.unique(together)) == len(together)
    assert all(len(part) for part in partition.indices)
    assert len(together) == len(table) or "left out" in partition.sentence
    assert len(partition.names) == len(set(partition.names)) == len(partition)
    assert_array_equal(partition.heat.counts.sum(1), [len(part) for part in partition.indices])
    assert partition.heat.counts.shape == (len(partition.heat.rows), len(partition.heat.columns))
    again = scheme(table, seed)
    assert_array_equal(np.concatenate(again.indices), together)
    assert again.sentence == partition.sentence
    altered = partition.columns or {}
    for name, values in altered.items():
        assert values.dtype == table[name].dtype
        assert_array_equal(values, (again.columns or {})[name])
    table.schema.admit(table.columns | altered)  # altered values stay inside their declared range


def test_another_seed_gives_another_partition():
    first, second = iid(3)(TABLE, 1), iid(3)(TABLE, 2)
    assert not np.array_equal(first.indices[0], second.indices[0])


def test_the_table_itself_is_never_altered():
    before = {name: values.copy() for name, values in TABLE.columns.items()}
    for scheme in (feature_noise(3, 0.5), concept_drift(3), concept_shift(3, 1.0)):
        scheme(TABLE, 0)
    for name, values in before.items():
        assert_array_equal(TABLE[name], values)


def test_natural_parties_are_named_after_their_values():
    partition = by_column("y")(TABLE, 0)
    assert partition.names == LEVELS
    assert_array_equal(partition.heat.counts, np.diag(np.bincount(TABLE["y"])))
    assert by_column("k")(TABLE, 0).names == tuple("0123456789")


def test_tables_of_parties_hold_the_altered_columns():
    partition = concept_shift(4, 1.0)(replace(TABLE, test=TABLE), 0)
    tables = partition.tables(TABLE)
    assert sum(map(len, tables)) == len(TABLE)
    assert_array_equal(tables[1]["y"], partition.columns["y"][partition.indices[1]])
    assert tables[0].test is None
    assert tables[0].name == "party 1"


def test_iid_sizes_differ_by_at_most_one():
    assert sorted(map(len, iid(7)(TABLE, 0).indices)) == [17] * 6 + [18]


def test_stores_hold_one_record_each():
    assert stores()(TABLE, 0).heat.counts.shape == (120, 4)


def test_shards_give_each_party_few_labels():
    table = TABLE.take(np.argsort(TABLE["y"], kind="stable")[: 4 * (np.bincount(TABLE["y"]).min() // 4)])
    counts = shards(8, 1)(table, 0).heat.counts
    assert (counts > 0).sum(1).max() <= 2


def test_shards_of_a_numeric_target_are_ranges():
    partition = shards(4, 1)(TABLE.with_roles(target="charge"), 0)
    spans = sorted((TABLE["charge"][part].min(), TABLE["charge"][part].max()) for part in partition.indices)
    assert all(low[1] <= high[0] for low, high in pairwise(spans))
    assert len(partition.heat.columns) == 10


def test_each_party_holds_its_number_of_labels():
    counts = labels_per_party(6, 2)(TABLE, 0).heat.counts
    assert_array_equal((counts > 0).sum(1), 2)
    assert_array_equal((counts > 0).sum(0), 3)


def test_labels_that_no_party_holds_are_left_out_and_counted():
    partition = labels_per_party(1, 3)(TABLE, 0)
    left_out = len(TABLE) - sum(map(len, partition.indices))
    assert left_out > 0
    assert f" {left_out} records of labels that no party holds are left out." in partition.sentence


def test_more_labels_than_occur_are_refused():
    with pytest.raises(PartitionInvalid, match=r"labels=5.*\n.*at most 4"):
        labels_per_party(2, 5)(TABLE, 0)


def test_parties_may_hold_their_own_numbers_of_labels():
    counts = np.array(labels_per_party(2, [1, 2])(TABLE, 0).heat.counts)
    assert (counts > 0).sum(1).tolist() == [1, 2]
    assert ((counts > 0).sum(0) <= 1).all()
    with pytest.raises(PartitionInvalid, match="one for each of 3 parties"):
        labels_per_party(3, [1, 2])


def test_large_alpha_gives_parties_alike_and_small_alpha_does_not():
    alike = dirichlet_labels(4, 1e6)(TABLE, 0).heat.counts
    assert np.ptp(alike, axis=0).max() <= 2
    apart = dirichlet_labels(4, 0.1)(records(2000), 0).heat.counts
    assert (apart.max(0) / apart.sum(0)).mean() > 0.6


def test_quantity_skew_leaves_labels_alike():
    counts = dirichlet_quantity(3, 0.5, min_records=200)(records(4000), 1).heat.counts
    assert np.ptp(counts.sum(1)) > 500
    assert_allclose(counts / counts.sum(1, keepdims=True), 0.25, atol=0.1)


def test_smallest_party_has_min_records_or_the_scheme_gives_up():
    assert min(map(len, dirichlet_quantity(4, 1.0, min_records=10)(TABLE, 0).indices)) >= 10
    with pytest.raises(PartitionInvalid, match="needs 200 records, the table has 120"):
        dirichlet_labels(4, 1.0, min_records=50)(TABLE, 0)


@pytest.mark.slow
def test_hopeless_dirichlet_draws_end_with_a_remedy():
    with pytest.raises(EmptyParty, match="Raise alpha"):
        dirichlet_labels(60, 0.01)(TABLE, 0)


def test_noise_has_the_declared_variance_at_each_party():
    table = Table({"open": np.zeros(40_000)}, SCHEMA.select(["open"])).declare(open=(-50, 50))
    partition = feature_noise(2, 1e-4)(table, 0)
    deviations = [partition.columns["open"][part].std() for part in partition.indices]
    assert_allclose(deviations, [100 * np.sqrt(0.5e-4), 100 * 1e-2], rtol=0.03)  # 4.2 standard errors of 20 000 draws


def test_noise_free_parties_keep_their_features():
    columns = feature_noise(3, 0)(TABLE, 0).columns
    assert all(np.array_equal(columns[name], TABLE[name]) for name in columns)
    assert set(columns) == {"x", "k", "open", "image"}


def test_covariate_shift_goes_from_a_random_deal_to_ranges():
    whole = covariate_shift(3, "x", 1.0)(TABLE, 0)
    spans = [(TABLE["x"][part].min(), TABLE["x"][part].max()) for part in whole.indices]
    assert spans == sorted(spans)
    assert spans[0][1] <= spans[1][0]
    none = covariate_shift(3, "x", 0.0)(records(6000), 0)
    assert np.ptp([records(6000)["x"][part].mean() for part in none.indices]) < 0.4


def test_images_are_turned_and_numbers_are_moved():
    partition = concept_drift(4, degrees=90, shift=0.2)(TABLE, 0)
    third = partition.indices[2]
    assert_array_equal(partition.columns["image"][third], TABLE["image"][third][:, ::-1, ::-1])
    first, last = partition.indices[0], partition.indices[3]
    assert_allclose(partition.columns["x"][first], np.maximum(TABLE["x"][first] - 0.8, -4))
    assert_allclose(partition.columns["x"][last], np.minimum(TABLE["x"][last] + 0.8, 4))


def test_a_small_turn_has_the_sense_of_a_quarter_turn():
    bar = np.zeros((1, 9, 9), np.uint8)
    bar[0, 4, 5:] = 255  # points right
    schema = Schema((Column("image", "integer", low=0, high=255, shape=(9, 9)),))
    table = Table({"image": np.repeat(bar, 2, 0)}, schema)
    for degrees in (89.0, 90.0):
        partition = concept_drift(2, degrees=degrees)(table, 0)
        turned = partition.columns["image"][partition.indices[1][0]]
        assert turned[:4].sum() > 0.9 * turned.sum()  # points up


def test_parties_of_given_sizes_hold_so_many_records_in_order_or_not():
    in_order, dealt = (of_sizes([30, 5], shuffled)(TABLE, 0) for shuffled in (False, True))
    assert [part.tolist() for part in in_order.indices] == [[*range(30)], [*range(30, 35)]]
    assert [len(part) for part in dealt.indices] == [30, 5]
    assert len(np.unique(np.concatenate(dealt.indices))) == 35
    assert max(map(max, dealt.indices)) > 35
    with pytest.raises(PartitionInvalid, match=f"add up to {len(TABLE)}"):
        of_sizes([len(TABLE), 1])(TABLE, 0)


def test_concept_shift_relabels_the_fraction_and_leaves_the_features():
    partition = concept_shift(3, 0.5)(TABLE, 0)
    assert set(partition.columns) == {"y"}
    changed = partition.columns["y"] != TABLE["y"]
    assert [changed[part].sum() for part in partition.indices] == [20, 20, 20]
    assert_array_equal(partition.heat.counts.sum(0), np.bincount(partition.columns["y"], minlength=4))


def test_concept_shift_is_one_permutation_at_each_party():
    partition = concept_shift(3, 1.0)(TABLE, 0)
    for part in partition.indices:
        pairs = set(zip(TABLE["y"][part], partition.columns["y"][part], strict=True))
        assert len(pairs) == len({before for before, _ in pairs}) == len({after for _, after in pairs}) == 4


def test_concept_shift_flips_binary_and_moves_numeric_targets():
    flipped = concept_shift(2, 1.0)(TABLE.with_roles(target="sick"), 0)
    assert_array_equal(flipped.columns["sick"], 1 - TABLE["sick"])
    moved = concept_shift(2, 0.2)(TABLE.with_roles(target="charge"), 0)
    last = moved.indices[1]
    assert_allclose(moved.columns["charge"][last], np.minimum(TABLE["charge"][last] + 1, 10))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: iid(0), "parties=0"),
        (lambda: iid(2.5), "parties=2.5"),
        (lambda: iid(True), "parties=True"),
        (lambda: of_sizes([]), "sizes=\\[\\]"),
        (lambda: of_sizes([3, 0]), "sizes=\\[3, 0\\]"),
        (lambda: shards(2, 0), "shards_per_party=0"),
        (lambda: dirichlet_labels(3, 0), "alpha=0"),
        (lambda: dirichlet_labels(3, float("nan")), "alpha=nan"),
        (lambda: dirichlet_quantity(3, 1.0, 0), "min_records=0"),
        (lambda: feature_noise(3, -1), "sigma=-1"),
        (lambda: covariate_shift(3, "x", 1.5), "strength=1.5"),
        (lambda: concept_drift(3, degrees=float("inf")), "degrees=inf"),
        (lambda: concept_shift(3, "half"), "fraction='half'"),
    ],
)
def test_settings_out_of_range_are_refused_with_their_value(make, says):
    with pytest.raises(PartitionInvalid, match=says) as refusal:
        make()
    assert refusal.value.remedy.startswith("Choose")


@pytest.mark.parametrize("scheme", [iid(121), shards(121), covariate_shift(121, "x", 1.0), feature_noise(121, 0.1)])
def test_more_parties_than_records_are_refused(scheme):
    with pytest.raises(EmptyParty, match="121"):
        scheme(TABLE, 0)


@pytest.mark.parametrize("scheme", [stores(), by_column("y"), iid(1), covariate_shift(1, "x", 0.5)])
def test_a_table_without_records_is_refused(scheme):
    with pytest.raises(EmptyParty):
        scheme(TABLE.take([]), 0)


@pytest.mark.parametrize("scheme", [shards(2), labels_per_party(2, 1), dirichlet_labels(2, 1.0), concept_shift(2, 0.5)])
def test_schemes_of_labels_need_a_target(scheme):
    with pytest.raises(PartitionInvalid, match="has no target"):
        scheme(TABLE.select(["x"]), 0)


def test_schemes_of_features_need_numeric_ones():
    with pytest.raises(PartitionInvalid, match="has none"):
        feature_noise(2, 0.1)(TABLE.select(["y"]), 0)


def test_a_setting_called_name_is_refused_in_words():
    with pytest.raises(PartitionInvalid, match="names its partitioner by ="):
        partitioner("iid", name="iid", parties=3)


def test_columns_are_looked_up_with_a_suggestion():
    with pytest.raises(MissingColumn, match="Did you mean 'charge'"):
        by_column("charges")(TABLE, 0)
    with pytest.raises(PartitionInvalid, match=r"arrays of shape \(4, 4\)"):
        by_column("image")(TABLE, 0)
    with pytest.raises(PartitionInvalid, match="arrays"):
        covariate_shift(2, "image", 0.5)(TABLE, 0)


def test_a_partitioner_prints_as_it_is_written_and_is_found_by_name():
    scheme = partitioner("dirichlet_labels", parties=20, alpha=0.5)
    assert repr(scheme) == "dirichlet_labels(parties=20, alpha=0.5, min_records=1)"
    assert scheme == dirichlet_labels(20, 0.5)
    assert len(PARTITIONERS) == 13


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("dirichlet_label", {}, "Did you mean 'dirichlet_labels'"),
        ("iid", {"partys": 3}, "Did you mean 'parties'"),
        ("dirichlet_labels", {"parties": 3}, "needs alpha"),
    ],
)
def test_wrong_names_and_settings_are_refused(name, settings, says):
    with pytest.raises(PartitionInvalid, match=says):
        partitioner(name, **settings)


def test_a_table_without_target_has_one_label():
    assert iid(2)(TABLE.select(["x"]), 0).heat.columns == ("records",)


def test_a_column_of_single_values_names_no_parties():
    rng = np.random.default_rng(0)
    table = Table.from_pandas(pd.DataFrame({"bmi": rng.normal(size=1300), "ward": rng.integers(0, 1200, 1300)}))
    with pytest.raises(PartitionInvalid, match=r"1300 parties of 1300 records, 1300 of them with a single[\s\S]*iid\(parties"):
        by_column("bmi")(table, 0)
    many = Table.from_pandas(pd.DataFrame({"writer": np.repeat(np.arange(1100), 3)}))
    with pytest.warns(HedgerowWarning, match="makes 1100 parties of 3300 records"):
        assert len(by_column("writer")(many, 0)) == 1100
    few = Table.from_pandas(pd.DataFrame({"id": np.arange(50)}))
    assert len(by_column("id")(few, 0)) == 50
