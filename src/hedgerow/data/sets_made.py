"""Data sets that are made, not measured: the same numbers on every machine."""

from __future__ import annotations

import numpy as np

from .entry import CatalogueEntry, Parts, category, declare, integer, number

RECORDS, INPUTS = 100, 9
SETS: tuple[tuple[tuple[float, ...], float], ...] = (
    ((60.84,), 0.0),
    ((63.78,), 1.0),
    ((17.83, 38.08), 0.0),
    ((32.27, 86.45), 1.0),
    ((27.62, 34.14, 0.0, 0.0, 0.0, 99.89, 8.26, 0.0, 12.31), 0.0),
    ((0.0, 0.0, 62.72, 0.0, 91.38, 92.97, 48.93, 65.42, 0.0), 0.25),
)
"""Coefficients of the inputs, and the noise in standard deviations of what they add up to: for each target one."""
SEED = 63
PEOPLE = 1_500_000
NORMALS, CORRELATION = 1000, 0.5
LEVELS = (0.3, 0.2, 0.4, 0.07, 0.03)
"""Probabilities of the levels of Sempere's category."""


def noise_experiment() -> Parts:
    """Draw standard normal inputs, standardise them, and add noise to their linear combinations.

    Source
    ------
    van Aarle 2021, tables 6.2 and 6.3. Differs: his draws are not published; coefficients and noise are his, but for the
    last target, whose noise he gives as four standard deviations: his estimates are as near as with a quarter of one.
    """
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((RECORDS, INPUTS))
    x = (x - x.mean(0)) / x.std(0)
    columns = {f"x{j + 1}": x[:, j] for j in range(INPUTS)}
    for i, (coefficients, noise) in enumerate(SETS):
        y = x[:, : len(coefficients)] @ np.array(coefficients)
        columns[f"y{i + 1}"] = y + noise * y.std() * rng.standard_normal(RECORDS)
    return columns, None


def contacts() -> Parts:
    """Draw people with different telephone numbers, and two counts that have an activity of theirs in common."""
    rng = np.random.default_rng(SEED)
    numbers = np.sort(rng.integers(600_000_000, 800_000_000, PEOPLE + PEOPLE // 50))
    numbers = numbers[np.diff(numbers, prepend=0) > 0]
    activity = rng.standard_exponential(PEOPLE)
    columns = {
        "phone": rng.permutation(numbers)[:PEOPLE],
        "messages": np.minimum(30 * (activity + rng.standard_exponential(PEOPLE)), 1_000).astype(int),
        "orders": np.minimum(2 * (activity + rng.standard_exponential(PEOPLE)), 100).astype(int),
    }
    return columns, None


def two_normals() -> Parts:
    """Draw two correlated standard normals and a category that does not depend on them; the test part is of the same law.

    Source
    ------
    Sempere 2024, section 4.2. Differs: his draw is not published; means, covariance and probabilities are his.
    """
    rng = np.random.default_rng(SEED)
    covariance = np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])

    def draw() -> dict[str, np.ndarray]:
        x, y = rng.multivariate_normal(np.zeros(2), covariance, NORMALS).T
        return {"x": x, "y": y, "category": rng.choice(len(LEVELS), NORMALS, p=LEVELS)}

    return draw(), draw()


MADE = {
    "contacts": CatalogueEntry(
        "Contacts: 1500000 made people with a telephone number of nine digits, messages they sent in a month and orders they "
        "placed in a year; two parties that have a third of them in common hold a million each.",
        declare(
            integer("phone", 600_000_000, 799_999_999, role="id"),
            integer("messages", 0, 1_000, "messages"),
            integer("orders", 0, 100, "orders", role="target"),
        ),
        contacts,
    ),
    "two_normals": CatalogueEntry(
        "Two normals: 1000 made records of two normals with correlation 0.5 and a category of five levels that does not depend "
        "on them, and as many again as a test part; after J. Sempere 2024, section 4.2.",
        declare(number("x", -5, 5), number("y", -5, 5), category("category", "0 1 2 3 4", role="target")),
        two_normals,
    ),
    "noise_experiment": CatalogueEntry(
        "Noise experiment: 100 made records, nine standardised inputs and six targets with known coefficients, three of "
        "them noisy; after C. van Aarle 2021, tables 6.2 and 6.3.",
        declare(
            *(number(f"x{j + 1}", -6, 6, "sd") for j in range(INPUTS)),
            *(number(f"y{i + 1}", -4000, 4000, role="ignore") for i in range(5)),
            number("y6", -4000, 4000, role="target"),
        ),
        noise_experiment,
    ),
}
