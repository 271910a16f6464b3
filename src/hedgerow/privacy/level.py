"""How large the noise of a release is, for programs that correct what they estimate from it."""

from __future__ import annotations

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.federation import Federation, inside
from hedgerow.errors import BudgetInvalid


def noise_level(federation: Federation, bounds: Bounds | None, key: str, size: int, others: int = 0) -> float:
    """Standard deviation of the noise in each number of one key of the next release; 0 without a mechanism.

    Parameters
    ----------
    federation : Federation
        Through whose channel the sum is asked; with noise from the parties its expected size decides.
    bounds : Bound or dict of Bound, optional
        As declared beside the sum.
    size : int
        Numbers of the key.
    others : int
        Numbers of the other keys together: where one bound holds for all keys, the noise may grow with all of them.

    Raises
    ------
    BudgetInvalid (HR-214)
        The mechanism adds no noise to numbers, such as one that chooses.
    """
    found = known_level(federation, bounds, key, size, others)
    if found is None:
        mechanism = federation.protection.mechanism
        raise BudgetInvalid(f"{mechanism} adds no noise of a known size.", remedy="Ask through one that does.")
    return found


def known_level(federation: Federation, bounds: Bounds | None, key: str, size: int, others: int = 0) -> float | None:
    """The same, and None where the mechanism adds no noise of a known size."""
    run, _, channel, *_ = inside(federation)
    release = channel.release(key, bounds)
    if release.mechanism is None or release.bounds is None:
        return 0.0
    if isinstance(release.bounds, Bound):
        rest = ((f"not {key}", (others,)),) if others else ()
        layout = Layout(((key, (size,)), *rest))
    else:
        layout = Layout(tuple((name, (size if name == key else 1,)) for name in release.bounds))
    use = run.uses(release.mechanism.key)
    found = release.mechanism.noise_deviation(release.bounds, layout, federation.expected_size, use)
    return None if found is None else found[key]
