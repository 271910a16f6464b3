"""Split training is that of the whole network to the bit, in every arrangement, on every engine, and after a pause."""

import os

import numpy as np
import pytest
import torch
from apart_double import AsHeld
from split_nets import SETTINGS, aligned, between, bottom, dropping, kept, made, normed, own_bottom, same, top, whole
from torch import nn

import hedgerow as hr
from hedgerow.vertical.split import cut, evaluate, predict, splitnn


def last_of(both, bottoms, *, upper=None, **settings):
    *_, last = splitnn(both, bottoms, upper or top(), **SETTINGS | {"epochs": 2, "labels": "shared"} | settings)
    return last


def one_sender(parts, x):
    return parts["top"](parts["alice"](x["alice"]))


def with_own(parts, x):
    return parts["top"](parts["alice"](x["alice"]) + parts["bank"](x["bank"]))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("own", [False, True], ids=["alice", "alice and bank"])
def test_split_is_whole_to_the_bit(precision, own):
    people = made()
    bottoms = {"alice": bottom(5)} | ({"bank": own_bottom(3)} if own else {})
    both = aligned(people)
    fit = last_of(both, bottoms, precision=precision).fit
    parts = {"alice": bottom(5), "top": top()} | ({"bank": own_bottom(3)} if own else {})
    wanted = whole(people, parts, with_own if own else one_sender, dtype=getattr(torch, precision))
    states = kept(both)
    assert same(states["alice"], fit.bottoms["alice"].piece, wanted["alice"])
    assert same(states["bank"], fit.top.piece, wanted["top"])
    if own:
        assert same(states["bank"], fit.bottoms["bank"].piece, wanted["bank"])


@pytest.mark.parametrize("engine", ["loop", pytest.param("processes", marks=pytest.mark.slow)])
def test_split_is_whole_to_the_bit_on_every_engine(engine):
    people, made_by = made(), {"loop": hr.Loop, "processes": lambda: hr.Processes(2)}[engine]
    both, one = aligned(people, engine=made_by()), aligned(people)
    bottoms = {"alice": bottom(5), "bank": own_bottom(3)}
    there, here = last_of(both, bottoms), last_of(one, bottoms)
    assert (there.loss, there.score, there.n) == (here.loss, here.score, here.n)
    said = [evaluate(handle, state) for handle, state in ((both, there), (one, here))]
    assert said[0] == said[1]
    if engine == "loop":
        assert all(np.array_equal(value, kept(one)["alice"][name]) for name, value in kept(both)["alice"].items())


@pytest.mark.parametrize("merge", ["sum", "concat", "maximum"])
def test_two_senders_and_own_features_are_merged_as_in_one_place(merge):
    people = made()
    both = aligned(people, "alice", "carol")
    bottoms = {"alice": bottom(5), "carol": bottom(4), "bank": own_bottom(3)}
    width = 18 if merge == "concat" else 6
    fit = last_of(both, bottoms, upper=top(width), merge=merge, hidden=False).fit

    def joined(parts, x):
        z = [parts[name](x[name]) for name in ("alice", "carol", "bank")]
        return parts["top"]({"sum": z[0] + z[1] + z[2], "concat": torch.cat(z, 1), "maximum": torch.stack(z, 1).amax(1)}[merge])

    parts = {"alice": bottom(5), "carol": bottom(4), "bank": own_bottom(3), "top": top(width)}
    wanted, states = whole(people, parts, joined), kept(both)
    assert all(same(states[name], fit.bottoms[name].piece, wanted[name]) for name in bottoms)
    assert same(states["bank"], fit.top.piece, wanted["top"])


@pytest.mark.slow
def test_masks_of_a_sum_change_the_last_bits_alone():
    people, bottoms = made(), {"alice": bottom(5), "carol": bottom(4)}
    both, open_ = aligned(people, "alice", "carol"), aligned(people, "alice", "carol")
    fit = last_of(both, bottoms).fit
    last_of(open_, bottoms, hidden=False)
    for name, value in fit.bottoms["alice"].piece.weights(kept(both)["alice"]).items():
        np.testing.assert_allclose(value, fit.bottoms["alice"].piece.weights(kept(open_)["alice"])[name], atol=1e-6)
    assert any("the total of rows of alice, carol" in said for said in both.saw["bank"])
    assert not any("record by record" in said for said in both.saw["bank"])
    assert any("record by record, of alice, carol" in said for said in open_.saw["bank"])


@pytest.mark.parametrize("at", ["hub", "carol"])
def test_a_u_shape_is_the_whole_network_wherever_its_middle_lies(at):
    people = made()
    both = aligned(people, "alice", "carol")
    last = last_of(both, {"alice": bottom(5), "bank": own_bottom(3)}, middle=between(), middle_at=at, hidden=False)

    def joined(parts, x):
        return parts["top"](parts["middle"](parts["alice"](x["alice"]) + parts["bank"](x["bank"])))

    parts = {"alice": bottom(5), "bank": own_bottom(3), "middle": between(), "top": top()}
    wanted, states, fit = whole(people, parts, joined), kept(both), last.fit
    assert all(same(states[name], fit.bottoms[name].piece, wanted[name]) for name in ("alice", "bank"))
    assert same(states["bank"], fit.top.piece, wanted["top"])
    assert same(last.middle if at == "hub" else states[at], fit.middle.piece, wanted["middle"])
    output = joined(parts, {name: torch.from_numpy(values.astype(np.float32)) for name, values in people.x.items()})
    assert evaluate(both, last)["accuracy"] == pytest.approx(float((output.argmax(1).numpy() == people.label).mean()))


@pytest.mark.parametrize(
    ("kind", "loss", "n_outputs"),
    [("binary", nn.functional.binary_cross_entropy_with_logits, 1), ("number", nn.functional.mse_loss, 1)],
)
def test_labels_of_other_kinds(kind, loss, n_outputs):
    people = made(kind)
    both = aligned(people)
    last = last_of(both, {"alice": bottom(5)}, upper=top(6, n_outputs), precision="float64")
    parts = {"alice": bottom(5), "top": top(6, n_outputs)}
    wanted = whole(people, parts, lambda p, x: one_sender(p, x)[:, 0], dtype=torch.float64, loss=loss)
    for name, value in last.fit.top.piece.weights(kept(both)["bank"]).items():
        np.testing.assert_allclose(value, wanted["top"].state_dict()[name].numpy(), rtol=1e-12)
    score = "mean_squared_error" if kind == "number" else "accuracy"
    assert set(evaluate(both, last)) == {"loss", score, "n"}


def test_optimisers_with_a_memory_of_their_own():
    people = made()
    both = aligned(people)
    rule = {"optimiser": torch.optim.Adam, "learning_rate": 0.01, "momentum": 0.0, "optimiser_settings": {"weight_decay": 0.01}}
    fit = last_of(both, {"alice": bottom(5)}, **rule).fit
    parts = {"alice": bottom(5), "top": top()}
    wanted = whole(people, parts, one_sender, make=lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01))
    assert same(kept(both)["alice"], fit.bottoms["alice"].piece, wanted["alice"])
    assert same(kept(both)["bank"], fit.top.piece, wanted["top"])


def test_layers_that_keep_statistics_keep_them_once_a_batch():
    people = made()
    both = aligned(people)
    fit = last_of(both, {"alice": normed(5)}).fit
    wanted = whole(people, {"alice": normed(5), "top": top()}, one_sender)
    assert same(kept(both)["alice"], fit.bottoms["alice"].piece, wanted["alice"])


def test_layers_that_draw_draw_the_same_on_the_way_back():
    piece = last_of(aligned(made()), {"alice": dropping(5)}, epochs=1).fit.bottoms["alice"].piece
    state, x = dict(piece.initial), torch.ones(4, 5)
    with piece.randomness(state, np.random.default_rng(1)):
        first = piece.opened(state)(x)
    with piece.randomness(state):
        again = piece.opened(state)(x)
    with piece.randomness(state, np.random.default_rng(2)):
        other = piece.opened(state)(x)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.slow
def test_a_training_that_is_continued_has_the_same_bits():
    people = made()
    at_once, in_two = aligned(people), aligned(people)
    last_of(at_once, {"alice": bottom(5)}, epochs=3)
    first = last_of(in_two, {"alice": bottom(5)}, epochs=1)
    last = last_of(in_two, {"alice": bottom(5)}, epochs=3, start=first)
    assert last.round == 3
    for party in ("alice", "bank"):
        assert all(np.array_equal(value, kept(in_two)[party][name]) for name, value in kept(at_once)[party].items())


def test_people_who_are_held_out_are_in_no_batch():
    people = made()
    both = aligned(people)
    last = last_of(both, {"alice": bottom(5)}, held_out=0.3)
    batches = last.fit.top.batches
    drawn = np.concatenate([batches.rows(70, 1, batch) for batch in range(batches.count(70))])
    out = batches.people(70, "held out")
    assert last.n == 49 == len(drawn)
    assert sorted([*drawn, *out]) == list(range(70))
    assert evaluate(both, last, who="held out")["n"] == 21
    assert (kept(both)["bank"]["split/kept/records"][out] == 0).all()


def test_predictions_reach_whoever_is_named_and_nobody_else():
    people = made()
    both = aligned(people, "alice", "carol")
    last = last_of(both, {"alice": bottom(5)})
    fit = last.fit
    assert predict(both, last, to="carol") is None
    states = kept(both)
    found = states["carol"]["split/kept/predicted"]
    assert "split/kept/predicted" not in states["alice"]
    modules = [piece.opened(states[party], trains=False) for party, piece in fit.pieces]
    with torch.no_grad():
        wanted = torch.softmax(modules[1](modules[0](torch.from_numpy(people.x["alice"].astype(np.float32)))), 1).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert evaluate(both, last)["accuracy"] == pytest.approx((wanted.argmax(1) == people.label).mean())
    at_hub = predict(both, last, to="hub")
    np.testing.assert_allclose(np.sort(at_hub[:, 0]), np.sort(wanted[:, 0]), atol=1e-6)
    assert not np.allclose(at_hub[:, 0], wanted[:, 0], atol=1e-3)  # in an order that the hub does not know


def test_a_network_is_cut_where_one_says():
    net = hr.learn.mlp(5, [8, 6], 3, seed=7)
    first, second = cut(net, 5)
    x = torch.ones(2, 5)
    assert torch.equal(second(first(x)), net(x))
    people = made()
    both = aligned(people)
    assert last_of(both, {"alice": first}, upper=second).n == 70


@pytest.mark.slow
@pytest.mark.skipif("HEDGEROW_DATA" not in os.environ, reason="the images of MNIST lie where HEDGEROW_DATA says")
def test_the_network_of_figure_3_1_is_the_whole_one_on_images():
    table = hr.data.load("mnist")
    pixels, digits, ids = np.asarray(table["image"][:2000]), np.asarray(table["digit"][:2000]), np.arange(2000)
    schema, number = table.schema, hr.data.Column("id", "integer")
    held = {
        "alice": hr.data.Table({"image": pixels, "id": ids}, hr.data.Schema((schema["image"], number))),
        "bob": hr.data.Table({"digit": digits, "id": ids}, hr.data.Schema((schema["digit"], number))),
    }
    both = hr.simulate(held, on="id", seed=0).align(on="id", by=AsHeld())
    net = hr.learn.mlp(784, [128, 640], 10, seed=0)
    first, second = cut(net, 5)
    how = {"learning_rate": 0.03, "momentum": 0.9, "batch_size": 64, "seed": 1, "scale": "symmetric", "labels": "shared"}
    (last,) = splitnn(both, {"alice": first}, second, label="bob.digit", epochs=1, **how)
    x = torch.from_numpy((pixels.reshape(-1, 784).astype(np.float32) / 255 - 0.5) / 0.5)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    for rows in torch.from_numpy(np.random.default_rng([1, 0]).permutation(2000)).split(64):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), torch.from_numpy(digits.astype(np.int64))[rows]).backward()
        optimiser.step()
    assert same(kept(both)["alice"], last.fit.bottoms["alice"].piece, net[:5])
    assert evaluate(both, last)["accuracy"] > 0.7
