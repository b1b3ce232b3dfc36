"""The cells of recurrent layers: what one step makes of its gates, and the gradient of that.

A step takes what the gates get from the input and from the state before (both with their biases),
and the state. Formulas: Hochreiter and Schmidhuber 1997 with Gers' forget gate (LSTM), Cho et al.
2014 with the reset after the product, as cuDNN has it (GRU), Elman 1990 (tanh, relu).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gnomon.expr import fn
from gnomon.ground.record import record

Parts = Sequence[Any]


@record(slots=False)
class After:
    """What a step gives: the gates it keeps for the gradient, the output, the cell's state."""

    gates: list[Any]
    apart: list[Any]
    h: Any
    c: Any = None


@record(slots=False)
class Kept:
    """What the gradient of a step reads: gates, and the states before and after."""

    gates: Parts
    apart: Parts
    h_before: Any
    c_before: Any
    c: Any


@record(slots=False)
class Back:
    """Gradients of a step: of the gates' sums (from the input, from the state), and of the states
    but for what reaches them through the products."""

    gates: list[Any]
    apart: list[Any]
    h: Any = None
    c: Any = None


@record(slots=False)
class Cell:
    """A kind of recurrent layer.

    `gates` are the rows of its weights in units of the state's size. Where it is `apart`, a gate
    needs what comes from the state for itself; otherwise only the sum counts. Where it `carries`,
    a part of a state's gradient reaches the state before without a product.
    """

    name: str
    gates: int
    step: Callable[[Parts, Parts, Any, Any], After]
    gradient: Callable[[Kept, Any, Any], Back]
    apart: bool = False
    carries: bool = False
    has_cell: bool = False


def _plain_step(act: Any) -> Callable[[Parts, Parts, Any, Any], After]:
    def step(z: Parts, r: Parts, h: Any, c: Any) -> After:
        new = act(z[0])
        return After([new], [], new)

    return step


def _tanh_gradient(kept: Kept, dh: Any, dc: Any) -> Back:
    (h,) = kept.gates
    return Back([dh * (1.0 - h * h)], [])


def _relu_gradient(kept: Kept, dh: Any, dc: Any) -> Back:
    (h,) = kept.gates
    return Back([fn.where(fn.gt(h, 0.0), dh, 0.0)], [])


def _lstm_step(z: Parts, r: Parts, h: Any, c: Any) -> After:
    i, f, g, o = fn.sigmoid(z[0]), fn.sigmoid(z[1]), fn.tanh(z[2]), fn.sigmoid(z[3])
    new = f * c + i * g
    return After([i, f, g, o], [], o * fn.tanh(new), new)


def _lstm_gradient(kept: Kept, dh: Any, dc: Any) -> Back:
    i, f, g, o = kept.gates
    out = fn.tanh(kept.c)
    whole = dc + dh * o * (1.0 - out * out)
    gates = [
        whole * g * i * (1.0 - i),
        whole * kept.c_before * f * (1.0 - f),
        whole * i * (1.0 - g * g),
        dh * out * o * (1.0 - o),
    ]
    return Back(gates, [], None, whole * f)


def _gru_step(z: Parts, r: Parts, h: Any, c: Any) -> After:
    reset, update = fn.sigmoid(z[0] + r[0]), fn.sigmoid(z[1] + r[1])
    new = fn.tanh(z[2] + reset * r[2])
    return After([reset, update, new], list(r), (1.0 - update) * new + update * h)


def _gru_gradient(kept: Kept, dh: Any, dc: Any) -> Back:
    reset, update, new = kept.gates
    dn = dh * (1.0 - update) * (1.0 - new * new)
    dz = dh * (kept.h_before - new) * update * (1.0 - update)
    dr = dn * kept.apart[2] * reset * (1.0 - reset)
    return Back([dr, dz, dn], [dr, dz, dn * reset], dh * update)


def clipped(cell: Cell, low: float, high: float, nan: bool) -> Cell:
    """The same cell, its state kept between two limits; beyond them no gradient flows.

    With `nan`, a state of NaN becomes `low`, as of CUDNN_NOT_PROPAGATE_NAN.
    """

    def step(z: Parts, r: Parts, h: Any, c: Any) -> After:
        made = cell.step(z, r, h, c)
        c = fn.clip(fn.where(fn.ne(made.c, made.c), low, made.c) if nan else made.c, low, high)
        return replace(made, h=made.gates[3] * fn.tanh(c), c=c)

    def gradient(kept: Kept, dh: Any, dc: Any) -> Back:
        inside = fn.gt(kept.c, low) * fn.lt(kept.c, high)
        made = cell.gradient(kept, dh, dc)
        gates = [fn.where(inside, g, 0.0) for g in made.gates[:3]] + made.gates[3:]
        return replace(made, gates=gates, c=fn.where(inside, made.c, 0.0))

    return replace(cell, step=step, gradient=gradient)


CELLS = {
    cell.name: cell
    for cell in (
        Cell("rnn_relu", 1, _plain_step(fn.relu), _relu_gradient),
        Cell("rnn_tanh", 1, _plain_step(fn.tanh), _tanh_gradient),
        Cell("lstm", 4, _lstm_step, _lstm_gradient, has_cell=True),
        Cell("gru", 3, _gru_step, _gru_gradient, apart=True, carries=True),
    )
}
