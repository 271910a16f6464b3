"""A generative adversarial network with a private critic (Xie, Lin, Wang, Wang & Zhou 2018), as printed and corrected.

    critic       f_y(x) = U_y tanh(W x + b) + c_y            a Wasserstein critic with an output for each class y
    generator    x = sigmoid(B relu(A (z, y) + a) + e)       from noise and a class; it never meets a record

    as printed                                               corrected
    -----------------------------------------------------    --------------------------------------------------------
    G <- exact sum of the gradients of -f_y(x)               G <- sum of gradients, each shortened to S, + noise
    G <- G + N(0, (sigma c_g)^2),  c_g = 2 c_p B^2            of the channel
      sigma = 2 q sqrt(T log(1 / delta)) / epsilon
    critic <- a step of RMSProp along G / batch + gradient of f_y at made-up records, then weights to [-c_p, c_p]
    generator <- a step of Adam, against the critic                            post-processing, in both

Why they differ: c_g says that weights within c_p keep every gradient short. The gradient of c_y is 1 and that of U_y is
tanh(W x + b), whatever c_p is, and that of W grows with x: what holds for the critic here, and inputs in the cube, is
sqrt(1 + n + c_p^2 n (d + 1)) (`gradient_length`), and without bounded inputs nothing does. Clipping gradients record by record
needs neither; those of made-up records are clipped alike, so that the critic compares like with like.

Releases : sums of the records' gradients of the critic, (parameters,), once per step; exact as printed.
Unit     : record. As printed the ledger says nonprivate. Half of the gradient, that at made-up records, is public.
Source   : Xie et al. 2018, arXiv 1802.06739, Algorithm 1; constants from memory, since Haug 2022 (section 4.3) prints none.
           Differs: one critic for all classes, whose shares are taken as equal; noise of made-up records is a fresh draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in, by_column, whole
from hedgerow.data import Schema, Table, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.rowwise import kernels as rows

from . import layers
from .forms import Form, checked, claimed, descending, seeded

NOISE = 16
"""Numbers of noise from which a record is made."""
WIDE = 64
"""Hidden units of the generator."""
AT_ONCE = 256
"""Records whose gradients are held at once."""
DRAWS = 2000
"""Made-up records from which a score's classifier is fitted."""
DECAY, FIRST, SECOND, TINY = 0.9, 0.5, 0.9, 1e-8
"""Of RMSProp, and of Adam's two moments."""
JUST_BELOW = 1 - 1e-6
"""Of a clip, so that rounding to whole steps rarely has to shorten anything."""
ORDER = ("W", "b", "U", "c", "A", "a", "B", "e")
"""Of the arrays of a critic or a generator, side by side; a state that was stored may have another."""
LONG = 1e12
"""A clip that shortens nothing: of the printed form."""


@displayed
@dataclass(frozen=True, eq=False)
class GeneratorState:
    """A critic and a generator after a step.

    Attributes
    ----------
    critic, generator : dict of arrays
    remembered : dict of arrays
        Of the steps of both: `critic` of RMSProp, `first` and `second` of Adam, flat.
    """

    round: int
    critic: Mapping[str, Array]
    generator: Mapping[str, Array]
    remembered: Mapping[str, Array]


def gradient_length(units: int, features: int, clip: float) -> float:
    """The largest gradient of f_y of one record in the unit cube, weights and biases within a clip; not reached exactly.

    tanh is below 1 and its slope at most 1, so sqrt(1 + n + c_p^2 n (d + 1)) bounds it.
    """
    return math.sqrt(1 + units + clip**2 * units * (features + 1))


def printed_length(clip: float, activation: float = 1.0) -> float:
    """c_g, what the paper takes for the largest gradient: 2 c_p B^2."""
    return 2 * clip * activation**2


# ---- the critic -----------------------------------------------------------------------------------------------------
def units_of(critic: Mapping[str, Array], x: Array) -> Array:
    """tanh(W x + b), shape (n, units), each row by itself."""
    W = rows.packed(np.ascontiguousarray(critic["W"], np.float32), transposed=True)
    found: Array = rows.tanh(
        rows.multiply(np.ascontiguousarray(x, np.float32), W, np.ascontiguousarray(critic["b"], np.float32))
    )
    return found


def gradients(critic: Mapping[str, Array], x: Array, label: Array, w: Array, clip: float) -> Array:
    """Of each record w times the gradient of f_y(x) in W, b, U, c, side by side, none longer than a clip: (n, parameters).

    A record's numbers follow from itself alone, to the bit: lengths are added up one unit after the other.
    """
    h, x = units_of(critic, x).astype(np.float64), np.asarray(x, np.float64)
    U, n, K = np.asarray(critic["U"], np.float64), len(x), len(critic["U"])
    entering = U[label] * (1 - h * h)
    squares = _squares(entering) * (_squares(x) + 1) + _squares(h) + 1
    times = np.minimum(w, clip * JUST_BELOW / np.sqrt(squares))[:, None]
    own = (label[:, None] == np.arange(K)) * times
    entering = entering * times
    parts = (entering[:, :, None] * x[:, None, :], entering, own[:, :, None] * h[:, None, :], own)
    return np.concatenate([part.reshape(n, -1) for part in parts], axis=1)


def _squares(values: Array) -> Array:
    columns = np.ascontiguousarray(values.T)
    return by_column(columns * columns, np.ones(len(columns)))


@local(additive=True, holds=BITS, norms=(2,))
def critic_gradient(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, clip: float, bounds: Bounds | None = None
) -> Array:
    """Sum over records of gradients of f_y(x), each at most `clip` long, (parameters,)."""
    x, label, w = party["cube"], party["label"], party.w
    total = np.zeros(sum(np.size(value) for value in broadcast.values()))
    if bounds is not None:
        clip = min(clip, bound_in(bounds, "").radius)
    for start in range(0, len(w), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        found = gradients(broadcast, x[some], label[some], w[some], clip)
        total += (found if bounds is None else whole(found, bound_in(bounds, ""))).sum(0)
    return total


# ---- the generator --------------------------------------------------------------------------------------------------
def made_up(generator: Mapping[str, Array], z: Array, label: Array) -> tuple[Array, Array, Array]:
    """What the generator reads, its hidden units and its records, of noise (n, NOISE) and classes (n,)."""
    K = generator["A"].shape[1] - NOISE
    given = np.concatenate([z, label[:, None] == np.arange(K)], axis=1)
    h = np.maximum(given @ generator["A"].T + generator["a"], 0.0)
    return given, h, 1 / (1 + np.exp(-(h @ generator["B"].T + generator["e"])))


def uphill(generator: Mapping[str, Array], critic: Mapping[str, Array], z: Array, label: Array) -> dict[str, Array]:
    """The gradient in the generator's weights of the mean of f_y over what it makes."""
    given, h, x = made_up(generator, z, label)
    inner = units_of(critic, x).astype(np.float64)
    to_x = (critic["U"][label] * (1 - inner * inner)) @ critic["W"]
    out = to_x * x * (1 - x) / len(z)
    back = (out @ generator["B"]) * (h > 0)
    return {"A": back.T @ given, "a": back.sum(0), "B": out.T @ h, "e": out.sum(0)}


def flat(parts: Mapping[str, Array]) -> Array:
    """Arrays side by side, in the order of `ORDER`."""
    return np.concatenate([np.ravel(parts[name]) for name in _names(parts)])


def like(parts: Mapping[str, Array], values: Array) -> dict[str, Array]:
    """The same the other way round."""
    names = _names(parts)
    cut = np.split(values, np.cumsum([np.size(parts[name]) for name in names])[:-1])
    return {name: one.reshape(np.shape(parts[name])) for name, one in zip(names, cut, strict=True)}


def _names(parts: Mapping[str, Array]) -> list[str]:
    return [name for name in ORDER if name in parts]


def begun(d: int, K: int, units: int, clip: float, seed: int) -> GeneratorState:
    """The first critic and generator, by a public seed."""
    rng = np.random.default_rng(seed)
    critic = {"W": rng.uniform(-clip, clip, (units, d)), "b": np.zeros(units), "U": rng.uniform(-clip, clip, (K, units))}
    critic["c"] = np.zeros(K)
    generator = {"A": rng.normal(size=(WIDE, NOISE + K)) / math.sqrt(NOISE), "a": np.zeros(WIDE)}
    generator |= {"B": rng.normal(size=(d, WIDE)) / math.sqrt(WIDE), "e": np.zeros(d)}
    nothing = np.zeros_like(flat(generator))
    return GeneratorState(0, critic, generator, {"critic": np.zeros_like(flat(critic)), "first": nothing, "second": nothing})


def claim(settings: Mapping[str, Any]) -> str:
    """What the paper would claim, and why it is not proved."""
    return claimed(settings, "Weights within a clip are taken to bound the gradients of records, which they do not")


def classifier(settings: Mapping[str, Any], state: GeneratorState) -> Array:
    """Least squares of the classes on made-up records, (d + 1, K)."""
    rng, K = np.random.default_rng(0), len(state.critic["U"])
    label = rng.integers(0, K, DRAWS)
    *_, x = made_up(state.generator, rng.normal(size=(DRAWS, NOISE)), label)
    v = np.column_stack([np.ones(DRAWS), x])
    found: Array = np.linalg.solve(v.T @ v + np.eye(v.shape[1]), v.T @ (label[:, None] == np.arange(K)))
    return found


def score(settings: Mapping[str, Any], state: GeneratorState, schema: Schema, table: Table) -> float:
    """Accuracy on real records of a classifier that has seen made-up ones alone."""
    x, label = layers.of_table(table)
    coef = classifier(settings, state)
    return float(((x @ coef[1:] + coef[0]).argmax(1) == label).mean())


def watch(settings: Mapping[str, Any], state: GeneratorState, schema: Schema, test: Table | None) -> dict[str, float]:
    """That accuracy on the server's table."""
    return {} if test is None else {"test accuracy": score(settings, state, schema, test)}


@program(
    "A generator whose critic takes noise (Xie et al. 2018), as printed or corrected.",
    claim=claim,
    score=score,
    watch=watch,
    metric=lambda schema: ("accuracy of a classifier of made-up records", True),
    alone=lambda settings, rounds: {**settings, "rounds": rounds},
    case=lambda: Case(load("digits").take(range(120)), {"rounds": 2, "batch_size": 120.0, "units": 4}, tolerance=1e-5),
)
def private_gan(
    federation: Federation,
    *,
    rounds: int,
    batch_size: float,
    units: int = 16,
    epsilon: float | None = None,
    delta: float | None = None,
    form: Form = "corrected",
    clip: float = 1.0,
    weight_clip: float = 0.2,
    sampling_rate: float = 1.0,
    learning_rate: float = 0.05,
    made: int = 256,
    seed: int = 0,
    start: GeneratorState | None = None,
) -> Iterator[GeneratorState]:
    """Train a generator against a critic that sees records by noisy sums.

    Parameters
    ----------
    rounds : int
        Steps of the critic in all; the generator takes as many.
    batch_size : float
        What sums of gradients are divided by: public, such as the expected number of records in a step.
    units : int
        Hidden units of the critic.
    epsilon, delta : float, optional
        The budget; both are needed as printed. None takes the channel's noise.
    form : {"printed", "corrected"}
        Noise by the clip of the weights, of which nothing is proved, or gradients that are clipped record by record.
    clip : float
        Corrected: largest length of a record's gradient.
    weight_clip : float
        c_p: the critic's weights stay within it.
    sampling_rate : float
        q: each record joins a step by itself with this probability.
    learning_rate : float
        Of both.
    made : int
        Made-up records of a step.
    seed : int
        Of the initial weights, of made-up records, and of the printed form's noise.
    start : GeneratorState, optional
        Continue after this state.

    Yields
    ------
    GeneratorState
        After each step.

    Releases
    --------
    The sum of the records' gradients of the critic, once per step: exact as printed, else clipped and noisy.

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211), BudgetInvalid (HR-214), SchemaInvalid (HR-409)
    """
    if min(rounds, units, made) < 1 or min(batch_size, clip, weight_clip, sampling_rate) <= 0:
        raise SettingsInvalid("a count below one, or a length or rate that is not above zero.", remedy="Raise it.")
    printed = checked(form, federation, epsilon)
    if printed and not delta:
        raise SettingsInvalid("the printed noise without a delta.", remedy="Give delta=1e-5: sigma follows from it.")
    d, K = layers.width(federation.schema), layers.n_classes(federation.schema)
    private = federation if printed else descending(federation, epsilon, delta, rounds, sampling_rate)
    ready, state = layers.at_parties(private), start or begun(d, K, units, weight_clip, seed)
    short = LONG if printed else clip
    ask = partial(critic_gradient, clip=short)
    sigma = 2 * sampling_rate * math.sqrt(rounds * math.log(1 / (delta or 1.0))) / (epsilon or 1.0) if printed else 0.0
    for t in range(state.round, rounds):
        bound = None if printed else l2(clip, "record")
        total: Any = ready.sample(records=sampling_rate).sum(ask, dict(state.critic), bound=bound)
        if printed:
            drawn = federation.stream(t + 1, f"noise of the critic, as printed{seeded(seed)}")
            total = total + drawn.normal(scale=sigma * printed_length(weight_clip), size=len(total))
        rng = federation.stream(t + 1, f"made-up records{seeded(seed)}")
        state = _step(state, total / batch_size, rng, made, short, weight_clip, learning_rate)
        yield state


def _step(
    state: GeneratorState, real: Array, rng: Any, made: int, clip: float, weight_clip: float, learning_rate: float
) -> GeneratorState:
    """A step of the critic up the difference of real and made-up records, and of the generator against it."""
    K, t = len(state.critic["U"]), state.round + 1
    z, label = rng.normal(size=(2, made, NOISE)), np.arange(made) % K
    *_, fake = made_up(state.generator, z[0], label)
    gradient = real - gradients(state.critic, fake.astype(np.float32), label, np.ones(made), clip).mean(0)
    squares = DECAY * state.remembered["critic"] + (1 - DECAY) * gradient**2
    moved = flat(state.critic) + learning_rate * gradient / (np.sqrt(squares) + TINY)
    critic = like(state.critic, np.clip(moved, -weight_clip, weight_clip))
    rise = flat(uphill(state.generator, critic, z[1], label))
    first = FIRST * state.remembered["first"] + (1 - FIRST) * rise
    second = SECOND * state.remembered["second"] + (1 - SECOND) * rise**2
    step = learning_rate * (first / (1 - FIRST**t)) / (np.sqrt(second / (1 - SECOND**t)) + TINY)
    generator = like(state.generator, flat(state.generator) + step)
    return GeneratorState(t, critic, generator, {"critic": squares, "first": first, "second": second})
