from fractions import Fraction
from math import comb

import numpy as np
import pytest

from hedgerow.crypto.graph import Graph, _upper_tails, neighbours_needed, neighbours_of, ring
from hedgerow.errors import SettingsInvalid

SEED = bytes(range(32))

# k / t for fractions of colluding parties and of dropouts (5%, 5%), (10%, 10%), (20%, 10%), (33%, 10%), (20%, 30%),
# computed independently, at 2^-40 and 2^-20.
TABLE = {
    100: [(30, 16), (42, 22), (54, 28), (78, 40), (94, 48)],
    300: [(30, 16), (42, 22), (56, 35), (80, 56), (116, 59)],
    1_000: [(32, 18), (46, 26), (68, 43), (102, 72), (174, 88)],
    10_000: [(34, 20), (54, 30), (80, 51), (122, 85), (232, 117)],
    100_000: [(36, 21), (58, 33), (86, 54), (134, 93), (264, 133)],
}
FRACTIONS = [(0.05, 0.05), (0.1, 0.1), (0.2, 0.1), (0.33, 0.1), (0.2, 0.3)]


@pytest.mark.parametrize(("n", "k"), [(5, 4), (6, 5), (7, 4), (9, 2), (50, 12), (101, 100)])
def test_everybody_has_k_neighbours_and_is_theirs(n, k):
    graph = Graph(SEED, n, k)
    assert graph.neighbours.shape == (n, k)
    for party, near in enumerate(graph.neighbours.tolist()):
        assert party not in near
        assert near == sorted(set(near))
        assert near == neighbours_of(SEED, n, k, party).tolist()
        assert all(party in graph.neighbours[v] for v in near)


@pytest.mark.parametrize(("n", "k"), [(6, 5), (9, 4), (200, 20)])
def test_slots_lead_back(n, k):
    graph = Graph(SEED, n, k)
    back = graph.neighbours[graph.neighbours, graph.slots[..., None].repeat(k, -1)[..., 0]]
    assert (back == np.arange(n)[:, None]).all()


def test_a_sparse_graph_is_connected_until_half_a_neighbourhood_in_a_row_is_gone():
    n, k = 60, 8
    order = ring(SEED, n)
    near = Graph(SEED, n, k).neighbours

    def parts(gone):
        left = set(range(n)) - set(gone)
        count = 0
        while left:
            count, todo = count + 1, [left.pop()]
            while todo:
                fresh = set(near[todo.pop()].tolist()) & left
                left -= fresh
                todo += fresh
        return count

    assert parts([*order[:3], *order[30:33]]) == 1
    assert parts([*order[:4], *order[30:34]]) == 2


def test_the_order_follows_from_the_seed_and_nothing_else():
    assert (ring(SEED, 40) == ring(bytes(SEED), 40)).all()
    assert sorted(ring(SEED, 40).tolist()) == list(range(40))
    assert (ring(SEED, 40) != ring(SEED[::-1], 40)).any()


def test_the_order_of_the_ring_is_uniform():
    orders = [tuple(ring(i.to_bytes(32, "little"), 3).tolist()) for i in range(1200)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    assert len(counts) == 6
    assert sum((count - 200) ** 2 / 200 for count in counts) < 40  # chi-square, 5 degrees of freedom: 1.5e-7


@pytest.mark.parametrize(("n", "k"), [(5, 5), (5, 1), (8, 3), (3, 0), (2, 1), (5000, 2050)])
def test_graphs_that_do_not_exist_are_refused(n, k):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        Graph(SEED, n, k)
    with pytest.raises(SettingsInvalid, match="HR-511"):
        neighbours_of(SEED, n, k, 0)


@pytest.mark.parametrize("n", TABLE)
def test_neighbours_needed_are_those_of_an_independent_table(n):
    assert [neighbours_needed(n, *fractions) for fractions in FRACTIONS] == TABLE[n]


def exact_tail(population, marked, draws, j):
    mass = sum(comb(marked, i) * comb(population - marked, draws - i) for i in range(j, draws + 1))
    return float(Fraction(mass, comb(population, draws)))


@pytest.mark.parametrize(("population", "marked", "draws"), [(99, 5, 30), (999, 200, 68), (9_999, 3_300, 122)])
def test_tails_are_those_of_whole_numbers(population, marked, draws):
    tails = _upper_tails(population, marked, draws)
    for j in (0, 1, draws // 3, draws // 2, draws, draws + 1):
        assert tails[j] == pytest.approx(exact_tail(population, marked, draws, j), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("fractions", FRACTIONS)
def test_fewer_neighbours_or_shares_would_not_do(fractions):
    n, (corrupt, dropouts) = 1000, fractions
    k, t = neighbours_needed(n, corrupt, dropouts)
    bad, gone = round(corrupt * n), round(dropouts * n)

    def safe(k, t):
        return (
            n * (corrupt + dropouts) ** (k // 2) <= 2.0**-40
            and n * exact_tail(n - 1, bad, k, t) <= 2.0**-40
            and n * exact_tail(n - 1, gone, k, k - t + 1) <= 2.0**-20
        )

    assert safe(k, t)
    assert not any(safe(k - 2, fewer) for fewer in range((k - 2) // 2 + 1, k - 1))
    assert t == k // 2 + 1 or not safe(k, t - 1)


def test_against_a_server_that_lies_the_threshold_is_above_two_thirds():
    k, t = neighbours_needed(1000, 0.05, 0.1, active=True)
    assert 3 * t > 2 * k
    assert k > neighbours_needed(1000, 0.05, 0.1)[0]


def test_more_colluding_parties_than_any_graph_stands_are_refused():
    with pytest.raises(SettingsInvalid, match="HR-511"):
        neighbours_needed(200, 0.6, 0.45)
    assert neighbours_needed(10, 0.2, 0.2) == (9, 5)
