"""Worker: expressions by JAX, each compiled; what is overwritten in place is donated."""

from __future__ import annotations

from typing import Any

import jax
import work
from jax import numpy as jnp
from protocol import Step, serve

jax.config.update("jax_enable_x64", True)
ETA, LAM, ROOT = work.ETA, work.LAM, work.ROOT_HALF


def sgd(g: Any, w: Any) -> Any:
    return -ETA * (g + LAM * w)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + jax.lax.erf(x * ROOT))


def transpose(x: Any) -> Any:
    return x.T + 0  # the transpose alone is a view, or another layout


FORMULAS = {
    "sgd": sgd,
    "new sgd": sgd,
    "add": lambda x, y: x + y,
    "mixed": lambda b, c, d: b * jnp.maximum(c, b) + d / (1 + jnp.abs(b)) - c,
    "smooth_l1": lambda x: jnp.where(jnp.abs(x) < 1, 0.5 * x * x, jnp.abs(x) - 0.5),
    "plus": lambda x, y: y + x,
    "row": lambda x, r: x + r,
    "column": lambda x, c: x * c,
    "gelu": gelu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "exp": jnp.exp,
    "softplus": jax.nn.softplus,
    "activations": lambda x: gelu(x) + jax.nn.sigmoid(x) + jnp.tanh(x) + jnp.exp(x),
    "transpose": transpose,
    "transposed": lambda x, y: x.T + y,
    "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1),
    "sum all": lambda x: x.sum(keepdims=True),
    "softmax": lambda x: jax.nn.softmax(x, axis=1),
    "argmax": lambda x: x.argmax(keepdims=True),
    "argmax 1": lambda x: x.argmax(1),
    "variance": lambda x: x.var(1),
}
CASTS = {"cast": lambda x, to: x.astype(to), "bytes": lambda x, to: x.astype(to) * work.BYTE}


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row, n, dtype)
    names = [*work.ROWS[row].operands]
    operands = [jnp.array(a[k]) for k in names]
    place = work.ROWS[row].place
    donated = (names.index(place),) if place else ()
    plain = FORMULAS.get(row) or (lambda x: CASTS[row](x, dtype))
    formula = jax.jit(plain, donate_argnums=donated)
    last: Any = formula(*operands)
    probe = work.probe(last)
    if place:
        operands[names.index(place)] = last

    def step() -> None:
        nonlocal last
        last = formula(*operands)
        if place:
            operands[names.index(place)] = last

    def wait() -> None:
        last.block_until_ready()

    return step, wait, {"probe": probe}


if __name__ == "__main__":
    serve(f"JAX {jax.__version__}", setup)
