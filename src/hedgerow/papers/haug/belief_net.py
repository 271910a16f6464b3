"""A convolutional deep belief net by noisy polynomials (Phan, Wu & Dou 2017): one layer of filters, and an output.

    F(x) = - sum over places and filters of softplus(r w'p)      free energy; p a patch of f x f numbers, d of them
    softplus(t) ~ a_0 + a_1 t + ... + a_7 t^7                    Chebyshev polynomial on [-r sqrt d, r sqrt d]
    so F needs sum over places of p^alpha, |alpha| <= 7          in one question, for any number of filters
    h = sigmoid(r w'p), its largest over `pool` x `pool` places  max pooling of probabilities
    output: the polynomial of order 2 of the labels' cross-entropy

    as printed                                                corrected
    ------------------------------------------------------    ---------------------------------------------------------
    coefficients of w, patches in the cube, Lap(D / e)        moments of p / |p| in isometric coordinates, mean over places,
      D = 2 places sum_r |a_r| r^k d^k, over degrees k          1/2 for each of the degrees 1, 2, 4, 6: l2(1), any noise
    output: coefficients, Lap(D / e), D = K (b + b^2 / 4)     output: least squares on noisy moments of h / |h| (SSP)

The even part of softplus and t / 2 make it up, so that a_3, a_5 and a_7 are zero, and degree 7 is degree 6.

Why they differ: printed constants are those of records that are replaced, of the cube and in l1, where a patch of ones counts
d^k in degree k: D grows with the sixth power of d (`distance`). They are sound, as patches depend on no weights, so the printed
form is charged like the other, and only its noise is in vain. Haug 2022 prints neither the number of layers nor their sizes nor
the constant: D here follows from the algorithm, doubled as in the same authors' auto-encoder; the sizes are ours.

Releases : moments of patches once, coefficients or moments of the output once.
Unit     : record.
Source   : Phan et al., Machine Learning 106, 2017, as Haug 2022 (section 4.3) tells it. Differs: one layer; the negative phase
           is that of public patches of uniform noise, since Gibbs chains begin at records; filters are orthogonal and come with
           their negatives, found by a search over directions, which asks nobody. Records that are no squares are filled up with
           zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l1, l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in, whole
from hedgerow.data import Schema, Table, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.rowwise import kernels as rows
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share

from . import layers
from .auto_encoder import distance as output_distance
from .auto_encoder import least
from .forms import Form

DEGREE = 7
DEGREES = (1, 2, 4, 6)
"""Of which coefficients are not zero."""
SHARES = {"filters": 0.4, "output": 0.6}
DIRECTIONS = 4000
REFERENCE = 4000
ROUNDING = 1e-6
"""What is left of a direction below this is rounding: it was chosen already."""
AT_ONCE = 128
"""Records at once."""


@displayed
@dataclass(frozen=True, eq=False)
class BeliefState:
    """Filters (K, d), and the output (b + 1, classes), empty before it is fitted."""

    round: int
    filters: Array
    output: Array


# ---- the polynomial -------------------------------------------------------------------------------------------------
@cache
def softplus_coefficients(reach: float) -> tuple[float, ...]:
    """a_0 to a_7 of softplus on [-reach, reach], by interpolation at Chebyshev's nodes."""
    made = Chebyshev.interpolate(lambda t: np.logaddexp(0.0, t), DEGREE, domain=[-reach, reach])
    return tuple(float(a) for a in made.convert(kind=Polynomial).coef)


@cache
def monomials(d: int, degree: int) -> tuple[Array, Array]:
    """Factors of each monomial, shape (m, degree), and how often it comes in a product of `degree` sums, (m,)."""
    factors = np.array(list(combinations_with_replacement(range(d), degree)))
    counts = [math.factorial(degree) / math.prod(map(math.factorial, np.bincount(one))) for one in factors]
    return factors, np.array(counts)


def powers(patches: Array, degree: int) -> Array:
    """All monomials of a degree of patches (..., d), shape (..., m), by single products."""
    factors, _ = monomials(patches.shape[-1], degree)
    found = patches[..., factors[:, 0]]
    for k in range(1, degree):
        found = found * patches[..., factors[:, k]]
    return found


def distance(d: int, places: int, length: float) -> float:
    """How far, in l1, a record of patches in [0, 1]^d moves the coefficients of w; attained by a record of ones."""
    a = softplus_coefficients(length * math.sqrt(d))
    return places * sum(abs(a[k]) * length**k * d**k for k in DEGREES)


# ---- records --------------------------------------------------------------------------------------------------------
def patches_of(x: Array, side: int) -> Array:
    """Patches of side x side numbers at all places of square records (n, ...), shape (n, across, across, side^2)."""
    across = math.isqrt(x.shape[1] - 1) + 1
    square = np.zeros((len(x), across * across))
    square[:, : x.shape[1]] = x
    windows = np.lib.stride_tricks.sliding_window_view(square.reshape(-1, across, across), (side, side), axis=(1, 2))
    return windows.reshape(*windows.shape[:3], side * side)


def normal(patches: Array) -> Array:
    """Patches divided by their own lengths, added up number by number; those that are zero stay."""
    squares = np.zeros(patches.shape[:-1])
    for j in range(patches.shape[-1]):
        squares += patches[..., j] ** 2
    found: Array = patches * (layers.JUST_BELOW / np.maximum(np.sqrt(squares), layers.SHORTEST))[..., None]
    return found


def patch_rows(x: Array, side: int, length: float, printed: bool) -> Array:
    """Of each record what it adds (n, m): as printed coefficients of w, else moments with length at most one."""
    patches = patches_of(x, side)
    d, places = side * side, patches.shape[1] * patches.shape[2]
    a, parts = softplus_coefficients(length * math.sqrt(d)), []
    patches = patches.reshape(len(x), places, d) if printed else normal(patches).reshape(len(x), places, d)
    for k in DEGREES:
        total = np.zeros((len(x), len(monomials(d, k)[1])))
        for place in range(places):
            total += powers(patches[:, place], k)
        count = monomials(d, k)[1]
        parts.append(total * (a[k] * length**k * count if printed else np.sqrt(count) / (places * math.sqrt(len(DEGREES)))))
    return np.concatenate(parts, axis=1)


def pooled(x: Array, filters: Array, side: int, length: float, pool: int) -> Array:
    """Hidden units (n, b) float32: probabilities of filters and their negatives, the largest over blocks of places."""
    patches = normal(patches_of(x, side))
    across, both = patches.shape[1] // pool * pool, np.concatenate([filters, -filters]).astype(np.float32) * np.float32(length)
    used = np.ascontiguousarray(patches[:, :across, :across].reshape(-1, side * side), np.float32)
    h = rows.sigmoid(rows.multiply(used, rows.packed(both, transposed=True)))
    h = h.reshape(len(x), across // pool, pool, across // pool, pool, len(both)).max((2, 4))
    return np.ascontiguousarray(h.reshape(len(x), -1))


@local(additive=True, holds=BITS, norms=(1, 2))
def patch_sums(
    broadcast: None, party: Party, rng: Any, *, side: int, length: float, printed: bool, bounds: Bounds | None = None
) -> Array:
    """Sum over records of `patch_rows`, (m,)."""
    x, w, total = party["cube"].astype(np.float64), party.w, np.zeros(0)
    for start in range(0, max(len(x), 1), AT_ONCE):
        found = w[start : start + AT_ONCE, None] * patch_rows(x[start : start + AT_ONCE], side, length, printed)
        added = (found if bounds is None else whole(found, bound_in(bounds, ""))).sum(0)
        total = total + added if total.size else added
    return total


@local(additive=True, holds=BITS, norms=(1, 2))
def output_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    side: int,
    length: float,
    pool: int,
    labels: int,
    printed: bool,
    bounds: Bounds | None = None,
) -> Array:
    """Of pooled units: as printed (1/2 - y) h and h h' / 8 (upper triangle, twice off the diagonal), else moments."""
    h = pooled(party["cube"].astype(np.float64), broadcast["filters"], side, length, pool)
    if not printed:
        return layers.moments_of(layers.spread(h), party["label"], party.w, labels, bounds)
    h, at = h.astype(np.float64), np.triu_indices(h.shape[1])
    twice = np.where(at[0] == at[1], 1.0, 2.0) / 8
    total = np.zeros(labels * h.shape[1] + len(twice))
    for start in range(0, len(h), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        line = (0.5 - (party["label"][some, None] == np.arange(labels)))[:, :, None] * h[some, None, :]
        added = np.concatenate([line.reshape(len(line), -1), h[some][:, at[0]] * h[some][:, at[1]] * twice], axis=1)
        added = party.w[some, None] * added
        total += (added if bounds is None else whole(added, bound_in(bounds, ""))).sum(0)
    return total


# ---- filters, from what was released --------------------------------------------------------------------------------
def found_filters(released: Array, side: int, length: float, n_filters: int, printed: bool, places: int) -> Array:
    """Orthogonal filters (K, d) that tell records' patches from public ones best, by the polynomial; nobody is asked."""
    d, rng = side * side, np.random.default_rng(0)
    noise = rng.uniform(size=(REFERENCE, side * side))
    public = noise[:, None, :] if printed else normal(noise)[:, None, :]
    a, at = softplus_coefficients(length * math.sqrt(d)), 0
    directions, chosen = rng.normal(size=(DIRECTIONS, d)), np.zeros((0, d))
    parts = []
    for k in DEGREES:
        count = monomials(d, k)[1]
        of_records, at = released[at : at + len(count)], at + len(count)
        of_public = powers(public[:, 0], k).mean(0)
        parts.append((k, count, of_records if printed else of_records * math.sqrt(len(DEGREES)) / np.sqrt(count), of_public))
    seen = _places_seen(parts, a, length, d, printed, places)
    for _ in range(n_filters):
        left = directions - directions @ chosen.T @ chosen
        long = np.linalg.norm(left, axis=1)
        left = left[long > ROUNDING] / long[long > ROUNDING, None]
        value = np.zeros(len(left))
        for k, count, of_records, of_public in parts:
            factor = a[k] * length**k * count
            value += powers(left, k) @ ((of_records if printed else factor * of_records) / seen - factor * of_public)
        chosen = np.concatenate([chosen, left[[np.abs(value).argmax()]]])
    return chosen


def _places_seen(parts: list[Any], a: tuple[float, ...], length: float, d: int, printed: bool, places: int) -> float:
    """About how many records, or as printed patches, were added up: by the second degree, floored by a public number."""
    _, count, of_records, of_public = parts[1]
    squares = count == 1
    factor = a[2] * length**2 if printed else 1.0
    return max(float(of_records[squares].sum() / factor / of_public[squares].sum()), 10.0 * (places if printed else 1))


def score(settings: Mapping[str, Any], state: BeliefState, schema: Schema, table: Table) -> float:
    """Accuracy on a table."""
    x, label = layers.of_table(table)
    if not state.output.size:
        return float((label == 0).mean())
    h = pooled(x.astype(np.float64), state.filters, *(settings[name] for name in ("side", "length", "pool")))
    read = layers.spread(h) if settings["form"] == "corrected" else h
    return float((layers.decided(read, state.output).argmax(1) == label).mean())


def watch(settings: Mapping[str, Any], state: BeliefState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Accuracy on the server's table."""
    return {} if test is None else {"test accuracy": score(settings, state, schema, test)}


@program(
    "A convolutional belief net by noisy polynomials (Phan et al. 2017), as printed or corrected.",
    score=score,
    watch=watch,
    metric=lambda schema: ("accuracy", True),
    case=lambda: Case(load("digits").take(range(120)), {"filters": 2}, tolerance=1e-5),
)
def private_belief_net(
    federation: Federation,
    *,
    filters: int = 4,
    side: int = 2,
    length: float = 2.0,
    pool: int = 2,
    epsilon: float | None = None,
    delta: float | None = None,
    form: Form = "corrected",
    start: BeliefState | None = None,
) -> Iterator[BeliefState]:
    """Fit filters, and an output on their pooled probabilities.

    Parameters
    ----------
    filters : int
        At most side^2; each comes with its negative.
    side : int
        f: of a patch, 2 or 3.
    length : float
        r: by what products of filters and patches are multiplied.
    pool : int
        Places in a row of which the largest probability is taken.
    epsilon, delta : float, optional
        The budget; as printed it is pure, and delta is left unused. None takes the channel's noise.
    form : {"printed", "corrected"}
        Laplace noise by constants of the cube, or normal patches and any noise.
    start : BeliefState, optional
        Continue after this state.

    Yields
    ------
    BeliefState
        After the filters, and after the output.

    Releases
    --------
    Sums over records of moments of their patches; of products of pooled units and labels. Each once.

    Raises
    ------
    SettingsInvalid (HR-511), BudgetInvalid (HR-214), SchemaInvalid (HR-409)
    """
    d, K, wide = side * side, layers.n_classes(federation.schema), layers.width(federation.schema)
    across = math.isqrt(wide - 1) + 1 - side + 1
    if side not in (2, 3) or not 1 <= filters <= d or length <= 0 or not 1 <= pool <= across:
        raise SettingsInvalid(
            f"filters {filters}, side {side}, pool {pool}, length {length}.",
            remedy="A side is 2 or 3, there are at most side^2 filters, and blocks are no larger than the record.",
        )
    if form not in ("printed", "corrected"):
        raise SettingsInvalid(f"form is {form!r}.", remedy="Say 'printed' or 'corrected'.")
    printed = form == "printed"
    budget = BudgetShares(epsilon, None if printed and epsilon is not None else delta)
    handles = budget.handles(federation, {name: Share(share) for name, share in SHARES.items()}, begins=start is None)
    ready = {name: layers.at_parties(one) for name, one in handles.items()}
    units, same = 2 * filters * (across // pool) ** 2, {"side": side, "length": length, "printed": printed}
    if start is None:
        bound = l1(2 * distance(d, across**2, length), "record") if printed else l2(1.0, "record")
        released: Any = ready["filters"].sum(partial(patch_sums, **same), bound=bound)
        chosen = found_filters(released, side, length, filters, printed, across**2)
        start = BeliefState(1, chosen, np.zeros((0, K)))
        yield start
    if start.round == 1:
        ask, asked = partial(output_sums, **same, pool=pool, labels=K), ready["output"]
        bound = l1(output_distance(K, units, "printed"), "record") if printed else l2(1.0, "record")
        flat: Any = asked.sum(ask, {"filters": start.filters}, bound=bound)
        noise = noise_level(asked, bound, "", len(flat))
        yield BeliefState(
            2, start.filters, _printed_output(flat, units, K, noise) if printed else _output(flat, units, K, noise)
        )


def _output(flat: Array, units: int, K: int, noise: float) -> Array:
    matrix, sums = layers.matrix_of(flat, units + 1, K)
    return layers.least_squares(matrix, sums, noise / layers.HALF)


def _printed_output(flat: Array, units: int, K: int, noise: float) -> Array:
    quadratic = np.zeros((units, units))
    quadratic[np.triu_indices(units)] = flat[units * K :]
    quadratic = (quadratic + quadratic.T) / 2
    found = least(flat[: units * K].reshape(K, units), np.broadcast_to(quadratic, (K, units, units)), noise / math.sqrt(2))
    return np.concatenate([np.zeros((1, K)), found.T])
