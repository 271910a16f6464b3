"""Scattering: what it is on images whose transform is known, and that no record shapes another's features."""

import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.features import scatter, scattering
from hedgerow.learn.features.scattering import bank, grouped, n_channels


def blots(n=6, side=28, seed=0):
    """Smooth random images within 0..1."""
    noise = torch.rand(n, 1, side, side, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.avg_pool2d(noise, 5, 1, 2)[:, 0]


def test_two_scales_and_eight_angles_make_81_channels_of_7_by_7():
    assert scatter(blots(3)).shape == (3, 81, 7, 7)
    assert n_channels(2, 8) == 81
    assert scatter(torch.rand(2, 3, 32, 32)).shape == (2, 3, 81, 8, 8)
    assert scatter(blots(2), scales=1, angles=4).shape == (2, 5, 14, 14)
    assert scatter(blots(2, side=32), scales=3, angles=4).shape == (2, n_channels(3, 4), 4, 4)


def test_a_constant_image_keeps_its_value_in_the_first_channel_and_has_nothing_else():
    found = scatter(torch.full((2, 28, 28), 0.7))
    assert torch.allclose(found[:, 0], torch.tensor(0.7), atol=1e-5)
    assert found[:, 1:].abs().max() < 1e-5


def test_a_wave_is_heard_by_the_wavelet_of_its_frequency_and_angle():
    u = torch.arange(28.0)
    down = torch.cos(3 * torch.pi / 4 * u)[:, None].expand(28, 28)  # varies from row to row: a quarter turn
    first = scatter(down[None])[0, 1:17].mean((1, 2))
    assert int(first.argmax()) == 4  # of scale 0, the fifth of eight angles
    slow = torch.cos(3 * torch.pi / 8 * u)[None, :].expand(28, 28)
    assert int(scatter(slow[None])[0, 1:17].mean((1, 2)).argmax()) == 8  # of scale 1, the first angle


def test_a_wavelet_is_the_sampled_morlet_written_out_in_space():
    """By hand: the Gabor function minus its envelope, summed over the copies that a period of 36 makes."""
    at = np.arange(36) + 36 * np.arange(-3, 4)[:, None]
    v, u = at.reshape(7, 1, 36, 1), at.reshape(1, 7, 1, 36)
    for j, turn in ((0, 3), (1, 6)):
        angle, width, centre, slant = np.pi * turn / 8, 0.8 * 2**j, 0.75 * np.pi / 2**j, 0.5
        ahead, across = np.cos(angle) * u + np.sin(angle) * v, np.cos(angle) * v - np.sin(angle) * u
        envelope = np.exp(-(ahead**2 + slant**2 * across**2) / (2 * width**2)) * slant / (2 * np.pi * width**2)
        wave = (envelope * np.exp(1j * centre * ahead)).sum((0, 1))
        flat = envelope.sum((0, 1))
        expected = wave - wave.sum() / flat.sum() * flat
        np.testing.assert_allclose(np.fft.ifft2(bank(28, 28).wavelets[j, turn].numpy()), expected, atol=2e-6)


def test_the_fast_transform_equals_convolutions_at_full_resolution():
    x = blots(2)
    used = bank(28, 28)
    whole = torch.nn.functional.pad(x[:, None], (4,) * 4, mode="reflect")[:, 0].double()
    psi = used.wavelets.double()
    offsets = torch.arange(36) - 18
    bump = torch.exp(-0.5 * (offsets / 1.6) ** 2)
    phi = torch.fft.ifftshift(torch.outer(bump, bump) / bump.sum() ** 2)

    def average(band):
        return torch.fft.ifft2(torch.fft.fft2(band) * torch.fft.fft2(phi)).real[..., 4:32:4, 4:32:4]

    first = torch.fft.ifft2(torch.fft.fft2(whole)[:, None, None] * psi).abs()  # (n, 2, 8, 36, 36)
    second = torch.fft.ifft2(torch.fft.fft2(first[:, 0])[:, :, None] * psi[1]).abs()
    slow = torch.cat([average(whole)[:, None], average(first).flatten(1, 2), average(second).flatten(1, 2)], 1)
    fast = scatter(x).double()
    for part in (slice(9, 17), slice(17, 81)):  # sampled at a band's own scale, so a little is lost
        assert (fast - slow)[:, part].norm() < 0.05 * slow[:, part].norm()
    assert (fast[:, :9] - slow[:, :9]).abs().max() < 1e-5  # nothing is skipped at the finest scale


def test_the_wavelets_keep_within_the_energy_of_an_image():
    """Littlewood-Paley: so the transform moves no farther than the images (Mallat 2012, proposition 2.1)."""
    used = bank(28, 28)
    square = used.wavelets.square().sum((0, 1))
    mirrored = torch.roll(square.flip(0, 1), (1, 1), (0, 1))
    assert ((square + mirrored) / 2).max() <= 1.0
    x, y = blots(4), blots(4, seed=1)
    assert (scatter(x) - scatter(y)).norm() <= (x - y).norm()


def test_a_small_shift_moves_the_features_less_than_the_image():
    x = torch.zeros(1, 28, 28)
    x[0, 8:20, 13:15] = 1.0
    shifted = torch.roll(x, 1, 2)
    moved = (scatter(x) - scatter(shifted)).norm() / scatter(x).norm()
    assert moved < 0.5 * (x - shifted).norm() / x.norm()


def test_a_record_has_the_same_features_alone_and_among_others():
    x = blots(40)
    together = grouped(scatter(x), 27)
    alone = torch.cat([grouped(scatter(x[i : i + 1]), 27) for i in range(40)])
    assert torch.allclose(together, alone, atol=1e-4)


def test_groups_of_channels_are_brought_to_mean_zero_and_variance_one():
    found = grouped(scatter(blots(3)), 27, floor=1e-12).reshape(3, 27, -1)
    assert found.mean(-1).abs().max() < 1e-4
    assert (found.var(-1, unbiased=False) - 1).abs().max() < 1e-2


@pytest.mark.parametrize("settings", [{"scales": 0}, {"angles": 0}, {"scales": 3}, {"groups": 7}, {"groups": -1}])
def test_settings_that_fit_no_image_are_refused(settings):
    images = hr.data.Schema((hr.data.Column("image", "integer", low=0, high=255, shape=(28, 28)),))
    with pytest.raises(SettingsInvalid, match="HR-511"):
        scattering(images, **settings)


def test_columns_that_are_no_images_are_refused():
    numbers = hr.data.Schema((hr.data.Column("a", "number"), hr.data.Column("b", "number")))
    with pytest.raises(SettingsInvalid, match="one column of images"):
        scattering(numbers)


def test_parties_and_server_make_the_same_column_and_nothing_is_asked():
    rng = np.random.default_rng(0)
    schema = hr.data.Schema(
        (hr.data.Column("image", "integer", low=0, high=255, shape=(12, 12)), hr.data.Column("y", "binary", role="target"))
    )
    table = hr.data.Table({"image": rng.integers(0, 256, (9, 12, 12)).astype(np.uint8), "y": np.arange(9.0) % 2}, schema)
    step = scattering(schema, groups=0)
    fed = step.at_parties(hr.simulate(table, hr.data.iid(parties=3), seed=0))
    assert len(fed.ledger) == 0
    assert fed.schema.features == ("image scattered",)
    held = hr.engines.records(fed).prepared(inside(fed).view, together=True)
    found = step.of(table)
    assert found.schema == fed.schema
    order = [int(np.flatnonzero((table["image"] == image).all((1, 2)))[0]) for image in held.columns["image"]]
    np.testing.assert_array_equal(held.columns["image scattered"], found["image scattered"][order])


@pytest.mark.slow
def test_a_linear_model_reads_digits_better_through_scattering():
    """Least squares on 8 x 8 digits: 400 to learn from, the others to be read."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    images = torch.from_numpy(x.reshape(-1, 8, 8) / 16).float()
    images = torch.nn.functional.interpolate(images[:, None], size=(16, 16), mode="bilinear")[:, 0]
    features = grouped(scatter(images, scales=2, angles=8), 27).flatten(1).double().numpy()

    def accuracy(columns):
        a, onehot = np.column_stack([columns, np.ones(len(y))]), np.eye(10)[y]
        weight = np.linalg.solve(a[:400].T @ a[:400] + 1e-1 * len(a[0]) / 65 * np.eye(len(a[0])), a[:400].T @ onehot[:400])
        return float(((a[400:] @ weight).argmax(1) == y[400:]).mean())

    assert accuracy(features) > accuracy(x / 16) + 0.02
