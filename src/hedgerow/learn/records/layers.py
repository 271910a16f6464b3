"""Gradients of single records in one layer, from what the layer read and the gradient at its output.

For record i of a batch with inputs a_i and output gradients g_i, the gradient of a linear layer's weight is g_i a_i^T. Its
length is |g_i| |a_i|, and the sum over records with factors c_i is (c g)^T a: neither needs the gradients one by one. Layers
that apply their weight at many places have a sum of such products for each record. Its length follows from the products of
places with each other, or from the gradient itself, whichever is less work.

The products of many places may cancel, and what is left of them is mostly rounding. So they are multiplied and added in
float64, and a gradient counts as no shorter than a thousandth of what its places are long together (`CANCELLED`): a record
whose places cancel enters a sum with terms of at most a thousand clips, which float64 adds up exactly enough. Gradients that
are written down one by one are what they are, rounded or not; they are held to the same, so that a last digit of what a layer
read cannot turn a clipped gradient around.

Source: Goodfellow 2015 (arXiv:1510.01799) for lengths in linear layers; Li et al., ICLR 2022, section 4, for many places; Bu et
al., ICML 2023, for the sum without a second backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CANCELLED = 1e-3
"""A record's gradient counts as no shorter than this times the lengths of its places, added up."""

TINY = 1e-30
"""Squared lengths count as no smaller: squares of numbers below 1e-19 vanish in float32, and a gradient must not."""


@dataclass
class ParameterGradients:
    """One parameter's gradients over a batch.

    Attributes
    ----------
    name : str
        Of the parameter, in its layer.
    squares : shape (n,)
        Squared length of each record's gradient.
    add : callable
        Takes a float64 sum in the parameter's shape and factors of shape (n,); adds the records' gradients times their factors.
    numbers : int
        Held for each record until the sum is taken.
    """

    name: str
    squares: Tensor
    add: Callable[[Tensor, Tensor], None]
    numbers: int = 0


def squares_of(rows: Tensor) -> Tensor:
    """Squared length of each row, at least `TINY`: long ones by a sum that does not gather rounding errors."""
    short = rows.shape[1] <= 1024
    return (torch.linalg.vector_norm(rows, dim=1).square() if short else rows.square().sum(1)).clamp(min=TINY)


def linear(layer: nn.Linear, a: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
    """Inputs of shape (n, ..., in) and output gradients of shape (n, ..., out)."""
    if a.ndim == 2:
        lengths = squares_of(g)
        if layer.weight.requires_grad:
            yield ParameterGradients("weight", squares_of(a) * lengths, lambda to, c: to.add_((c[:, None] * g).t() @ a))
        if layer.bias is not None and layer.bias.requires_grad:
            yield ParameterGradients("bias", lengths, lambda to, c: to.add_(c @ g))
        return
    a, g = a.flatten(1, -2)[:, None].transpose(2, 3), g.flatten(1, -2)[:, None].transpose(2, 3)
    if layer.weight.requires_grad:
        yield places("weight", a, g, layer.weight.shape)
    if layer.bias is not None and layer.bias.requires_grad:
        yield offset(g)


def convolution(layer: nn.Conv1d | nn.Conv2d, a: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
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
        yield offset(g)


def places(name: str, a: Tensor, g: Tensor, shape: torch.Size) -> ParameterGradients:
    """A weight applied at many places: a of shape (n, groups, in, places), g of shape (n, groups, out, places)."""
    n_in, n_out, n_places = a.shape[2], g.shape[2], a.shape[3]
    if n_places * (n_in + n_out) > n_in * n_out:
        reach = (a.square().sum(2) * g.square().sum(2)).sqrt().sum(2)
        return whole(name, torch.einsum("ngop,ngip->ngoi", g, a).flatten(1), torch.linalg.vector_norm(reach, dim=1))
    a, g = a.double(), g.double()
    overlaps = (a.transpose(2, 3) @ a) * (g.transpose(2, 3) @ g)
    reach = overlaps.diagonal(dim1=2, dim2=3).sqrt().sum(2)
    squares = torch.maximum(overlaps.sum((1, 2, 3)), (CANCELLED * reach).square().sum(1)).float().clamp(min=TINY)

    def add(to: Tensor, c: Tensor) -> None:
        to += torch.einsum("ngop,ngip->goi", g * c.double()[:, None, None, None], a).reshape(shape)

    return ParameterGradients(name, squares, add, 3 * a[0].numel() + 4 * g[0].numel() + 6 * a.shape[1] * n_places**2)


def whole(name: str, gradients: Tensor, reach: Tensor | None = None) -> ParameterGradients:
    """Gradients that are there one by one, of shape (n, size); as sums over places, with their reach, what these add up to."""
    squares = squares_of(gradients)
    if reach is not None:
        squares = torch.maximum(squares, (CANCELLED * reach).square())
    return ParameterGradients(name, squares, lambda to, c: to.view(-1).add_(c @ gradients), gradients.shape[1])


def offset(g: Tensor) -> ParameterGradients:
    """A bias that is added at many places: g of shape (n, ..., places), with the bias's coordinates between."""
    g = g.flatten(1, -2)
    return whole("bias", g.sum(2), g.square().sum(1).sqrt().sum(1))


def embedding(layer: nn.Embedding, a: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
    """Rows of shape (n, ...) and output gradients of shape (n, ..., width); a row that is read twice counts as one."""
    n, width = len(a), g.shape[-1]
    rows, g = a.reshape(n, -1), g.reshape(n, -1, width)
    if layer.padding_idx is not None:
        g = torch.where((rows == layer.padding_idx)[..., None], torch.zeros((), dtype=g.dtype), g)
    record = torch.arange(n)[:, None]
    read, where = torch.unique(record * layer.num_embeddings + rows, return_inverse=True)
    g = g.flatten(0, 1)
    each = torch.zeros(len(read), width).index_add_(0, where.flatten(), g)
    reach = torch.zeros(len(read)).index_add_(0, where.flatten(), torch.linalg.vector_norm(g, dim=1))
    lengths = torch.maximum(squares_of(each), (CANCELLED * reach).square())
    squares = torch.zeros(n).index_add_(0, read // layer.num_embeddings, lengths)

    def add(to: Tensor, c: Tensor) -> None:
        shortened = each.double() * c.double()[read // layer.num_embeddings][:, None]
        to.index_add_(0, read % layer.num_embeddings, shortened)

    yield ParameterGradients("weight", squares, add)


def scaled(layer: Any, normal: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
    """A scale and an offset of normalised inputs, both of shape (n, places, *scale)."""
    normal, g = normal.flatten(2), g.flatten(2)
    if layer.weight.requires_grad:
        steep = g * normal
        yield whole("weight", steep.sum(1), torch.linalg.vector_norm(steep, dim=2).sum(1))
    bias = getattr(layer, "bias", None)
    if bias is not None and bias.requires_grad:
        yield offset(g.transpose(1, 2))


def layer_norm(layer: nn.LayerNorm, a: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
    normal = F.layer_norm(a, layer.normalized_shape, eps=layer.eps)
    return scaled(layer, *(t.reshape(len(t), -1, *layer.normalized_shape) for t in (normal, g)))


def root_mean_square(layer: nn.RMSNorm, a: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
    normal = F.rms_norm(a, layer.normalized_shape, eps=layer.eps)
    return scaled(layer, *(t.reshape(len(t), -1, *layer.normalized_shape) for t in (normal, g)))


def group_norm(layer: nn.GroupNorm, a: Tensor, g: Tensor) -> Iterator[ParameterGradients]:
    normal = F.group_norm(a, layer.num_groups, eps=layer.eps)
    return scaled(layer, *(t.reshape(len(t), layer.num_channels, -1).transpose(1, 2) for t in (normal, g)))


LAYERS: dict[type[nn.Module], Callable[[Any, Tensor, Tensor], Iterator[ParameterGradients]]] = {
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
