"""Slow and obvious convolution and pooling in NumPy, with their gradients, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.runtime.libraries import dnn

Array = np.ndarray[Any, Any]


def padded(x: Array, left: tuple[int, ...], right: tuple[int, ...], fill: float = 0.0) -> Array:
    pads = [(0, 0), (0, 0), *zip(left, right, strict=True)]
    return np.pad(x.astype("float64"), pads, constant_values=fill)


def inside(x: Array, left: tuple[int, ...], space: tuple[int, ...]) -> Array:
    cut = tuple(slice(a, a + n) for a, n in zip(left, space, strict=True))
    return x[(slice(None), slice(None), *cut)]


def taps(conv: dnn.Convolution) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each position in the window with the padded data's elements that it meets."""
    found = []
    for k in np.ndindex(*conv.weight[2:]):
        axes = zip(k, conv.dilate, conv.stride, conv.out[2:], strict=True)
        found.append((k, tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, s, n in axes)))
    return found


def channels(conv: dnn.Convolution) -> list[tuple[slice, slice]]:
    """Each group's channels of the data and filters."""
    c, o = conv.weight[1], conv.weight[0] // conv.groups
    return [(slice(g * c, g * c + c), slice(g * o, g * o + o)) for g in range(conv.groups)]


def convolve(conv: dnn.Convolution, x: Array, w: Array) -> Array:
    data, out = padded(x, conv.pad_left, conv.pad_right), np.zeros(conv.out)
    for k, where in taps(conv):
        for c, o in channels(conv):
            seen = data[(slice(None), c, *where)]
            out[:, o] += np.einsum("nc...,oc->no...", seen, w[(o, slice(None), *k)])
    return out


def convolve_back(conv: dnn.Convolution, x: Array, w: Array, g: Array) -> tuple[Array, Array]:
    """The gradients of data and weight."""
    data = padded(x, conv.pad_left, conv.pad_right)
    dx, dw = np.zeros(data.shape), np.zeros(conv.weight)
    for k, where in taps(conv):
        for c, o in channels(conv):
            at = (slice(None), c, *where)
            dx[at] += np.einsum("no...,oc->nc...", g[:, o], w[(o, slice(None), *k)])
            rows, seen = (a.reshape(*a.shape[:2], -1) for a in (g[:, o], data[at]))
            dw[(o, slice(None), *k)] = np.einsum("nos,ncs->oc", rows, seen)
    return inside(dx, conv.pad_left, x.shape[2:]), dw


def pool(p: dnn.Pooling, x: Array, g: Array) -> tuple[Array, Array]:
    """The pooled data and the gradient of the data; the first of equal elements wins."""
    largest = p.kind == "max"
    data = padded(x, p.pad_left, p.pad_right, -np.inf if largest else 0.0)
    real = padded(np.ones_like(x), p.pad_left, p.pad_right)
    out, dx = np.zeros(p.out), np.zeros(data.shape)
    for i in np.ndindex(*p.out):
        corner = [a * s for a, s in zip(i[2:], p.stride, strict=True)]
        cut = tuple(slice(a, a + k) for a, k in zip(corner, p.kernel, strict=True))
        window, counted = data[(*i[:2], *cut)], real[(*i[:2], *cut)]
        if largest:
            first = np.unravel_index(window.argmax(), window.shape)
            out[i] = window.max()
            dx[(*i[:2], *(a + b for a, b in zip(corner, first, strict=True)))] += g[i]
        else:
            share = (
                counted / counted.sum() if p.kind == "avg" else np.full(p.kernel, 1 / counted.size)
            )
            out[i] = (window * share).sum()
            dx[(*i[:2], *cut)] += g[i] * share
    return out, inside(dx, p.pad_left, x.shape[2:])
