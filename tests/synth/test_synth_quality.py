"""Quality by sums: equal to both tables at hand, charged where it is a release, refused where it would void a promise."""

import sys
from dataclasses import replace
from math import comb, sqrt

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.bound import l2
from hedgerow.core.question import local
from hedgerow.data import Column, Schema
from hedgerow.errors import BudgetExhausted, BudgetInvalid, MissingColumn, SchemaInvalid, SettingsInvalid
from hedgerow.report import Report, render
from hedgerow.synth import Provenance, SyntheticTable, compared, measured_quality, quality, tan
from hedgerow.synth.counted import counted, estimated
from hedgerow.synth.metrics import tv_of_counts
from hedgerow.synth.quality import ONES, made_records, real_tables
from hedgerow.synth.tables import pairs, singles
from hedgerow.synth.tan import class_layouts, class_trees, codes_of

SCHEMA = Schema(
    [
        Column("age", "integer", low=18, high=90),
        Column("income", "number", low=0, high=1000, optional=True),
        Column("job", "category", levels=("none", "farm", "shop", "office")),
        Column("ill", "binary", role="target"),
    ]
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n).astype(float)
    income = np.clip(3 * age + rng.exponential(150, n), 0, 1000)
    income[rng.random(n) < 0.1] = np.nan
    job = np.minimum((age // 30).astype(int) + rng.integers(0, 2, n), 3).astype(np.int16)
    ill = (rng.random(n) < age / 120).astype(float)
    return hr.data.Table(SCHEMA.admit({"age": age, "income": income, "job": job, "ill": ill}), SCHEMA, name="people")


REAL, MADE = people(600, 0), people(500, 1)


def parties(table=REAL):
    return hr.simulate(table, hr.data.iid(parties=3), seed=0)


def promised(table=MADE):
    return SyntheticTable(table.columns, table.schema, provenance=Provenance("tan", 1.0, 1e-5))


def test_sums_of_parties_say_what_both_tables_say():
    by_sums, at_hand = quality(parties(), MADE, bins=16), compared(REAL, MADE, bins=16)
    assert by_sums.tv_complements == at_hand.tv_complements
    assert by_sums.pairs.equals(at_hand.pairs)
    assert all(a.equals(b) for a, b in zip(by_sums.correlations, at_hand.correlations, strict=True))
    for name, of_values in at_hand.ks_complements.items():
        assert by_sums.ks_complements[name] >= of_values - 1e-12  # nothing inside a bin is looked at


def test_whole_numbers_with_a_bin_each_have_the_exact_ks_complement():
    found = quality(parties(), MADE, bins=128).ks_complements["age"]
    assert found == pytest.approx(compared(REAL, MADE).ks_complements["age"], abs=1e-12)


def test_a_table_is_as_good_as_itself():
    found = compared(REAL, REAL)
    assert found.metrics == pytest.approx(dict.fromkeys(found.metrics, 1.0))
    assert found.to_frame()["similarity"].tolist() == pytest.approx([1] * 4)


def test_correlations_are_those_of_the_codes_where_both_values_are_there():
    real, _ = compared(REAL, MADE, pair_bins=128).correlations
    there = ~np.isnan(REAL["income"])
    assert real.loc["age", "income"] == pytest.approx(np.corrcoef(REAL["age"][there], REAL["income"][there])[0, 1], abs=2e-3)
    assert real.loc["age", "ill"] == pytest.approx(np.corrcoef(REAL["age"], REAL["ill"])[0, 1], abs=1e-9)


@pytest.mark.slow
def test_a_record_moves_each_question_to_its_bound_and_not_beyond():
    table = REAL.take(range(12))
    *_, whole = real_tables(parties(table), MADE, bins=8, pair_bins=4)
    fine = hr.synth.Codes.of(SCHEMA, bins=8)
    for left in range(12):
        *_, rest = real_tables(parties(table.take([i for i in range(12) if i != left])), MADE, bins=8, pair_bins=4)
        for part, layout in (("ones", singles(fine)), ("pairs", pairs(fine))):
            moved = getattr(whole, part) - getattr(rest, part)
            bound = layout.bound(parties().protect(mechanism=hr.Gaussian(1.0)), 1.0)
            assert np.linalg.norm(moved) == pytest.approx(bound.radius)
    assert singles(fine).bound(parties(), 1.0).radius == pytest.approx(sqrt(4))
    assert pairs(fine).bound(parties(), 1.0).radius == pytest.approx(sqrt(comb(4, 2)))


def test_a_budget_is_spent_as_asked_and_noise_has_the_stated_size():
    federation = parties()
    found = quality(federation, MADE, bins=8, pair_bins=4, epsilon=2.0, delta=1e-5)
    assert len(federation.ledger) == 2
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(2.0, abs=1e-6)
    exact = compared(REAL, MADE, bins=8, pair_bins=4)
    ratio = found.real.sigma((0,)) / found.real.sigma((0, 1))
    assert ratio == pytest.approx(sqrt(4 / ONES) / sqrt(6 / (1 - ONES)), rel=1e-6)
    off = np.concatenate(
        [(found.real.counts[c] - exact.real.counts[c]).ravel() / found.real.sigma(c) for c in exact.real.counts]
    )
    assert np.std(off) == pytest.approx(1, abs=0.2)  # of some 110 cells: four standard errors
    assert "noise of standard deviation" in found.source
    assert found.to_frame()["noise alone costs about"].gt(0).all()


@pytest.mark.slow
def test_noise_comes_in_shares_too():
    federation = parties().protect(aggregation=hr.SecAgg())
    quality(federation, MADE, bins=8, pair_bins=4, epsilon=2.0, delta=1e-5, noise_at="shares", least=3)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(2.0, abs=1e-6)


@pytest.mark.slow
def test_exact_answers_are_refused_beside_a_promise():
    with pytest.raises(BudgetInvalid, match="promise epsilon=1"):
        quality(parties(), promised())
    federation = parties()
    tan(federation, bins=4, epsilon=1.0, delta=1e-5)
    with pytest.raises(BudgetInvalid, match="would void"):
        quality(federation, MADE)
    limited = parties().within(hr.Budget(1.0, delta=1e-5, unit="record"))
    with pytest.raises(BudgetInvalid):
        quality(limited, MADE)
    with pytest.raises(BudgetExhausted):
        quality(limited, MADE, epsilon=2.0, delta=1e-5)
    assert len(limited.ledger) == 0
    assert quality(limited, promised(), epsilon=0.5, delta=1e-5).real.noisy


@local(additive=True)
def one_each(broadcast, party, rng):
    return np.array([1.0])


def test_a_table_made_beside_questions_of_another_unit_is_kept_and_promises_nothing():
    federation = parties()
    federation.protect(mechanism=hr.Gaussian(3.0)).sum(one_each, bound=l2(1.0, "party"))
    made = tan(federation, bins=4, epsilon=1.0, delta=1e-5).sample(20, seed=np.int64(0))
    assert (made.provenance.epsilon, made.provenance.unit, made.provenance.seed) == (None, "mixed", 0)
    assert "some are bounded per party, some per record" in made.provenance.privacy
    assert "no privacy is claimed" in made.source
    with pytest.raises(BudgetInvalid, match="would void"):  # of either unit
        quality(federation, MADE)


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_that_is_none_is_refused(seed):
    made = tan(parties(), bins=4)
    with pytest.raises(SettingsInvalid, match="seed="):
        made.sample(5, seed=seed)


def test_a_comparison_that_forgets_the_promise_is_caught(monkeypatch):
    """The twin without the refusal: made-up records with an epsilon, and a ledger without one."""
    module = sys.modules["hedgerow.synth.quality"]  # the function of this name hides it
    federation = parties()
    monkeypatch.setattr(module, "refuse_exact", lambda *given: None)
    module.quality(federation, promised())
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == np.inf


def test_what_was_measured_anyway_costs_nothing_and_says_so():
    federation = parties()
    settings = {"bins": 8, "log": (), "columns": None, "target": None}
    *_, state = class_trees(federation, bins=8, epsilon=50.0, delta=1e-5)
    asked = len(federation.ledger)
    codes = codes_of(SCHEMA, settings)
    ones, twos = class_layouts(codes, 4)
    layouts = [(ones, state.singles, state.sigma_singles), (twos, state.pairs, state.sigma_pairs)]
    found = measured_quality(codes, MADE, layouts)
    assert len(federation.ledger) == asked
    assert "nothing more was asked" in found.source
    exact = compared(REAL, MADE, bins=8, pair_bins=8)
    assert found.tv_complements == pytest.approx(exact.tv_complements, abs=0.03)
    assert found.pairs.notna().to_numpy().sum() == 12
    assert np.nanmax(np.abs(found.pairs - exact.pairs)) < 0.06
    free = measured_quality(codes, MADE, [(layout, np.rint(flat), 0.0) for layout, flat, _ in layouts])
    assert not free.real.noisy


def test_classes_add_up_to_the_tables_themselves():
    *_, state = class_trees(parties(), bins=8)
    codes = codes_of(SCHEMA, {"bins": 8})
    ones, twos = class_layouts(codes, 4)
    found = measured_quality(codes, MADE, [(ones, state.singles, 0.0), (twos, state.pairs, 0.0)]).real
    wanted = counted(REAL, codes, codes, found.counts)
    assert len(found.counts) == 4 + 6
    for clique, table in wanted.counts.items():
        assert np.array_equal(found.counts[clique], table), clique


def test_an_estimate_is_nearer_than_the_noisy_table_and_exact_tables_stay():
    rng = np.random.default_rng(0)
    truth = np.outer(np.r_[np.zeros(8), 50, 90, 30, 20], np.r_[np.zeros(6), 3, 5, 2.0])
    noisy = truth + 10 * rng.normal(size=truth.shape)
    found = estimated(noisy, 10.0)
    assert found.min() >= 0
    assert tv_of_counts(found, truth) > tv_of_counts(noisy, truth) + 0.1
    assert estimated(truth, 0.0) is truth


@pytest.mark.slow
def test_pages_show_columns_pairs_and_correlations():
    shown = quality(parties(), MADE, bins=8, pair_bins=4, test=people(200, 2), epsilon=2.0, delta=1e-5).outcome()
    assert {bars.title for bars in shown.bars} == {"age", "income", "job", "ill"}
    assert [heat.title for heat in shown.heats] == ["How alike pairs of columns are", "By how much correlations differ"]
    for drawn in (*shown.bars, *shown.heats):
        assert "estimated from noisy tables" in drawn.note
    assert "accuracy, logistic on made-up records" in shown.metrics
    report = Report(
        title="t",
        study="s",
        description="d",
        privacy="p",
        privacy_ok=True,
        bars=tuple(shown.bars),
        heats=tuple(shown.heats),
    )
    assert Report.from_json(report.to_json()).to_json() == report.to_json()  # empty cells are no numbers
    page = render(report)
    assert page.index("<h3>age") < page.index("How alike pairs") < page.index("By how much correlations differ")


def test_exact_pictures_do_not_speak_of_noise():
    shown = compared(REAL, MADE).outcome()
    assert not any("noisy" in drawn.note for drawn in (*shown.bars, *shown.heats))
    assert any("Missing" in bars.note for bars in shown.bars)


def test_a_summary_names_the_correlation_that_is_farthest_off():
    shuffled = hr.data.Table({**MADE.columns, "ill": np.roll(MADE["ill"], 7)}, MADE.schema)
    found = compared(REAL, shuffled)
    r, s = (side.to_numpy() for side in found.correlations)
    one, other, real, made = found.farthest
    assert (one, other) == ("age", "ill")
    assert abs(real - made) == np.nanmax(np.abs(r - s)) > 0.3
    assert f"age and ill, {made:.2f} where the real side has {real:.2f}" in found.summary()
    assert compared(REAL, REAL).farthest is None


def test_a_summary_and_a_repr_are_short():
    found = compared(REAL, MADE)
    assert repr(found).startswith("Quality(4 columns: KS complement")
    assert len(repr(found)) < 200
    assert "Columns, the least similar first" in found.summary()


def test_a_study_without_a_file_compares_records_of_the_declaration():
    made = made_records(SCHEMA, {"columns": ["age", "job"]})
    assert made.schema.names == ("age", "job")
    worse = compared(REAL, made).metrics
    assert worse["pair similarity, mean"] < compared(REAL, MADE).metrics["pair similarity, mean"]


def test_tables_of_other_levels_are_refused():
    other = Schema([replace(c, levels=("farm", "none", "shop", "office")) if c.name == "job" else c for c in SCHEMA])
    turned = hr.data.Table(MADE.columns, other)
    for ask in (lambda: quality(parties(), turned), lambda: compared(REAL, turned)):
        with pytest.raises(SchemaInvalid, match="job"):
            ask()
    with pytest.raises(MissingColumn):
        quality(parties(), MADE, columns=["height"])
    with pytest.raises(SettingsInvalid):
        compared(REAL.take([]), MADE)


def test_a_synthesizers_own_report_has_pictures_that_cost_nothing():
    federation = parties()
    *_, state = class_trees(federation, bins=8, epsilon=5.0, delta=1e-5)
    settings = {"bins": 8, "log": (), "columns": None, "target": None, "classes": 4, "rounds": 0}
    asked = len(federation.ledger)
    shown = sys.modules["hedgerow.synth.tan"].outcome_of(SCHEMA, settings, state)
    assert len(federation.ledger) == asked
    assert {bars.title for bars in shown.bars} == set(SCHEMA.names)
    assert all("estimated from noisy tables" in drawn.note for drawn in (*shown.bars, *shown.heats))
    assert "nothing more was asked" in shown.notes[-1]
    assert {"Edges of the tree", "How alike the columns are"} <= set(shown.tables)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_study_reads_the_file_that_a_synthetic_table_was_written_to(name, tmp_path):
    path = promised(MADE.select(["age", "job", "ill"])).write(tmp_path / name)
    made = made_records(SCHEMA, {"file": str(path), "columns": None})
    assert made.schema.names == ("age", "job", "ill")
    assert set(compared(MADE, made).metrics.values()) == {1.0}
    assert made.source == f"Made-up records of {name}."
    with pytest.raises(BudgetInvalid, match="promise epsilon=1"):
        quality(parties(), made)  # the file says what was promised


def test_exact_answers_are_refused_beside_a_file_that_promises(tmp_path):
    made = hr.data.read(promised().write(tmp_path / "m.csv"))
    for ask in (lambda: quality(parties(), made), lambda: hr.synth.closest(parties(), made, REAL)):
        with pytest.raises(BudgetInvalid, match="promise epsilon=1"):
            ask()
    frame = hr.data.Table.from_frame(made.to_pandas(), schema=SCHEMA, missing="drop")  # records alone
    assert type(frame) is hr.data.Table


def weighed(weight, heaviest=1.0):
    schema = Schema((*SCHEMA, Column("w", "number", role="weight", low=0, high=heaviest)))
    return hr.data.Table({**REAL.columns, "w": np.full(len(REAL), weight)}, schema)


@pytest.mark.parametrize("weight", [2.0**-17, 4.0])
def test_the_unit_of_weights_does_not_matter(weight):
    asked = {"epsilon": 5.0, "delta": 1e-5, "bins": 8, "pair_bins": 4}
    by_records, by_weight = quality(parties(), MADE), quality(parties(weighed(weight, 4.0)), MADE)
    assert by_weight.metrics == pytest.approx(by_records.metrics)
    by_records, by_weight = quality(parties(), MADE, **asked), quality(parties(weighed(weight, weight)), MADE, **asked)
    assert by_weight.metrics == pytest.approx(by_records.metrics, rel=1e-6)
    scored = hr.synth.tstr_at_parties(parties(weighed(weight, 4.0)), MADE)
    assert scored.accuracy == pytest.approx(hr.synth.tstr_at_parties(parties(), MADE).accuracy)


def test_where_all_weights_are_zero_there_is_no_number():
    found = quality(parties(weighed(0.0)), MADE, bins=8)
    assert found.metrics == {}
    assert found.to_frame()["similarity"].isna().all()
    assert "All weights are zero" in found.summary()
    assert len(found.outcome().bars) == 4
    near = hr.synth.closest(parties(weighed(0.0)), MADE, REAL)
    assert np.isnan([near.area, near.advantage, *near.quantile(0.5)]).all()
    assert near.chart().bars
    assert np.isnan(hr.synth.tstr_at_parties(parties(weighed(0.0)), MADE).accuracy)


def test_a_file_without_metadata_promises_nothing(tmp_path):
    MADE.to_pandas().to_csv(tmp_path / "plain.csv", index=False)
    made = made_records(SCHEMA, {"file": str(tmp_path / "plain.csv")})
    assert quality(parties(), made, bins=8).tv_complements == compared(REAL, MADE, bins=8).tv_complements
