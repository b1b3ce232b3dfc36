"""Worker: training steps by JAX, the whole step compiled and its state given away."""

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


def mlp(w: Arrays, x: Any) -> Any:
    for name in ("fc1", "fc2"):
        x = jax.nn.relu(dense(w, name, x))
    return dense(w, "fc3", x)


def lenet(w: Arrays, x: Any) -> Any:
    for name in ("conv1", "conv2"):
        x = jax.lax.conv(x, w[f"{name}_weight"], (1, 1), "VALID")
        x = jnp.tanh(x + w[f"{name}_bias"][:, None, None])
        size = (1, 1, 2, 2)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, size, "VALID")
    return dense(w, "fc2", jnp.tanh(dense(w, "fc1", x.reshape(len(x), -1))))


def objective(forward: Any, w: Arrays, x: Any, y: Any) -> Any:
    chosen = jax.nn.log_softmax(forward(w, x))
    return -jnp.take_along_axis(chosen, y[:, None], 1).mean()


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def update(forward: Any, w: Arrays, velocity: Arrays, x: Any, y: Any) -> tuple[Arrays, Arrays]:
    gradient = jax.grad(partial(objective, forward))(w, x, y)
    velocity = jax.tree.map(lambda v, g: nets.MOMENTUM * v + g, velocity, gradient)
    return jax.tree.map(lambda p, v: p - nets.LEARNING_RATE * v, w, velocity), velocity


def setup(net: str, size: int) -> tuple[Step, Step, dict[str, Any]]:
    """A compiled step; the loss after some."""
    forward = {"mlp": mlp, "lenet": lenet}[net]
    pictures, labels = map(jnp.asarray, nets.batch(net, size))
    w = {k: jnp.asarray(v) for k, v in nets.parameters(net).items()}
    state = [w, jax.tree.map(jnp.zeros_like, w)]

    def step() -> None:
        state[:] = update(forward, *state, pictures, labels)

    def wait() -> None:
        jax.block_until_ready(state)

    for _ in range(nets.PROOF):
        step()
    return step, wait, {"loss": float(objective(forward, state[0], pictures, labels))}


if __name__ == "__main__":
    serve(f"JAX {jax.__version__}", setup)
