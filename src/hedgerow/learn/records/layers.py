"""Gradients of single records in one layer, from what the layer read and the gradient at its output.

For record i of a batch with inputs a_i and output gradients g_i, the gradient of a linear layer's weight is g_i a_i^T. Its
length is |g_i| |a_i|, and the sum over records with factors c_i is (c g)^T a: neither needs the gradients one by one. Layers
that apply their weight at many places have a sum of such products for each record. Its length follows from the products of
places with each other, or from the gradient itself, whichever is less work.

Source: Goodfellow 2015 (arXiv:1510.01799) for lengths in linear layers; Li et al., ICLR 2022, section 4, for many places; Bu et
al., ICML 2023, for the sum without a second backward pass. Products of places are taken in float64: they may cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Part:
    """One parameter's gradients over a batch.

    Attributes
    ----------
    name : str
        Of the parameter, in its layer.
    squares : shape (n,)
        Squared length of each record's gradient.
    total : callable
        From factors of shape (n,) to the sum of the records' gradients times their factors, in the parameter's shape.
    numbers : int
        Held for each record until the sum is taken.
    """

    name: str
    squares: Tensor
    total: Callable[[Tensor], Tensor]
    numbers: int = 0


def squares_of(rows: Tensor) -> Tensor:
    """Squared length of each row: short ones in one pass, long ones by a sum that does not gather rounding errors."""
    if rows.shape[1] <= 1024:
        return torch.linalg.vector_norm(rows, dim=1).square()
    return rows.square().sum(1)


def linear(layer: nn.Linear, a: Tensor, g: Tensor) -> Iterator[Part]:
    """Inputs of shape (n, ..., in) and output gradients of shape (n, ..., out)."""
    if a.ndim == 2:
        lengths = squares_of(g)
        if layer.weight.requires_grad:
            yield Part("weight", squares_of(a) * lengths, lambda c: (c[:, None] * g).t() @ a)
        if layer.bias is not None and layer.bias.requires_grad:
            yield Part("bias", lengths, lambda c: c @ g)
        return
    a, g = a.flatten(1, -2)[:, None].transpose(2, 3), g.flatten(1, -2)[:, None].transpose(2, 3)
    if layer.weight.requires_grad:
        yield places("weight", a, g, layer.weight.shape)
    if layer.bias is not None and layer.bias.requires_grad:
        yield whole("bias", g.sum(-1).flatten(1), layer.bias.shape)


def convolution(layer: nn.Conv1d | nn.Conv2d, a: Tensor, g: Tensor) -> Iterator[Part]:
    """Inputs of shape (n, channels, ...), with one or two axes of places."""
    g = g.flatten(2).unflatten(1, (layer.groups, -1))
    if layer.weight.requires_grad:
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        padded = F.pad(a, layer._reversed_padding_repeated_twice, mode=mode)
        flat = padded.ndim == 3
        one: tuple[int, ...] = (1,) if flat else ()
        window = {"dilation": one + layer.dilation, "stride": one + layer.stride}
        read = F.unfold(padded[:, :, None] if flat else padded, one + layer.kernel_size, **window)
        yield places("weight", read.unflatten(1, (layer.groups, -1)), g, layer.weight.shape)
    if layer.bias is not None and layer.bias.requires_grad:
        yield whole("bias", g.sum(-1).flatten(1), layer.bias.shape)


def places(name: str, a: Tensor, g: Tensor, shape: torch.Size) -> Part:
    """A weight applied at many places: a of shape (n, groups, in, places), g of shape (n, groups, out, places)."""
    n_in, n_out, n_places = a.shape[2], g.shape[2], a.shape[3]
    if n_places * (n_in + n_out) > n_in * n_out:
        return whole(name, torch.einsum("ngop,ngip->ngoi", g, a).flatten(1), shape)
    wide_a, wide_g = a.double(), g.double()
    products = (wide_a.transpose(2, 3) @ wide_a) * (wide_g.transpose(2, 3) @ wide_g)
    squares = products.sum((1, 2, 3)).clamp_(min=0.0).float()
    held = a[0].numel() + 6 * a.shape[1] * n_places**2
    return Part(name, squares, lambda c: torch.einsum("ngop,ngip->goi", g * c[:, None, None, None], a).reshape(shape), held)


def whole(name: str, gradients: Tensor, shape: torch.Size) -> Part:
    """Gradients that are there one by one, of shape (n, size)."""
    return Part(name, squares_of(gradients), lambda c: (c @ gradients).view(shape), gradients.shape[1])


def embedding(layer: nn.Embedding, a: Tensor, g: Tensor) -> Iterator[Part]:
    """Rows of shape (n, ...) and output gradients of shape (n, ..., width); a row that is read twice counts as one."""
    n, width = len(a), g.shape[-1]
    rows, g = a.reshape(n, -1), g.reshape(n, -1, width)
    if layer.padding_idx is not None:
        g = torch.where((rows == layer.padding_idx)[..., None], torch.zeros((), dtype=g.dtype), g)
    record = torch.arange(n)[:, None]
    read, where = torch.unique(record * layer.num_embeddings + rows, return_inverse=True)
    each = torch.zeros(len(read), width).index_add_(0, where.flatten(), g.flatten(0, 1))
    squares = torch.zeros(n).index_add_(0, read // layer.num_embeddings, each.square().sum(1))

    def total(c: Tensor) -> Tensor:
        weighed = each * c[read // layer.num_embeddings][:, None]
        return torch.zeros(layer.num_embeddings, width).index_add_(0, read % layer.num_embeddings, weighed)

    yield Part("weight", squares, total)


def scaled(layer: Any, normal: Tensor, g: Tensor) -> Iterator[Part]:
    """A scale and an offset of normalised inputs, both of shape (n, places, *scale)."""
    shape = layer.weight.shape
    if layer.weight.requires_grad:
        yield whole("weight", (g * normal).sum(1).flatten(1), shape)
    bias = getattr(layer, "bias", None)
    if bias is not None and bias.requires_grad:
        yield whole("bias", g.sum(1).flatten(1), shape)


def layer_norm(layer: nn.LayerNorm, a: Tensor, g: Tensor) -> Iterator[Part]:
    normal = F.layer_norm(a, layer.normalized_shape, eps=layer.eps)
    return scaled(layer, *(t.reshape(len(t), -1, *layer.normalized_shape) for t in (normal, g)))


def root_mean_square(layer: nn.RMSNorm, a: Tensor, g: Tensor) -> Iterator[Part]:
    normal = F.rms_norm(a, layer.normalized_shape, eps=layer.eps)
    return scaled(layer, *(t.reshape(len(t), -1, *layer.normalized_shape) for t in (normal, g)))


def group_norm(layer: nn.GroupNorm, a: Tensor, g: Tensor) -> Iterator[Part]:
    normal = F.group_norm(a, layer.num_groups, eps=layer.eps)
    return scaled(layer, *(t.reshape(len(t), layer.num_channels, -1).transpose(1, 2) for t in (normal, g)))


LAYERS: dict[type[nn.Module], Callable[[Any, Tensor, Tensor], Iterator[Part]]] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.Embedding: embedding,
    nn.LayerNorm: layer_norm,
    nn.RMSNorm: root_mean_square,
    nn.GroupNorm: group_norm,
}
"""Layers whose lengths and sums are found without their gradients; by exact type, since a subclass may do something else."""


def known(layer: nn.Module) -> bool:
    """Whether a layer with trained parameters is one of `LAYERS`, used as it usually is."""
    if isinstance(layer, nn.Embedding) and (layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse):
        return False
    return type(layer) in LAYERS
