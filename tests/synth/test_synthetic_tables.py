"""Tables and the trees fitted to them: bounds at corners, exact without noise, conditions in law, budgets, and twins."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.core.bound import l2
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import BudgetInvalid, MissingColumn, SettingsInvalid, SlotFilled, UnboundedSum
from hedgerow.synth import Codes, Conditions, class_trees, marginals, mst, spanning_tree, tan
from hedgerow.synth.descent import drawn, passed, rounded
from hedgerow.synth.fitting import fitted, from_arrays, to_arrays
from hedgerow.synth.measured import SINGLES, TablesState
from hedgerow.synth.tables import Tables, pairs, singles, table_counts
from hedgerow.synth.tan import class_layouts
from hedgerow.synth.tree import ColumnTree, agreeing, cleaned, independent, shrunk, simplex, spanning

SCHEMA = Schema(
    (
        Column("age", "integer", low=0, high=9),
        Column("pain", "number", low=0, high=1, optional=True),
        Column("ward", "category", levels=("east", "north", "west")),
        Column("smoker", "binary"),
        Column("ill", "category", levels=("no", "mild", "severe"), role="target"),
    )
)
NUMERIC = Schema((*SCHEMA.columns[:4], Column("days", "number", low=0, high=60, role="target", optional=True)))


def people(n: int, seed: int = 0, schema: Schema = SCHEMA) -> Table:
    """A chain of columns that depend on each other, so that trees have something to find."""
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.poisson(4, n), 9).astype(float)
    pain = np.clip(age / 12 + rng.normal(0, 0.1, n), 0, 1)
    pain[rng.random(n) < 0.1] = np.nan
    smoker = (rng.random(n) < 0.1 + 0.07 * age).astype(float)
    ward = np.where(rng.random(n) < 0.7, np.minimum(age // 3, 2), rng.integers(0, 3, n)).astype(np.int16)
    columns = {"age": age, "pain": pain, "ward": ward, "smoker": smoker}
    worse = smoker + (age > 5)
    if "ill" in schema.names:
        columns["ill"] = rng.binomial(2, 0.1 + 0.35 * worse).astype(np.int16)
    else:
        columns["days"] = np.where(rng.random(n) < 0.05, np.nan, np.clip(20 * worse + rng.exponential(5, n), 0, 60))
    return Table(columns, schema)


def codes_in(table: Table, codes: Codes) -> np.ndarray:
    return codes.number(table.columns).astype(int)


def counted(codes: np.ndarray, sizes: tuple[int, ...], places: tuple[int, ...]) -> np.ndarray:
    found = np.zeros([sizes[j] for j in places])
    np.add.at(found, tuple(codes[:, j] for j in places), 1.0)
    return found


@pytest.fixture(scope="module")
def table() -> Table:
    return people(600)


@pytest.fixture(scope="module")
def parties(table):
    return partial(hr.simulate, table, hr.data.iid(parties=3), seed=0)


# ---- the question ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["ill", "ward", ""])
def test_tables_are_those_of_a_loop(table, target):
    codes = Codes.of(SCHEMA, bins=4, target=target)
    ones, twos = class_layouts(codes, 4)
    number = codes_in(table, codes)
    party = Party("one", {"codes": number.astype(np.int16)}, np.linspace(0, 2, len(table)))
    for layout in (ones, twos):
        about = {"sizes": layout.sizes, "cliques": layout.cliques, "target": layout.target, "classes": layout.classes}
        split = layout.split(table_counts(None, party, None, **about))
        for clique, found in split.items():
            expected = np.zeros(found.shape)
            for row, w in zip(number, party.w, strict=True):
                expected[(layout.classes[row[layout.target]] if target else 0, *row[list(clique)])] += w
            assert_allclose(found, expected, atol=1e-9)


def test_stacked_parties_add_up_the_same(table):
    codes = Codes.of(SCHEMA, bins=4)
    _, twos = class_layouts(codes, 4)
    number, w = codes_in(table, codes).astype(np.int16), np.linspace(0, 2, 600)
    one = partial(
        table_counts, None, rng=None, sizes=twos.sizes, cliques=twos.cliques, target=twos.target, classes=twos.classes
    )
    each = one(Party("stack", {"codes": number.reshape(4, 150, -1)}, w.reshape(4, 150)))
    for i in range(4):
        assert_array_equal(each[i], one(Party("one", {"codes": number.reshape(4, 150, -1)[i]}, w.reshape(4, 150)[i])))
    assert_allclose(each.sum(0), one(Party("all", {"codes": number}, w)), atol=1e-9)


@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("part", [0, 1])
def test_one_record_moves_all_tables_by_their_bound_and_no_more(part, delta):
    """Every corner: the heaviest record, at every pair of extreme codes; a weight beyond the declared one is held."""
    schema = Schema((*SCHEMA.columns, Column("w", "number", role="weight", low=0, high=3)))
    codes = Codes.of(schema, bins=3)
    layout = class_layouts(codes, 4)[part]
    noise = hr.Gaussian(1.0) if delta else hr.Laplace(1.0)
    federation = hr.simulate({"one": people(5)}).protect(mechanism=noise)
    bound = layout.bound(federation, codes.heaviest)
    rng, lengths = np.random.default_rng(0), []
    for weight in (0.0, 1.0, 3.0, 50.0):
        for _ in range(20):
            number = np.array([[rng.choice([0, size - 1]) for size in codes.sizes]], np.int16)
            party = Party("one", {"codes": number}, np.array([weight]))
            moved = table_counts(
                None,
                party,
                None,
                sizes=layout.sizes,
                cliques=layout.cliques,
                target=layout.target,
                classes=layout.classes,
                bounds=bound,
            )
            lengths.append(np.linalg.norm(moved, 2 if delta else 1))
    assert max(lengths) <= bound.radius
    assert max(lengths) == pytest.approx(bound.radius, rel=1e-6)
    assert bound.radius == pytest.approx(3 * (math.sqrt(len(layout.cliques)) if delta else len(layout.cliques)))


def test_a_bound_of_one_for_all_tables_is_a_broken_twin(table):
    """As if each table were alone: neighbours differ by sqrt(6), as the declared bound says and that of the twin does not."""
    codes = Codes.of(SCHEMA, bins=4)
    layout = class_layouts(codes, 4)[1]
    declared, twin = layout.bound(hr.simulate({"one": table}).protect(mechanism=hr.Gaussian(1.0)), 1.0), l2(1.0, "record")
    ask = partial(
        table_counts, None, rng=None, sizes=layout.sizes, cliques=layout.cliques, target=layout.target, classes=layout.classes
    )
    number = codes_in(table, codes).astype(np.int16)
    with_it, without = (ask(Party("one", {"codes": rows}, np.ones(len(rows)))) for rows in (number, number[1:]))
    moved = np.linalg.norm(with_it - without)
    assert moved == pytest.approx(declared.radius)
    assert moved > 2 * twin.radius


# ---- without noise --------------------------------------------------------------------------------------------------
def test_without_noise_trees_have_the_tables_that_were_asked(parties, table):
    """Nodes, edges and class sizes to 1e-9; and as many rows as there were reproduce every edge's table, cell by cell."""
    for make in (partial(tan, rounds=0), mst):
        found = make(parties(), bins=5)
        codes, number = found.codes, codes_in(table, found.codes)
        target = codes.place("ill")
        drawn_codes = codes_in(found.sample(600, seed=3), codes)
        assert len(found.edges) == (4 if make is mst else 3)
        for c, tree in enumerate(found.trees):
            own = number if make is mst else number[number[:, target] == c]
            made = drawn_codes if make is mst else drawn_codes[drawn_codes[:, target] == c]
            for j, node in enumerate(tree.nodes):
                assert_allclose(node, counted(own, codes.sizes, (j,)), atol=1e-9 * 600)
            for pair, edge in tree.edges.items():
                assert_allclose(edge, counted(own, codes.sizes, pair), atol=1e-9 * 600)
                assert_allclose(counted(made, codes.sizes, pair), counted(own, codes.sizes, pair), atol=1)


def test_two_binary_columns_by_hand():
    """Of 10 records with y = 0 and 6 with y = 1; their tables are the law, and the probability of a condition is a quotient."""
    schema = Schema((Column("a", "binary"), Column("b", "binary"), Column("y", "binary", role="target")))
    cells = {(0, 0, 0): 4, (0, 1, 0): 1, (1, 0, 0): 2, (1, 1, 0): 3, (0, 0, 1): 1, (1, 1, 1): 5}
    rows = np.array([key for key, times in cells.items() for _ in range(times)], float)
    found = tan(hr.simulate({"one": Table(dict(zip("aby", rows.T, strict=True)), schema)}), rounds=0)
    assert_allclose(found.trees[0].edges[0, 1], [[4, 1], [2, 3]])
    assert_allclose(found.trees[1].edges[0, 1], [[1, 0], [0, 5]])
    assert found.expected(Conditions.of(found.codes, {"a": 1})) == pytest.approx(10)
    assert found.expected(Conditions.of(found.codes, {"a": 1, "y": 1})) == pytest.approx(5)
    made = found.sample(1000, where={"a": 1}, seed=0)
    assert made["a"].all()
    assert [made["b"].sum(), made["y"].sum()] == [pytest.approx(800, abs=2), 500]  # of 10: b in 3 + 5, y in 5
    with pytest.raises(SettingsInvalid, match="no record satisfies the conditions on a, b, y"):
        found.sample(1, where={"a": 0, "b": 1, "y": 1})


def test_the_tree_is_that_of_most_information(parties, table):
    """By trying all 16 trees of four columns (Cayley), with exact tables."""
    from itertools import combinations

    from hedgerow.synth.fitting import information

    found = tan(parties(), bins=5)
    number = codes_in(table, found.codes)
    target = number[:, found.codes.place("ill")]

    def strength(pair: tuple[int, int]) -> float:
        return sum(information(counted(number[target == c], found.codes.sizes, pair)) for c in range(3))

    def joins_all(tree: tuple[tuple[int, int], ...]) -> bool:
        part = list(range(4))
        for i, j in tree:
            part = [part[i] if one == part[j] else one for one in part]
        return len(set(part)) == 1

    trees = [tree for tree in combinations(combinations(range(4), 2), 3) if joins_all(tree)]
    assert len(trees) == 16
    best = max(trees, key=lambda tree: sum(map(strength, tree)))
    assert sorted(found.trees[0].edges) == sorted(best)


def test_the_same_totals_make_the_same_table(table):
    """However records are dealt to parties, and in which order."""
    one = tan(hr.simulate({"one": table}), bins=4, rounds=2)
    other = tan(
        hr.simulate(table.take(np.random.default_rng(1).permutation(600)), hr.data.iid(parties=5), seed=2), bins=4, rounds=2
    )
    first, second = (found.sample(50, where={"ward": "west"}, seed=4).columns for found in (one, other))
    for name in first:
        assert_array_equal(first[name], second[name])


# ---- drawing --------------------------------------------------------------------------------------------------------
WHERES = [{"ward": ["east", "west"], "smoker": 1}, {"age": (2, 6), "pain": (0.2, 0.55)}, {"ill": "severe", "pain": (0.1, 0.9)}]


@pytest.mark.slow
@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("make", [tan, partial(tan, rounds=0), mst], ids=["tan", "tan-unraked", "mst"])
def test_conditional_records_are_those_that_a_filter_leaves(parties, make, where):
    """In law: tables of all pairs of conditional records and of filtered ones differ by their sampling error alone."""
    found = make(parties(), bins=4)
    rows, many = (8000, 60_000) if found.potentials else (20_000, 200_000)
    conditional = found.sample(rows, where=where, seed=0)
    free = found.sample(many, seed=1)
    keep = np.ones(len(free), bool)
    for name, wanted in where.items():
        values, column = free[name], SCHEMA[name]
        if isinstance(wanted, tuple):
            keep &= (values >= wanted[0]) & (values <= wanted[1])
        else:
            levels = [column.levels.index(one) if column.levels else one for one in np.atleast_1d(wanted)]
            keep &= np.isin(values, levels)
    filtered = free.take(np.flatnonzero(keep))
    kept = len(filtered)
    if not found.potentials:  # which change how many there are
        assert kept / len(free) == pytest.approx(found.expected(Conditions.of(found.codes, where)) / found.total, abs=0.005)
    first, second = codes_in(conditional, found.codes), codes_in(filtered, found.codes)
    for i in range(5):
        for j in range(i):
            p, q = (counted(one, found.codes.sizes, (j, i)) / len(one) for one in (first, second))
            spread = np.sqrt(np.maximum(q * (1 - q), 1e-4) * (1 / kept + 1 / rows))
            assert (np.abs(p - q) < 5 * spread).all()  # about 500 cells: a false alarm of 3e-4


def test_messages_are_the_sum_over_all_records_of_the_law(parties):
    """Brute force: the probability of each record as the product of the tree, times the weights of the conditions."""
    found = tan(parties(), bins=3)
    conditions = Conditions.of(found.codes, {"age": (1, 7), "ward": "north"})
    sizes = found.codes.sizes
    for tree in found.trees:
        total = 0.0
        degree = np.bincount(np.array(list(tree.edges)).ravel(), minlength=5)
        for record in np.ndindex(*sizes):
            p = np.prod(
                [tree.nodes[j][code] ** (1.0 - degree[j]) if tree.nodes[j][code] else 0.0 for j, code in enumerate(record)]
            )
            p *= np.prod([edge[record[i], record[j]] for (i, j), edge in tree.edges.items()])
            p *= np.prod([conditions.weights[j][code] for j, code in enumerate(record) if j in conditions.weights])
            total += p / tree.total  # one part has the target alone, and n is divided by once for each part but one
        assert passed(tree, conditions.weights)[0] == pytest.approx(total)


def test_rounding_is_by_less_than_one_and_fair():
    rng = np.random.default_rng(0)
    weights, groups = rng.dirichlet(np.ones(7), 5), np.array([0, 1, 2, 10, 99])
    many = np.stack([rounded(weights, groups, rng) for _ in range(4000)])
    assert (many.sum(2) == groups).all()
    assert (np.abs(many - weights * groups[:, None]) < 1).all()
    assert_allclose(many.mean(0), weights * groups[:, None], atol=5 * 0.5 / math.sqrt(4000))


def test_siblings_are_drawn_independently_of_each_other():
    """Two children of one parent: their table is the product of their shares, up to sampling error."""
    node, edge = np.array([1000.0]), np.array([[300.0, 700.0]])
    tree = ColumnTree((node, edge[0], edge[0]), {(0, 1): edge, (0, 2): edge})
    total, steps = passed(tree, {})
    made = drawn(steps, 20_000, 3, np.random.default_rng(0))
    assert total == pytest.approx(1000)
    assert_array_equal(np.bincount(made[:, 1]), [6000, 14000])
    both = ((made[:, 1] == 0) & (made[:, 2] == 0)).sum()
    assert both == pytest.approx(1800, abs=5 * math.sqrt(20_000) * 0.21)


# ---- with noise -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "names", "delta"),
    [(tan, (4, 6), 1e-5), (mst, (5, 10), 1e-5), (marginals, (5,), 1e-5), (tan, (4, 6), None)],
)
def test_a_budget_is_spent_and_each_kind_of_table_is_one_question(parties, make, names, delta):
    federation = parties()
    found = make(federation, epsilon=1.0, delta=delta, bins=4)
    entries = federation.ledger.entries
    spent = (
        federation.ledger.epsilon(delta=delta, unit="record") if delta else sum(1 / e.event.noise_multiplier for e in entries)
    )
    assert 1 - 1e-6 <= spent <= 1
    length = (lambda m: f"l2({math.sqrt(m):g}) per record") if delta else (lambda m: f"l1({m}) per record")
    assert [entry.bound for entry in entries] == [length(m) for m in names]
    assert found.provenance.epsilon == pytest.approx(1, rel=1e-5)
    SCHEMA.admit(found.sample(100, seed=0).columns)


def test_noise_that_is_scaled_by_rho_instead_of_sigma_is_a_broken_twin(parties):
    """Shares are of mu^2: with the share itself as the noise multiplier's square root the ledger would be beyond its budget."""
    federation = parties()
    tan(federation, epsilon=1.0, delta=1e-5, bins=4)
    mu = math.sqrt(sum(entry.event.noise_multiplier**-2 for entry in federation.ledger.entries))
    twin = parties()
    rho = mu**2 / 2
    for share, layout in zip((SINGLES, 1 - SINGLES), class_layouts(Codes.of(SCHEMA, bins=4), 4), strict=True):
        noise = hr.Gaussian(share / rho)  # 1 / (2 rho) is the variance, and not the deviation
        layout.ask(twin.prepare(hr.synth.codes.coded, codes=Codes.of(SCHEMA, bins=4)).protect(mechanism=noise), 1.0)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") <= 1
    assert abs(twin.ledger.epsilon(delta=1e-5, unit="record") - 1) > 0.2


def test_the_noise_that_is_said_is_the_noise_that_is_there(parties, table):
    *_, exact = class_trees(parties(), bins=4)
    *_, noisy = class_trees(parties(), bins=4, epsilon=1.0, delta=1e-5)
    for part in ("singles", "pairs"):
        sigma = getattr(noisy, f"sigma_{part}")
        noise = getattr(noisy, part) - getattr(exact, part)
        assert sigma > 0
        assert noise.std() == pytest.approx(sigma, rel=5 / math.sqrt(2 * noise.size))


def test_levels_that_never_occur_are_made_at_noise_level():
    """The code is in the schema, and whether it occurs would be a release: with noise it is made, without it never."""
    schema = Schema((Column("a", "category", levels=("x", "y", "z")), Column("b", "binary")))
    rng = np.random.default_rng(0)
    table = Table({"a": rng.integers(0, 2, 3000).astype(np.int16), "b": rng.integers(0, 2, 3000).astype(float)}, schema)
    assert (tan(hr.simulate({"one": table}), rounds=0).sample(3000, seed=0)["a"] < 2).all()
    made = [
        (tan(hr.simulate({"one": table}, seed=seed), epsilon=0.1, delta=1e-5, rounds=0).sample(3000, seed=0)["a"] == 2).sum()
        for seed in range(8)
    ]
    assert 0 < max(made) < 300


def test_shares_of_noise_behind_hidden_rows(parties):
    """The sum is masked and each party adds a third of the variance: tables are as good, and the server sees no exact sum."""
    federation = parties().protect(aggregation=hr.SecAgg())
    found = tan(federation, epsilon=2.0, delta=1e-5, noise_at="shares", least=3, bins=4, rounds=2)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") <= 2
    assert found.total == pytest.approx(600, abs=100)
    assert {entry.event.kind for entry in federation.ledger.entries} == {"gaussian"}


def test_a_number_as_target_makes_classes_of_its_bins():
    table = people(2000, schema=NUMERIC)
    found = tan(hr.simulate({"one": table}), bins=8, classes=3, rounds=0)
    assert len(found.trees) == 4  # and those whose days are missing
    days = found.codes.place("days")
    own = counted(codes_in(table, found.codes), found.codes.sizes, (days,))
    assert_allclose(sum(tree.nodes[days] for tree in found.trees), own, atol=1e-6)
    assert (np.array([tree.nodes[days] > 0 for tree in found.trees]).sum(0) <= 1).all()
    noisy = tan(hr.simulate({"one": table}, seed=0), bins=8, classes=3, rounds=0, epsilon=1.0, delta=1e-5)
    assert (np.array([tree.nodes[days] > 0 for tree in noisy.trees]).sum(0) <= 1).all()
    made = noisy.sample(400, where={"days": (30, 60)}, seed=0)
    assert (made["days"] >= 30).all()


def test_a_program_goes_on_from_a_state(parties):
    states = list(class_trees(parties(), bins=4, epsilon=1.0, delta=1e-5))
    assert [state.round for state in states] == [1, 2]
    again = parties()
    (last,) = class_trees(again, bins=4, epsilon=1.0, delta=1e-5, start=states[0])
    assert len(again.ledger) == 1
    assert_array_equal(last.singles, states[0].singles)


def test_refusals(parties):
    with pytest.raises(SettingsInvalid, match="0 classes"):
        tan(parties(), classes=0)
    with pytest.raises(SettingsInvalid, match="-1 rounds"):
        tan(parties(), rounds=-1)
    with pytest.raises(SettingsInvalid, match="is the only column"):
        tan(parties(), columns=["ill"])
    with pytest.raises(MissingColumn):
        tan(parties(), columns=["age", "wards"])
    with pytest.raises(BudgetInvalid):
        tan(parties(), epsilon=0.0, delta=1e-5)
    with pytest.raises(SlotFilled):
        tan(parties().protect(mechanism=hr.Gaussian(1.0)), epsilon=1.0, delta=1e-5)
    weights = Schema((Column("a", "binary"), Column("b", "binary"), Column("w", "number", role="weight")))
    table = Table({name: np.ones(4) for name in "abw"}, weights)
    with pytest.raises(UnboundedSum):
        mst(hr.simulate({"one": table}), epsilon=1.0, delta=1e-5)


# ---- tables of one tree ---------------------------------------------------------------------------------------------
def test_differences_between_classes_that_noise_explains_are_taken_away():
    """By hand: of the first code each class has half, of which 1 off is noise; of the second 20 off is kept by 1 - 4 / 400."""
    means = np.array([[51.0, 70.0, 29.0], [49.0, 30.0, 71.0]])
    found = shrunk(means, np.array([150.0, 150.0]), 4.0)
    assert_allclose(found[0], [50, 50 + 20 * 0.99, 50 - 21 * (1 - 4 / 441)])
    assert_allclose(found.sum(0), means.sum(0))
    assert_allclose(shrunk(means, np.array([150.0, 150.0]), 1e-12), means)


def test_the_simplex_by_hand():
    assert_allclose(simplex(np.array([3.0, 1, -1]), 2), [2, 0, 0])
    assert_allclose(simplex(np.array([[0.5, 0.2, 0.9]]), 1), [[0.3, 0, 0.7]], atol=1e-15)
    assert_array_equal(simplex(np.array([1.0, -2]), 0), [0, 0])


def test_the_spanning_tree_by_hand():
    assert spanning({(0, 1): 3.0, (1, 2): 2.0, (0, 2): 2.5, (2, 3): 0.0}) == [(0, 1), (0, 2)]


def test_tables_are_moved_to_agree_and_agreeing_ones_stay():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(6)) * 100, rng.dirichlet(np.ones(9)) * 100
    first = np.append(first, 0.0)
    moved = agreeing(rng.normal(2, 3, (7, 9)), first, second)
    assert moved.min() >= 0
    assert_allclose(moved.sum(1), first, atol=1e-6)
    assert_allclose(moved.sum(0), second, atol=1e-9)
    table = rng.poisson(3, (6, 9)).astype(float)
    assert_array_equal(agreeing(table, table.sum(1), table.sum(0)), table)


def test_cleaning_removes_noise_and_keeps_structure():
    """Noise alone becomes independence; a table of one direction comes closer; without noise nothing changes."""
    rng = np.random.default_rng(0)
    first, second = np.full(16, 1000 / 16), np.full(42, 1000 / 42)
    base = independent(first, second)
    for _ in range(5):
        assert_allclose(cleaned(base + rng.normal(0, 3, base.shape), first, second, 3.0), base, atol=4)
    true = base + 4 * np.outer(np.linspace(-1, 1, 16), np.sign(np.arange(42) - 20.5))
    noisy = true + rng.normal(0, 3, base.shape)
    shrunk = cleaned(noisy, first, second, 3.0)
    assert np.linalg.norm(shrunk - true) < np.linalg.norm(noisy - true) / 3
    assert_array_equal(cleaned(noisy, first, second, 0.0), noisy)


def test_trees_are_kept_as_arrays():
    table = people(300)
    codes = Codes.of(SCHEMA, bins=4)
    ones, twos = class_layouts(codes, 4)
    *_, state = class_trees(hr.simulate({"one": table}), bins=4)
    trees, potentials = fitted(state, ones, twos, rounds=2)
    again, other_potentials = from_arrays(to_arrays(trees, potentials), codes.sizes)
    assert from_arrays(to_arrays(trees), codes.sizes)[1] == ()
    for one, other in zip(potentials, other_potentials, strict=True):
        assert one.level == other.level
        for left, right in zip([*one.singles, *one.pairs.values()], [*other.singles, *other.pairs.values()], strict=True):
            assert_array_equal(left, right)
    for one, other in zip(trees, again, strict=True):
        assert list(one.edges) == list(other.edges)
        for left, right in zip([*one.nodes, *one.edges.values()], [*other.nodes, *other.edges.values()], strict=True):
            assert_array_equal(left, right)


def test_tables_of_noise_alone_are_still_a_law():
    """Every total below zero: classes are equally likely, and records are drawn."""
    codes = Codes.of(SCHEMA, bins=4)
    ones, twos = class_layouts(codes, 4)
    state = TablesState(2, np.full(ones.size, -1.0), np.full(twos.size, -1.0), 3.0, 3.0)
    trees, _ = fitted(state, ones, twos)
    assert [tree.total for tree in trees] == [pytest.approx(1)] * 3
    assert isinstance(singles(codes), Tables)
    assert len(pairs(codes).cliques) == 10
    *_, last = spanning_tree(hr.simulate({"one": people(20)}, seed=0), bins=4, epsilon=0.01, delta=1e-5)
    assert last.round == 2
