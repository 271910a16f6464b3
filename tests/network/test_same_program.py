"""The same programs, untouched, on every engine and rail: the same numbers as the plain loop."""

import secrets
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product

import numpy as np
import pytest
from ministation import DESIGN, HOMES, at_stations, federation, over_sockets, remote

import hedgerow as hr
from hedgerow.engines import Ray
from hedgerow.store.checkpoint import split

PROGRAMS = {
    "moments": partial(hr.stats.centred_sums, columns=["mean_radius", "mean_texture"], cross=True),
    "newton": partial(hr.stats.newton, spec=DESIGN),
    "scaffold": partial(hr.learn.scaffold, module=hr.learn.linear(2, 1), rounds=3, learning_rate=1e-3),
    "tree": partial(hr.trees.grow, depth=2),
}
CHANNELS = {
    "plain": {},
    "secagg": {"aggregation": hr.SecAgg(largest=1e6)},
    "local": {"clip": hr.l2(50.0), "mechanism": hr.Laplace(0.001, at="party")},
}
ENGINES = ["in-process", "processes", "ray", "virtual", "socket", "grpc"]


@contextmanager
def hosting(kind, folder):
    """How a federation gets onto an engine of this kind."""
    with ExitStack() as stack:
        if kind in ("processes", "ray"):
            spread = stack.enter_context(hr.Processes(2) if kind == "processes" else Ray(2))

        def on(here):
            if kind == "virtual":
                return remote(here, at_stations(here, HOMES)[0])
            if kind in ("socket", "grpc"):
                place = folder / secrets.token_hex(4)
                place.mkdir()
                return remote(here, stack.enter_context(over_sockets(here, HOMES, kind, place)))
            return hr.engines.on(here, hr.InProcess(threads=2) if kind == "in-process" else spread)

        yield on


def numbers(state):
    arrays, plain = split(state)
    return {key: np.asarray(value, float) for key, value in arrays.items()} | {
        key: value for key, value in plain.items() if isinstance(value, (int, float))
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize("kind", ENGINES)
def test_every_engine_and_rail_computes_what_the_loop_computes(kind, tmp_path):
    if kind == "ray":
        pytest.importorskip("ray")
    with hosting(kind, tmp_path) as on:
        for (program, run), (channel, slots) in product(PROGRAMS.items(), CHANNELS.items()):
            expected = numbers(hr.last(run(hr.engines.on(federation(), hr.Loop()).protect(**slots))))
            found = numbers(hr.last(run(on(federation().protect(**slots)))))
            assert found.keys() == expected.keys()
            for key, value in expected.items():
                tolerance = (1e-5 if program == "scaffold" else 1e-7) * max(1.0, float(np.abs(value).max(initial=0.0)))
                np.testing.assert_allclose(found[key], value, atol=tolerance, err_msg=f"{program} {channel} {key}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["socket", "grpc"])
def test_a_large_broadcast_and_a_large_row_pass_every_rail(kind, tmp_path):
    weights = np.random.default_rng(0).normal(size=1_000_000)
    with over_sockets(federation(), HOMES, kind, tmp_path) as engine:
        found = remote(federation(), engine).sum(same_back, weights)
    np.testing.assert_allclose(found, 5 * weights, rtol=1e-12)


@hr.local
def same_back(broadcast, party, rng):
    """The broadcast itself."""
    return np.asarray(broadcast)
