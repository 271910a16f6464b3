"""Noise at aggregators: its law, who is told of it, and twins that draw less, draw the same, or can be told to."""

from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hidden_rounds import contributions_of
from scipy.stats import chi2
from scipy.stats import skellam as skellam_law

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2
from hedgerow.core.mechanism import NoiseRuns
from hedgerow.core.release import Release
from hedgerow.crypto.conversation import drive
from hedgerow.crypto.fixedpoint import RingEncoding, encoding_for
from hedgerow.crypto.keys import AgreementKey
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares, Aggregator, Drawing
from hedgerow.crypto.shares.aggregator_noise import add_noise, noise_told, noise_words, own_entropy
from hedgerow.crypto.shares.letters import AGREE, COLLECT, SUM, TOTAL
from hedgerow.crypto.shares.round_task import RoundTask
from hedgerow.errors import BudgetInvalid, HedgerowError, MessageRefused, RangeExceeded, RoundRefused, UnlawfulChannel
from hedgerow.privacy import Gaussian, Laplace, Noise
from hedgerow.privacy.mechanisms import drawn

IDS = ("a", "b", "c", "d")
FIELD = 2**64 - 2**32 + 1


def release_of(law="gaussian", z=0.5, k=2, bounds=None, at="aggregators"):
    return Release(bounds=bounds or l2(1.0), mechanism=Noise(law, z, at).added_by(k))


def layout_of(*sizes):
    return Layout(tuple((f"k{i}", (n,)) for i, n in enumerate(sizes)))


def words_of(noise):
    """What aggregators are told of these runs."""

    class Told(Noise):
        def each_adds(self, bounds, layout):
            return noise

    told = Told("gaussian", 1.0, "aggregators", aggregators=2)
    return noise_words(Release(bounds=l2(1.0), mechanism=told), layout_of(noise.size), 2)


def seeded(place, seed=0):
    return Drawing(drawn, lambda: np.random.default_rng((seed, place)).bytes)


class Kept(Aggregator):
    """An aggregator that keeps what it was told, and what it added."""

    def answer(self, step, letter):
        self.letters = {**getattr(self, "letters", {}), step: letter}
        return super().answer(step, letter)

    def _add_noise(self, total, drawn, modulus):
        self.added = drawn
        super()._add_noise(total, drawn, modulus)


def shared(k=2, kind=Kept, drawings=seeded):
    settings, keys = AdditiveShares(k), [AgreementKey.fresh() for _ in range(k)]
    publics = [key.public for key in keys]
    aggregators = [kind(key, publics, drawing=drawings and drawings(i)) for i, key in enumerate(keys)]
    server = AdditiveServer(settings, IDS, aggregators)
    return server, {id: AdditiveParty(id, settings, server.keys) for id in IDS}


def ask(both, noise, *, told=None, size=64, bits=64, refused=None):
    """The total of zeros: the noise. `noise` is what parties heard, `told` what aggregators are told where that differs."""
    server, parties = both
    encoding = RingEncoding(bits, len(IDS), ((size, 1.0),), whole=True, spare=1 << 12)
    rows = {id: np.zeros(size, np.int64) for id in IDS}
    given = {id: replace(one, noise=noise) for id, one in contributions_of(rows, encoding).items()}
    about = server.total(IDS, encoding, b"model and question", 0, noise if told is None else told)
    return encoding.decode(drive(about, parties, given, refused=refused).total)


# ---- words
def test_what_aggregators_are_told_is_the_whole_noise_of_the_release():
    layout, bounds = layout_of(3, 2, 4), {"k0": l2(1.0), "k1": l2(8.0), "k2": l2(8.0)}
    for law in ("gaussian", "laplace", "skellam", "geometric", "discrete gaussian"):
        release = release_of(law, 5.0, bounds=bounds)
        noise = noise_told(noise_words(release, layout, 2), 9)
        server = Noise(law, 5.0)
        planned = server._plan(bounds, layout)
        assert noise.law == law
        scales = np.repeat([scale for _, scale in noise.runs], [n for n, _ in noise.runs])
        for block in planned:
            assert (scales[block.part] == block.scale).all()
        assert all(a[1] != b[1] for a, b in pairwise(noise.runs)), "equal runs are one"
        steps = noise.draw(drawn, np.random.default_rng(3).bytes)
        same = server.at_server(np.zeros(9, np.int64), bounds, layout, np.random.default_rng(3).bytes)
        units = replace(server, at="party").at_server(steps, bounds, layout, None)
        if len(noise.runs) == len(planned):
            np.testing.assert_array_equal(units, same)


def test_words_are_canonical_and_wrong_ones_are_refused():
    words = words_of(NoiseRuns("laplace", ((3, 2.0), (2, 5.5))))
    assert noise_told(words, 5) == NoiseRuns("laplace", ((3, 2.0), (2, 5.5)))
    assert noise_told(b"", 5) is None
    for raw, size in ((words, 6), (words + b"0", 5), (words[:-1], 5), (b"?", 5)):
        with pytest.raises(MessageRefused, match="HR-242"):
            noise_told(raw, size)
    for scale in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(MessageRefused, match="scales"):
            words_of(NoiseRuns("gaussian", ((5, scale),)))


@pytest.mark.parametrize(("k", "has"), [(2, 0), (2, 3), (0, 2), (0, 0)])
def test_a_party_refuses_noise_that_nobody_there_would_add(k, has):
    """Whatever a server says of the protocol: the row would leave without noise, and the total be exact."""
    with pytest.raises(UnlawfulChannel, match="HR-211"):
        noise_words(release_of(k=k), layout_of(3), has)


@pytest.mark.parametrize("at", ["server", "party"])
def test_noise_elsewhere_is_none_of_aggregators(at):
    assert noise_words(Release(bounds=l2(1.0), mechanism=Gaussian(1.0, at)), layout_of(3), 2) == b""
    assert noise_words(Release(), layout_of(3), 2) == b""


# ---- adding
@pytest.mark.parametrize(("modulus", "kind"), [(2**16, np.uint16), (2**32, np.uint32), (2**64, np.uint64), (FIELD, np.uint64)])
def test_noise_is_added_in_whole_numbers_modulo_whatever_the_total_is(modulus, kind):
    rng = np.random.default_rng(1)
    edge = [0, 1, modulus - 1, modulus // 2]
    here = [int(x) for x in rng.integers(0, min(modulus, 2**63), 200)] + edge * 3
    drawn = [int(x) for x in rng.integers(-(2**45), 2**45, 200)] + [0, 0, 1, -1, -1, 1, -(2**40), 2**40, 1, -1, 0, -7]
    total = np.array(here, dtype=np.uint64).astype(kind)
    add_noise(total, np.array(drawn, np.int64), modulus)
    assert total.tolist() == [(a + b) % modulus for a, b in zip(here, drawn, strict=True)]


def test_the_ring_keeps_room_for_the_noise_of_all_aggregators():
    for k in (2, 64):
        noise = Laplace(1.0, at="aggregators").added_by(k)
        release = Release(bounds=l2(1.0), mechanism=noise)
        layout = layout_of(50)
        encoding = encoding_for(release, layout, parties=100)
        assert encoding.spare >= k * 36 * 4096
        assert 100 * encoding.most + encoding.spare < 2**63
        plain = encoding_for(Release(bounds=l2(1.0), mechanism=Laplace(1.0)), layout, parties=100)
        assert plain.spare == 0
        assert plain.digest != encoding.digest
    with pytest.raises(RangeExceeded, match=r"HR-243.*noise of aggregators"):
        encoding_for(release, layout, parties=4, bits=16)
    assert encoding_for(Release(bounds=l2(1.0), mechanism=Laplace(1.0)), layout, parties=4, bits=16).most


# ---- the law of what was added
def weights(law, scale):
    k = np.arange(-400, 401)
    found = {"gaussian": np.exp(-(k**2) / (2 * scale**2)), "laplace": np.exp(-np.abs(k) / scale)}
    return found[law] / found[law].sum() if law in found else skellam_law.pmf(k, scale**2 / 2, scale**2 / 2)


def chance(values, pmf):
    """Of a chi-square as large, over numbers -400..400 of this law; those that are rare are taken together."""
    counts = np.bincount(np.clip(values, -400, 400) + 400, minlength=801)
    order = np.argsort(pmf)
    groups = np.cumsum(pmf[order] * len(values)) // 20
    expected, seen = np.bincount(groups.astype(int), pmf[order] * len(values)), np.bincount(groups.astype(int), counts[order])
    expected, seen = expected[expected > 0], seen[expected > 0]
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1)


LEVEL = 1e-4
LAWS = pytest.mark.parametrize("law", ["gaussian", "laplace", "skellam"])


@LAWS
@pytest.mark.parametrize("k", [2, 3])
def test_each_aggregator_adds_the_whole_noise_and_the_total_has_that_of_all(law, k):
    server, _ = both = shared(k)
    total = ask(both, words_of(NoiseRuns(law, ((30_000, 4.0),))), size=30_000)
    each = [one.added for one in server.aggregators]
    pmf = together = weights(law, 4.0)
    for one in each:
        assert chance(one, pmf) > LEVEL
        assert chance(one, weights(law, 4.2)) < LEVEL, "the test sees five percent"
    for _ in range(k - 1):
        together = np.convolve(together, pmf)[400:-400]
    assert chance(total, together) > LEVEL
    np.testing.assert_array_equal(total, sum(each))
    for a, b in pairwise(each):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(30_000), "each draws its own"


class Half(Kept):
    def _add_noise(self, total, drawn, modulus):
        super()._add_noise(total, drawn // 2, modulus)


class LeftOut(Kept):
    def _add_noise(self, total, drawn, modulus):
        if self.place:
            super()._add_noise(total, drawn, modulus)


@pytest.mark.parametrize(
    ("kind", "drawings"),
    [(Half, seeded), (LeftOut, seeded), (Kept, lambda place: seeded(0))],
    ids=["half", "left out", "one seed"],
)
def test_the_law_goes_red_on_noise_that_is_half_missing_or_the_same(kind, drawings):
    total = ask(shared(2, kind, drawings), words_of(NoiseRuns("gaussian", ((30_000, 4.0),))), size=30_000)
    pmf = weights("gaussian", 4.0)
    assert chance(total, np.convolve(pmf, pmf)[400:-400]) < LEVEL


def test_without_a_seed_noise_is_another_each_time_and_everywhere():
    server, _ = both = shared(3, drawings=lambda place: Drawing(drawn))
    words, seen = words_of(NoiseRuns("gaussian", ((64, 5000.0),))), []
    for _ in range(2):
        ask(both, words)
        seen += [one.added for one in server.aggregators]
    assert len({tuple(one) for one in seen}) == 6
    assert own_entropy()(32) != own_entropy()(32)


def test_noise_fits_a_small_ring():
    total = ask(shared(), words_of(NoiseRuns("gaussian", ((2000, 30.0),))), size=2000, bits=16)
    assert abs(total.std() / (30 * np.sqrt(2)) - 1) < 5 / np.sqrt(4000)


# ---- who is told
WORDS, LESS = words_of(NoiseRuns("gaussian", ((64, 5000.0),))), words_of(NoiseRuns("gaussian", ((64, 1.0),)))


@pytest.mark.parametrize("told", [LESS, b""], ids=["less", "none"])
def test_parties_answer_no_server_that_announces_other_noise(told):
    refused = {}
    with pytest.raises(RoundRefused):
        ask(shared(), WORDS, told=told, refused=refused)
    assert refused == dict.fromkeys(IDS, "HR-242")


def rewritten(form, letter, **changes):
    return form.pack(**(dict(zip(form.kinds, form.unpack(letter), strict=True)) | changes))


def retold(form, letter, noise):
    task = RoundTask.unpacked(dict(zip(form.kinds, form.unpack(letter), strict=True))["task"])
    return rewritten(form, letter, task=replace(task, noise=noise).packed())


@pytest.mark.parametrize("noise", [LESS, b""], ids=["less", "none"])
def test_the_aggregator_that_opens_letters_opens_none_if_it_was_told_of_less_noise(noise):
    server, _ = both = shared()
    last = server.aggregators[-1]
    tell = last.answer
    last.answer = lambda step, letter: tell(step, retold(COLLECT, letter, noise) if step == "collect" else letter)
    with pytest.raises(RoundRefused):
        ask(both, WORDS)
    assert not last._round.sound.any()


def test_aggregators_that_were_told_of_different_noise_give_no_total():
    server, _ = both = shared()
    first = server.aggregators[0]
    tell = first.answer
    first.answer = lambda step, letter: tell(step, retold(AGREE, letter, LESS) if step == "agree" else letter)
    with pytest.raises(RoundRefused, match="'total': HR-242"):
        ask(both, WORDS)


def in_league_against_the_first(noise):
    """The others are in league with the server, and open what they were sent: what do they make of the honest one's total?"""
    server, _ = both = shared()
    total = ask(both, WORDS)
    honest, last = server.aggregators
    told = copy(honest)
    told._last, told._round, told.letters = 0, None, {}
    told.answer("agree", retold(AGREE, honest.letters["agree"], noise))
    told._among = [None, None]
    share = np.frombuffer(SUM.unpack(told.answer("total", rewritten(TOTAL, honest.letters["total"])))[2], "<u8")
    rest = (total - honest.added - last.added).astype(np.uint64)  # zeros, that were made of the true shares of both
    theirs = rest - true_share(honest)
    return (share + theirs).astype(np.int64)


def true_share(honest):
    """What the honest aggregator's streams add up to under the terms that parties knew."""
    again = copy(honest)
    again._last, again._round, again._among = 0, None, [None, None]
    again._add_noise = lambda total, drawn, modulus: None
    again.answer("agree", honest.letters["agree"])
    again._among = [None, None]
    return np.frombuffer(SUM.unpack(again.answer("total", honest.letters["total"]))[2], "<u8")


def gives_nothing_away(noise):
    found = in_league_against_the_first(noise)
    assert np.abs(found).max() > 2**50, "streams of other terms do not cancel"


@pytest.mark.parametrize("noise", [LESS, b""], ids=["less", "none"])
def test_an_honest_aggregator_that_is_told_of_less_noise_by_all_others_gives_nothing_away(noise):
    gives_nothing_away(noise)


@pytest.mark.parametrize("noise", [LESS, b""], ids=["less", "none"])
def test_it_goes_red_on_terms_that_leave_the_noise_out(noise, monkeypatch):
    whole = RoundTask.terms.fget
    monkeypatch.setattr(RoundTask, "terms", property(lambda self: whole(replace(self, noise=b""))))
    with pytest.raises(AssertionError):
        gives_nothing_away(noise)


def test_with_the_words_that_parties_know_its_noise_is_in_the_total():
    found = in_league_against_the_first(WORDS)
    assert 1000 < found.std() < 10_000


# ---- what an aggregator refuses
def test_an_aggregator_without_a_sampler_refuses_noise_and_adds_up_without():
    both = shared(drawings=None)
    with pytest.raises(RoundRefused, match="HR-242"):
        ask(both, WORDS)
    assert not ask(both, b"").any()


@pytest.mark.parametrize(
    "noise", [NoiseRuns("cauchy", ((64, 1.0),)), NoiseRuns("skellam", ((64, 1e9),)), NoiseRuns("gaussian", ((64, 1e300),))]
)
def test_noise_that_cannot_be_drawn_ends_the_round_and_the_next_one_is_answered(noise):
    both = shared()
    with pytest.raises(RoundRefused, match="HR-214"):
        ask(both, words_of(noise))
    assert ask(both, WORDS).any()


def test_a_refusal_of_noise_changes_nothing():
    server, _ = both = shared()
    ask(both, WORDS)
    for one in server.aggregators:
        before = (one._epoch, one._last, one._members, one._round)
        for words in (words_of(NoiseRuns("gaussian", ((65, 1.0),))), b"noise"):
            letter = rewritten(AGREE, retold(AGREE, one.letters["agree"], words), round=2)
            with pytest.raises(MessageRefused):
                one.answer("agree", letter)
        assert before == (one._epoch, one._last, one._members, one._round)


def test_the_sampler_refuses_other_laws():
    with pytest.raises(BudgetInvalid, match="HR-214"):
        drawn("cauchy", 1.0, 3, own_entropy())
    with pytest.raises(HedgerowError):
        drawn("gaussian", 2.0**50, 3, own_entropy())
