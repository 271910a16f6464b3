"""A party's row is a function of the party: one bit pattern, whoever else takes part, on every engine."""

from contextlib import contextmanager

import ministation
import numpy as np
import pytest
import torch
from ministation import at_stations, remote
from spread import products, projected, read_projected, sigmoid_net, subnormals

import hedgerow as hr
from hedgerow.core import Federation, Parties
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release
from hedgerow.data import Column, Schema, Table
from hedgerow.engines.processes import Processes
from hedgerow.engines.shared import SharedParties
from hedgerow.privacy.mechanisms import planned_for
from hedgerow.wire.names import Names

WIDTH = 30
NAMES = [f"f{i}" for i in range(WIDTH)]
SCHEMA = Schema(
    (
        *(Column(name, "number", low=-100.0, high=100.0) for name in NAMES),
        Column("y", "category", levels=tuple("0123456789"), role="target"),
    )
)
SIZES = [20, 20, 20, 33, 21, 7, 50]
COHORTS = [[0], [3, 0], [5, 0], [4, 5, 0], [0, 1], [1, 2, 3, 4, 5, 6, 0]]
NETS = {"mlp": lambda: hr.learn.mlp(WIDTH, [32], 10, seed=0), "traced": lambda: sigmoid_net(WIDTH, 10)}
FINE = hr.Gaussian(1e-6)
"""So little noise that a step of its grid is smaller than the last bit of a float32: no difference is rounded away."""


def table(k):
    rng = np.random.default_rng(k)
    return Table({name: rng.normal(size=SIZES[k]) * 3 for name in NAMES} | {"y": rng.integers(0, 10, SIZES[k])}, SCHEMA)


TABLES = [table(k) for k in range(len(SIZES))]


CREWS = {}
"""Processes and actors, started when they are first needed and ended with this file."""


@pytest.fixture(scope="module", autouse=True)
def _crews():
    yield
    for engine in CREWS.values():
        engine.close()
    CREWS.clear()


@contextmanager
def processes(which):
    if "processes" not in CREWS:
        CREWS["processes"] = Processes(2)
    yield federation(which, CREWS["processes"])


@contextmanager
def actors(which):
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_AUTH_MODE", raising=False)
        patch.delenv("RAY_AUTH_TOKEN", raising=False)
        if "ray" not in CREWS:
            CREWS["ray"] = hr.engines.Ray(2)
        yield federation(which, CREWS["ray"])


@contextmanager
def stations(which):
    """Two parties at a station, as far as there are so many; those of one station come in the order in which they are asked."""
    here, names = federation(which, None), [f"p{k}" for k in which]
    homes = {f"station-{k}": tuple(names[k : k + 2]) for k in range(0, len(names), 2)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ministation, "NAMES", Names(("hedgerow", "spread")))
        there, _ = at_stations(here, homes)
    yield hr.engines.watch(remote(here, there))


def in_process(make):
    @contextmanager
    def opened(which):
        yield federation(which, make())

    return opened


ENGINES = {
    "loop": in_process(hr.Loop),
    "one-thread": in_process(lambda: hr.InProcess(threads=1)),
    "two-threads": in_process(lambda: hr.InProcess(threads=2)),
    "dropouts": in_process(lambda: hr.InProcess(threads=2, dropped=("p1", "p3"))),
    "stations": stations,
    "processes": processes,
    "ray": actors,
}


def federation(which, engine):
    return hr.simulate({f"p{k}": TABLES[k] for k in which}, seed=0, record_views=True, engine=engine)


def rows_seen(fed):
    """What the server saw of each party in the last question: whole numbers."""
    return {seen.source: seen.values for seen in hr.engines.view(fed, "server") if seen.kind == "row"}


def released(fed):
    return [seen.values for seen in hr.engines.view(fed, "server") if seen.kind == "release"][-1]


def trained(fed, net, mechanism=FINE, **settings):
    private = fed.protect(clip=hr.l2(1.0), mechanism=mechanism)
    given = {"epochs": 3, "batch_size": 7, "learning_rate": 0.1} | settings
    hr.last(hr.learn.fedavg(private, NETS[net](), rounds=1, weighting="expected", **given))
    return rows_seen(fed)


def patterns(engine, net, cohorts=COHORTS, **settings):
    """The bit patterns of one party's row over cohorts."""
    found = set()
    for which in cohorts:
        with ENGINES[engine](which) as fed:
            row = trained(fed, net, **settings)["p0"]
        assert row.dtype.kind == "i"
        found.add(row.astype(np.int64).tobytes())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [0, 7], ids=["whole", "batches"])
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_party_s_row_has_one_bit_pattern(engine, net, batch_size):
    cohorts = COHORTS if engine not in ("processes", "ray") else [COHORTS[0], COHORTS[-1]]
    assert patterns(engine, net, cohorts, batch_size=batch_size) == patterns("loop", net, [[0]], batch_size=batch_size)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["native", "traced", "eager"])
def test_so_it_has_on_every_path(path):
    assert len(patterns("one-thread", "mlp", path=path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
def test_stacked_sums_are_caught(net, monkeypatch):
    """A twin of the engine that stacks parties behind noise, as it did once."""
    monkeypatch.setattr(Release, "by_itself", property(lambda release: False))
    assert len(patterns("one-thread", net)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("at", ["server", "party"])
@pytest.mark.parametrize("net", NETS)
def test_wherever_the_noise_is_added(net, at):
    assert len(patterns("two-threads", net, COHORTS[::2], mechanism=hr.Gaussian(1.1, at=at))) == 1


@pytest.mark.slow
def test_shares_of_noise_behind_masks_add_up_to_the_same_on_every_engine():
    """Rows cannot be seen, so their total is looked at."""
    totals = []
    for engine in ("loop", "two-threads", "stations"):
        with ENGINES[engine](range(5)) as fed:
            hidden = fed.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1e-3, at="shares", least=3), aggregation=hr.SecAgg())
            hr.last(hr.learn.fedavg(hidden, NETS["traced"](), rounds=1, weighting="expected", epochs=2))
            totals.append(released(fed).tobytes())
    assert len(set(totals)) == 1


# ---- neighbours -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [hr.Gaussian(1.1), FINE], ids=str)
@pytest.mark.parametrize("engine", ["loop", "one-thread", "two-threads", "stations"])
@pytest.mark.parametrize("net", NETS)
def test_a_party_more_moves_the_total_by_its_row_and_by_nothing_else(net, engine, mechanism):
    bound = hr.l2(1.0)
    worlds = {}
    for name, which in (("with", [1, 2, 0, 3, 5]), ("without", [1, 2, 3, 5])):
        with ENGINES[engine](which) as fed:
            worlds[name] = trained(fed, net, mechanism), released(fed)
            layout = [seen.layout for seen in hr.engines.view(fed, "server") if seen.kind == "release"][-1]
    (rows, total), (others, before) = worlds["with"], worlds["without"]
    mine = rows.pop("p0").astype(np.int64)
    for name, row in others.items():
        np.testing.assert_array_equal(rows[name], row, err_msg=name)
    (block,) = planned_for(bound, layout, mechanism.noise_multiplier, 2, largest=mechanism._largest)
    np.testing.assert_array_equal((total - before) / block.step, mine)  # the seed gives both worlds the same noise
    assert sum(int(v) ** 2 for v in mine) <= int(bound.radius / block.step) ** 2


# ---- what else could reach a row ------------------------------------------------------------------------------------


def narrow(sizes, engine, seed=0):
    """Parties whose records begin where those of the others before them end."""
    parts = [np.random.default_rng(k).normal(size=(n, WIDTH)).astype(np.float32) for k, n in sizes.items()]
    held = Parties([f"p{k}" for k in sizes], {"x": np.concatenate(parts)}, list(sizes.values()))
    schema = Schema((Column("x", "number", shape=(WIDTH,)),))
    return Federation(engine.hosting(held), schema, Streams(seed), record_views=True)


def row_of(fed, local, broadcast=None):
    fed.protect(clip=hr.l2(1e4), mechanism=FINE).sum(local, broadcast)
    return rows_seen(fed)["p9"].tobytes()


@pytest.mark.parametrize("engine", [hr.Loop(), hr.InProcess(threads=1)], ids=["loop", "one-thread"])
def test_where_records_lie_in_memory_does_not_matter(engine):
    weights = np.random.default_rng(5).normal(size=(10, WIDTH)).astype(np.float32)
    memory = np.empty(weights.nbytes + 64, np.uint8)
    places = [memory[start : start + weights.nbytes].view(np.float32).reshape(weights.shape) for start in (0, 4, 16, 36)]
    found = set()
    for k, before in enumerate([{}, {1: 1}, {1: 2}, {1: 3}, {1: 5, 2: 2}, {3: 8}]):
        weights_here = places[k % len(places)]
        weights_here[...] = weights
        found.add(row_of(narrow({**before, 9: 7}, engine), products, weights_here))
    assert len(found) == 1


@pytest.mark.parametrize("engine", [hr.Loop(), hr.InProcess(threads=1)], ids=["loop", "one-thread"])
def test_what_a_party_prepares_it_prepares_alone(engine):
    cohorts = [{9: 7}, {1: 1, 9: 7}, {1: 2, 9: 7}, {1: 5, 2: 30, 9: 7}, {9: 7, 3: 100}]
    found = {row_of(narrow(sizes, engine).prepare(projected, width=10), read_projected) for sizes in cohorts}
    assert len(found) == 1


@pytest.mark.parametrize("engine", [hr.Loop(), hr.InProcess(threads=1)], ids=["loop", "one-thread"])
def test_so_it_does_where_records_are_kept_once_for_several_parties(engine):
    records = np.random.default_rng(9).normal(size=(140, WIDTH)).astype(np.float32)
    found = set()
    for others in [[], [range(3, 8)], [range(5), range(30)], [range(2, 7), range(137)]]:
        held = [*others, range(3, 10)]
        kept = max(max(one) for one in held) + 1
        names = [*(f"p{k}" for k in range(len(others))), "p9"]
        parties = SharedParties(names, {"x": records[:kept]}, list(map(len, held)), np.concatenate(held))
        schema = Schema((Column("x", "number", shape=(WIDTH,)),))
        fed = Federation(engine.hosting(parties), schema, Streams(0), record_views=True)
        found.add(row_of(fed.prepare(projected, width=10), read_projected))
    assert found == {row_of(narrow_of(records[3:10], engine).prepare(projected, width=10), read_projected)}


def narrow_of(records, engine):
    schema = Schema((Column("x", "number", shape=(WIDTH,)),))
    return Federation(engine.hosting(Parties(["p9"], {"x": records}, [len(records)])), schema, Streams(0), record_views=True)


@pytest.mark.parametrize("engine", [hr.Loop(), hr.InProcess(threads=2)], ids=["loop", "two-threads"])
def test_flags_of_a_thread_change_no_row_and_stay_as_they_were(engine):
    sizes = {1: 3, 9: 6}
    calm = row_of(narrow(sizes, engine), subnormals)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor flushes nothing")
    try:
        flushed = row_of(narrow(sizes, engine), subnormals)
        assert float(np.float32(1e-40) * np.ones(1, np.float32)[0]) == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert flushed == calm
    assert np.frombuffer(calm, np.int64).any()


def test_what_was_traced_before_does_not_choose_a_path():
    """More kinds of batches than programs are kept, and a first party whose records are no numbers."""
    from hedgerow.learn.descent import Solver, descend, programs
    from hedgerow.learn.models import Model

    rng = np.random.default_rng(0)
    columns = {"model_input": rng.normal(size=(40, WIDTH)).astype(np.float32), "model_target": rng.integers(0, 10, 40)}
    party = Parties(("one",), columns, [40])[0]

    def change(model, batch_size):
        solver = Solver(0.1, batch_size=batch_size, path="traced")
        return descend(model.initial, party, np.random.default_rng(1), model=model, solver=solver).change.tobytes()

    fresh, used = (Model(sigmoid_net(WIDTH, 10), "category") for _ in range(2))
    spoilt = Parties(("other",), columns | {"model_input": np.full((40, WIDTH), np.nan, np.float32)}, [40])[0]
    descend(used.initial, spoilt, np.random.default_rng(1), model=used, solver=Solver(0.1, batch_size=5, path="traced"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "MOST_PROGRAMS", 2)
        for batch_size in (2, 3, 4):
            change(used, batch_size)
        assert change(used, 5) == change(fresh, 5)
    assert None not in used.programs.values()
