"""The zoo: the models of the papers that Hedgerow follows, as plain modules.

    name          source                           records          parameters
    logistic      Bishop 2006                      any shape        7 850       784-10
    two_nn        McMahan et al. 2017              any shape        199 210     784-200-200-10
    he_net        He et al. 2015                   any shape        25 450      784-32-10
    geyer_net     Geyer et al. 2017                any shape        531 400     784-600-100-10, no biases
    mcmahan_cnn   McMahan et al. 2017              images           1 663 370   28 x 28, grey, 10 classes
    lenet         Sempere 2024                     images           62 006      32 x 32, colour, 10 classes
    resnet18      He et al. 2016, with GroupNorm   images           11 173 962  32 x 32, colour, 10 classes
    lstm          Hochreiter & Schmidhuber 1997    (channels, time) 19 334      9 x 128, 6 classes

A builder is called with the shape of one record's input and the number of outputs; the seed decides the initial weights.
Images have the shape (height, width) or (channels, height, width). No softmax: the loss takes logits. No model keeps
statistics of records or draws random numbers, so each of them has per-record gradients, can be stacked, and can be traced.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hedgerow.errors import ModelInvalid, SettingsInvalid

from .made import leaves_note
from .models import linear, mlp

Shape = tuple[int, ...]

ANY_SHAPE = "at least one number, in an array of any shape"
"""What a fully connected model reads."""

GROUPS = 32
"""Groups of a GroupNorm, at most (Wu & He 2018, section 3.1)."""


class Builder(Protocol):
    """Makes a module for records of a shape."""

    def __call__(self, shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module: ...


@leaves_note
def logistic(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """Logistic regression, or linear regression for a number: one affine map of the flattened record.

        layer   output      parameters
        1       n_outputs   7 850 for 28 x 28 and 10 classes

    It starts at zero, so the seed changes nothing. With one output and a binary target it is the ordinary logistic
    regression; with an output for each class it has one redundant column.

    Source: Bishop 2006, sections 4.3.2 and 4.3.4.
    """
    _check("logistic", shape, n_outputs, True, ANY_SHAPE)
    with _drawn_from(seed):
        return linear(math.prod(shape), n_outputs)


@leaves_note
def two_nn(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """The "2NN": two hidden layers of 200 units with ReLU.

        layer   output      parameters, 28 x 28 and 10 classes
        1       200         157 000
        3       200          40 200
        5       n_outputs     2 010      total 199 210

    Source: McMahan et al. 2017, section 3, which gives no initial weights; these are PyTorch's.
    """
    _check("two_nn", shape, n_outputs, True, ANY_SHAPE)
    return mlp(math.prod(shape), [200, 200], n_outputs, seed=seed)


@leaves_note
def he_net(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """One hidden layer of 32 units with ReLU, whose weights keep the variance of what passes it.

        layer   output      parameters, 28 x 28 and 10 classes
        1       32          25 120
        3       n_outputs      330      total 25 450

    Source: He et al., ICCV 2015, section 2.2: normal weights of variance 2 / inputs of the layer, biases of zero.
    """
    _check("he_net", shape, n_outputs, True, ANY_SHAPE)
    net = mlp(math.prod(shape), [32], n_outputs, seed=seed)
    with _drawn_from(seed):
        for part in net.modules():
            if isinstance(part, nn.Linear):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
                nn.init.zeros_(part.bias)
    return net


@leaves_note
def geyer_net(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """Geyer's network: hidden layers of 600 and 100 units with ReLU, without biases.

        layer     output      parameters, 28 x 28 and 10 classes
        hidden1   600         470 400
        hidden2   100          60 000
        output    n_outputs     1 000      total 531 400

    Source: Geyer et al. 2017, section 4. The paper does not describe the network; widths, missing biases (with them it
    would have 532 110 parameters) and initial weights are those of the code that its authors published: normal with
    standard deviation 1 / sqrt(inputs of the layer), cut at two standard deviations.
    """
    _check("geyer_net", shape, n_outputs, True, ANY_SHAPE)
    with _drawn_from(seed):
        net = nn.Sequential(
            OrderedDict(
                flat=nn.Flatten(),
                hidden1=nn.Linear(math.prod(shape), 600, bias=False),
                relu1=nn.ReLU(),
                hidden2=nn.Linear(600, 100, bias=False),
                relu2=nn.ReLU(),
                output=nn.Linear(100, n_outputs, bias=False),
            )
        )
        for weight in net.parameters():
            spread = weight.shape[1] ** -0.5
            nn.init.trunc_normal_(weight, std=spread, a=-2 * spread, b=2 * spread)
    return net


@leaves_note
def mcmahan_cnn(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """McMahan's CNN for digits: two convolutions of 5 x 5, each followed by 2 x 2 max pooling, and 512 units.

        layer    output           parameters, (28, 28) and 10 classes
        conv1    32 x 28 x 28           832      borders padded, ReLU
        pool1    32 x 14 x 14             0
        conv2    64 x 14 x 14        51 264      borders padded, ReLU
        pool2    64 x 7 x 7               0
        hidden   512              1 606 144      ReLU
        output   n_outputs            5 130      total 1 663 370

    Source: McMahan et al. 2017, section 3. The paper names a ReLU after the hidden layer only; those after the
    convolutions are customary. The padding follows from its number of parameters. It gives no initial weights; these are
    PyTorch's. Its model for CIFAR-10 is another one.
    """
    channels, height, width = _image("mcmahan_cnn", shape, n_outputs, least=4)
    with _drawn_from(seed):
        return nn.Sequential(
            OrderedDict(
                planes=Planes(),
                conv1=nn.Conv2d(channels, 32, 5, padding=2),
                relu1=nn.ReLU(),
                pool1=nn.MaxPool2d(2),
                conv2=nn.Conv2d(32, 64, 5, padding=2),
                relu2=nn.ReLU(),
                pool2=nn.MaxPool2d(2),
                flat=nn.Flatten(),
                hidden=nn.Linear(64 * (height // 4) * (width // 4), 512),
                relu3=nn.ReLU(),
                output=nn.Linear(512, n_outputs),
            )
        )


@leaves_note
def lenet(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """Sempere's LeNet: two small convolutions with max pooling, then 120 and 84 units, all with ReLU.

        layer     output         parameters, (3, 32, 32)   (28, 28), and 10 classes
        conv1     6 x 28 x 28       456                       156
        pool1     6 x 14 x 14         0                         0
        conv2     16 x 10 x 10    2 416                     2 416
        pool2     16 x 5 x 5          0                         0
        hidden1   120            48 120                    30 840
        hidden2   84             10 164                    10 164
        output    n_outputs         850                       850
        total                    62 006                    44 426

    Source: Sempere 2024, section 2.3, Figure 2.7, and its published code for grey images. Differs: none. LeCun et al. 1998
    averaged where this takes the maximum, and used other activations.
    """
    channels, height, width = _image("lenet", shape, n_outputs, least=16)
    rest = [((size - 4) // 2 - 4) // 2 for size in (height, width)]
    with _drawn_from(seed):
        return nn.Sequential(
            OrderedDict(
                planes=Planes(),
                conv1=nn.Conv2d(channels, 6, 5),
                relu1=nn.ReLU(),
                pool1=nn.MaxPool2d(2),
                conv2=nn.Conv2d(6, 16, 5),
                relu2=nn.ReLU(),
                pool2=nn.MaxPool2d(2),
                flat=nn.Flatten(),
                hidden1=nn.Linear(16 * math.prod(rest), 120),
                relu3=nn.ReLU(),
                hidden2=nn.Linear(120, 84),
                relu4=nn.ReLU(),
                output=nn.Linear(84, n_outputs),
            )
        )


@leaves_note
def resnet18(shape: Shape, n_outputs: int, *, seed: int = 0) -> nn.Module:
    """ResNet-18 for small images, with GroupNorm of 32 groups where the source has BatchNorm.

        layer    output          parameters, (3, 32, 32) and 10 classes
        stem     64 x 32 x 32         1 728      3 x 3, and norm: 128
        stage1   64 x 32 x 32       147 968      two blocks of two 3 x 3 convolutions
        stage2   128 x 16 x 16      525 568      the first block of stages 2 to 4 halves the image,
        stage3   256 x 8 x 8      2 099 712      with a 1 x 1 convolution on its shortcut
        stage4   512 x 4 x 4      8 393 728
        pool     512                      0      mean over the image
        output   n_outputs            5 130      total 11 173 962

    Source: He et al. 2016, Table 1 (18 layers) and Figure 3; initial weights of the convolutions from He et al. 2015,
    section 2.2. GroupNorm, since batch statistics mix records and fail where labels are spread unequally: Hsieh et al. 2020,
    section 5; Wu & He 2018. Differs: the stem is one 3 x 3 convolution without stride and without max pooling, as for
    CIFAR-10 in He et al. 2016, section 4.2; the 7 x 7 stem for photographs would shrink 32 pixels to 8 at once.
    """
    channels, _, _ = _image("resnet18", shape, n_outputs, least=8)
    with _drawn_from(seed):
        net = nn.Sequential(
            OrderedDict(
                planes=Planes(),
                stem=nn.Conv2d(channels, 64, 3, padding=1, bias=False),
                norm=_group_norm(64),
                relu=nn.ReLU(),
                stage1=_stage(64, 64, stride=1),
                stage2=_stage(64, 128, stride=2),
                stage3=_stage(128, 256, stride=2),
                stage4=_stage(256, 512, stride=2),
                pool=nn.AdaptiveAvgPool2d(1),
                flat=nn.Flatten(),
                output=nn.Linear(512, n_outputs),
            )
        )
        for part in net.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
    return net


@leaves_note
def lstm(shape: Shape, n_outputs: int, *, hidden: int = 64, seed: int = 0) -> nn.Module:
    """One LSTM layer over time, and an affine map of its last state.

        layer    output           parameters, (9, 128) and 6 classes
        gates    time x 4 * 64     2 560      input, forget, cell and output gate, from the signals
        recall   4 * 64           16 384      the same, from the state before
        output   n_outputs           390      total 19 334

    Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000; initial weights as `torch.nn.LSTM`,
    which computes the same with two biases where one suffices. Differs: it reads measurements; the LSTM of McMahan et al.
    2017 reads characters, and has two layers. The loop over time is written out: `torch.nn.LSTM` warns when it is stacked,
    and gives a party's gradient more slowly on a CPU. A trace unrolls the loop, about 40 operations for each point in time.
    """
    _check("lstm", shape, n_outputs, _axes(shape) == 2, "signals of shape (channels, time)")
    if hidden < 1:
        raise SettingsInvalid(f"lstm with a state of {hidden} units.", remedy="Give it at least one.")
    with _drawn_from(seed):
        return LSTM(shape[0], hidden, n_outputs)


ZOO: dict[str, Builder] = {
    "logistic": logistic,
    "two_nn": two_nn,
    "he_net": he_net,
    "geyer_net": geyer_net,
    "mcmahan_cnn": mcmahan_cnn,
    "lenet": lenet,
    "resnet18": resnet18,
    "lstm": lstm,
}
"""Builders by the name that a study gives."""


class Planes(nn.Module):
    """Give images without a channel axis one: (n, height, width) becomes (n, 1, height, width)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unsqueeze(1) if x.ndim == 3 else x


class Residual(nn.Module):
    """Two 3 x 3 convolutions, added to what they were given."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = _group_norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = _group_norm(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(OrderedDict(conv=conv, norm=_group_norm(outputs)))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class LSTM(nn.Module):
    """An LSTM over signals of shape (n, channels, time); the last state decides."""

    def __init__(self, channels: int, hidden: int, n_outputs: int) -> None:
        super().__init__()
        self.gates = nn.Linear(channels, 4 * hidden)
        self.recall = nn.Linear(hidden, 4 * hidden, bias=False)
        self.output = nn.Linear(hidden, n_outputs)
        for weight in (*self.gates.parameters(), *self.recall.parameters()):
            nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.gates(x.transpose(1, 2))
        state = memory = seen.new_zeros(seen.shape[0], self.recall.in_features)
        for at_time in seen.unbind(1):
            enter, keep, new, leave = (at_time + self.recall(state)).chunk(4, -1)
            memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * torch.tanh(new)
            state = torch.sigmoid(leave) * torch.tanh(memory)
        return self.output(state)


def _stage(inputs: int, outputs: int, stride: int) -> nn.Module:
    return nn.Sequential(Residual(inputs, outputs, stride), Residual(outputs, outputs, 1))


def _group_norm(channels: int) -> nn.Module:
    return nn.GroupNorm(min(GROUPS, channels), channels)


@contextmanager
def _drawn_from(seed: int) -> Iterator[None]:
    """Let the seed decide initial weights, and put torch's generator back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _image(name: str, shape: Shape, n_outputs: int, least: int) -> tuple[int, int, int]:
    """Channels, height and width of images of this shape."""
    fits = _axes(shape) in (2, 3) and min(shape[-2:]) >= least
    needs = f"images of shape (height, width) or (channels, height, width), at least {least} x {least} pixels"
    _check(name, shape, n_outputs, fits, needs)
    height, width = shape[-2:]
    return (shape[0] if len(shape) == 3 else 1), height, width


def _axes(shape: Shape) -> int:
    """Length of a shape; 0 of what is none, which `_check` refuses."""
    return len(shape) if isinstance(shape, Sequence) else 0


def _check(name: str, shape: Shape, n_outputs: int, fits: bool, needs: str) -> None:
    if not isinstance(shape, Sequence):
        raise ModelInvalid(f"{name}: shape is {shape!r}.", remedy=f"Give a tuple, such as ({shape},).")
    if not fits or not shape or min(shape) < 1:
        raise ModelInvalid(f"{name} cannot read records of shape {tuple(shape)}.", remedy=f"It needs {needs}.")
    if n_outputs < 1:
        raise ModelInvalid(f"{name} with {n_outputs} outputs.", remedy="Give one for each class, or one for a number.")
