"""Worker: steps by JAX, the whole step compiled and its state given away."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import nets
from protocol import Step, serve

Arrays = dict[str, Any]


def dense(w: Arrays, name: str, x: Any) -> Any:
    return x @ w[f"{name}_weight"].T + w[f"{name}_bias"]


def mlp(w: Arrays, moving: Arrays, x: Any, train: bool) -> tuple[Any, Arrays]:
    for name in ("fc1", "fc2"):
        x = jax.nn.relu(dense(w, name, x))
    return dense(w, "fc3", x), moving


def lenet(w: Arrays, moving: Arrays, x: Any, train: bool) -> tuple[Any, Arrays]:
    for name in ("conv1", "conv2"):
        x = jax.lax.conv(x, w[f"{name}_weight"], (1, 1), "VALID")
        x = jnp.tanh(x + w[f"{name}_bias"][:, None, None])
        size = (1, 1, 2, 2)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, size, "VALID")
    return dense(w, "fc2", jnp.tanh(dense(w, "fc1", x.reshape(len(x), -1)))), moving


def resnet20(w: Arrays, moving: Arrays, x: Any, train: bool) -> tuple[Any, Arrays]:
    new = {}

    def normalized(x: Any, name: str, stride: int = 1) -> Any:
        weight = w[f"{name}_conv_weight"]
        pad = weight.shape[-1] // 2
        x = jax.lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2)
        old = [moving[f"{name}_bn_moving_{which}"] for which in ("mean", "var")]
        mean, var = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if train else old
        for which, before, now in zip(("mean", "var"), old, (mean, var), strict=True):
            new[f"{name}_bn_moving_{which}"] = 0.9 * before + 0.1 * now
        scale = w[f"{name}_bn_gamma"] * jax.lax.rsqrt(var + nets.EPS)
        shift = w[f"{name}_bn_beta"] - mean * scale
        return x * scale[:, None, None] + shift[:, None, None]

    x = jax.nn.relu(normalized(x, "stem"))
    for name, _, _, stride, _ in nets.blocks():
        y = jax.nn.relu(normalized(x, f"{name}_a", stride))
        y = normalized(y, f"{name}_b")
        x = jax.nn.relu((normalized(x, f"{name}_short", stride) if stride > 1 else x) + y)
    return dense(w, "fc", x.mean((2, 3))), new


def layer(w: Arrays, name: str, x: Any) -> Any:
    """An LSTM layer over (steps, batch, channels)."""
    inputs = dense(w, f"{name}_i2h", x) + w[f"{name}_h2h_bias"]

    def step(before: tuple[Any, Any], z: Any) -> tuple[tuple[Any, Any], Any]:
        h, c = before
        i, f, g, o = jnp.split(z + h @ w[f"{name}_h2h_weight"].T, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], nets.HIDDEN), x.dtype)
    return jax.lax.scan(step, (zero, zero), inputs)[1]


def lstm(w: Arrays, moving: Arrays, x: Any, train: bool) -> tuple[Any, Arrays]:
    x = x.swapaxes(0, 1)
    for k in range(nets.RECURRENT):
        x = layer(w, f"rnn_l{k}", x)
    return dense(w, "fc", x[-1]), moving


NETS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "lstm": lstm}


def objective(forward: Any, w: Arrays, moving: Arrays, x: Any, y: Any) -> tuple[Any, Arrays]:
    scores, moving = forward(w, moving, x, True)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1)
    return -chosen.mean(), moving


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2, 3))
def update(forward: Any, w: Arrays, v: Arrays, moving: Arrays, x: Any, y: Any) -> Any:
    gradient = jax.value_and_grad(partial(objective, forward), has_aux=True)
    (loss, moving), g = gradient(w, moving, x, y)
    v = jax.tree.map(lambda v, g: nets.MOMENTUM * v + g, v, g)
    return jax.tree.map(lambda p, v: p - nets.LEARNING_RATE * v, w, v), v, moving, loss


@partial(jax.jit, static_argnums=0)
def predict(forward: Any, w: Arrays, moving: Arrays, x: Any) -> Any:
    return jax.nn.softmax(forward(w, moving, x, False)[0])


def arrays(values: dict[str, Any]) -> Arrays:
    return {k: jnp.asarray(v) for k, v in values.items()}


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A compiled step; the loss of the last of some."""
    forward = NETS[net]
    pictures, labels = map(jnp.asarray, nets.batch(net, size))
    w, moving = arrays(nets.parameters(net)), arrays(nets.states(net))
    state = [w, jax.tree.map(jnp.zeros_like, w), moving, None]

    def step() -> None:
        state[:] = update(forward, *state[:3], pictures, labels)

    def infer() -> None:
        state[3] = predict(forward, w, moving, pictures)

    def wait() -> None:
        jax.block_until_ready(state)

    chosen = step if train else infer
    for _ in range(nets.PROOF):
        chosen()
    loss = float(state[3]) if train else nets.loss(jax.device_get(state[3]), labels)
    return chosen, wait, {"loss": loss}


if __name__ == "__main__":
    serve(f"JAX {jax.__version__}", setup)
