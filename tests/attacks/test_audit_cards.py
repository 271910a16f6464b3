"""What results of audits show of themselves in a terminal and in a notebook."""

import numpy as np

from hedgerow.attacks import AttackCeiling, law_of_scores, one_run_bounds, power_of_scores


def test_each_result_shows_its_sentence_and_its_table():
    rng = np.random.default_rng(0)
    inside, outside = 2 + rng.standard_normal(200), rng.standard_normal(200)
    shown = [
        (law_of_scores(inside, outside, 1.0), "RED", "of the accounted mu"),
        (one_run_bounds(inside, outside, 1e-5), "any mechanism", "guesses"),
        (power_of_scores(200, 200, 0.5), "half the noise 0.94", "by canaries"),
        (AttackCeiling.of(2.0, 1e-5), "AUC 0.881", "this mechanism"),
    ]
    for value, in_text, in_cell in shown:
        assert in_text in " ".join(repr(value).split())
        assert in_cell in value._repr_html_()
        assert ">nan<" not in value._repr_html_()
