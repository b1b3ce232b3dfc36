"""The primitives of a convolution, kept by configuration: making one takes about a millisecond."""

from __future__ import annotations

from gnomon.runtime.libraries.dnn.geometry import Convolution
from gnomon.runtime.libraries.dnn.layout import last, plain
from gnomon.runtime.libraries.dnn.library import (
    Description,
    Owned,
    Primitive,
    attributes,
    describe,
    kept,
    one_thread,
    primitive,
)

_TRAINING, _DIRECT = 64, 1


@kept
def forward_primitive(
    conv: Convolution,
    src: Description | None = None,
    weights: Description | None = None,
    dst: Description | None = None,
    bias: bool = False,
) -> Primitive:
    """The forward primitive; a layout that is None is oneDNN's choice."""
    shift = plain(conv.weight[:1]) if bias else None
    with one_thread() as found:
        return primitive(
            "dnnl_convolution_forward_primitive_desc_create", found.engine, _TRAINING, _DIRECT,
            *_open(conv, src, weights, shift, dst), *conv.geometry(), attributes(),
        )  # fmt: skip


@kept
def data_primitive(
    conv: Convolution,
    src: Description | None = None,
    weights: Description | None = None,
    dst: Description | None = None,
) -> Primitive:
    """The primitive for the gradient of the data: `src` is what it gives, `dst` what it takes."""
    with one_thread() as found:
        given, filters, _, taken = _open(conv, src, weights, None, dst)
        return primitive(
            "dnnl_convolution_backward_data_primitive_desc_create", found.engine, _DIRECT, given,
            filters, taken, *conv.geometry(), _hint(conv), attributes(),
        )  # fmt: skip


@kept
def weight_primitive(
    conv: Convolution,
    src: Description | None = None,
    weights: Description | None = None,
    dst: Description | None = None,
) -> Primitive:
    """The primitive for the gradient of the weight."""
    with one_thread() as found:
        return primitive(
            "dnnl_convolution_backward_weights_primitive_desc_create", found.engine, _DIRECT,
            *_open(conv, src, weights, None, dst), *conv.geometry(), _hint(conv), attributes(),
        )  # fmt: skip


def _open(
    conv: Convolution,
    src: Description | None,
    weights: Description | None,
    bias: Description | None,
    dst: Description | None,
) -> tuple[Description, Description, Description | None, Description]:
    src, dst = _alike(conv, src, dst)
    return (
        src or Description.open(conv.data),
        weights or Description.open(conv.grouped),
        bias,
        dst or Description.open(conv.out),
    )


def _alike(
    conv: Convolution, src: Description | None, dst: Description | None
) -> tuple[Description | None, Description | None]:
    """The pictures' layouts: where each channel is by itself, channels last for both if for one.

    Where they differ, oneDNN takes code that is ten times slower than a copy and its good code.
    """
    if conv.groups > 1 and (src is None) != (dst is None):
        data, out = last(conv.data).description, last(conv.out).description
        if src == data or dst == out:
            return data, out
    return src, dst


def _hint(conv: Convolution) -> Owned:
    """The forward descriptor that oneDNN wants to see for a gradient."""
    with one_thread() as found:
        return describe(
            "dnnl_convolution_forward_primitive_desc_create", found.engine, _TRAINING, _DIRECT,
            *_open(conv, None, None, None, None), *conv.geometry(), attributes(),
        )  # fmt: skip
