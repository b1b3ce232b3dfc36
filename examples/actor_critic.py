"""Learn to balance a pole on a cart, by an actor and a critic (Mnih et al., arXiv:1602.01783).

    python examples/actor_critic.py --updates 400

The environment is here: the pole falls by the laws of mechanics (Barto, Sutton and Anderson, 1983),
and the cart is pushed to the left or to the right. Many poles are balanced at once.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx
from gnomon.gluon import HybridBlock, Trainer, nn

POLES, STEPS, LONGEST = 16, 16, 200
DISCOUNT = 0.97


class Carts:
    """Poles on carts: places, speeds, angles and turning speeds, and how long each one stands."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.state = rng.uniform(-0.05, 0.05, (POLES, 4))
        self.stood = np.zeros(POLES, int)
        self.lengths: list[int] = []  # of all that have fallen

    def push(self, right: np.ndarray) -> np.ndarray:
        """Push for 0.02 s; says which poles are over. Those begin again."""
        _, speed, angle, turning = self.state.T
        sin, cos = np.sin(angle), np.cos(angle)
        force = (np.where(right, 10, -10) + 0.05 * turning**2 * sin) / 1.1
        turns = (9.8 * sin - cos * force) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        runs = force - 0.05 * turns * cos / 1.1
        self.state = self.state + 0.02 * np.stack([speed, runs, turning, turns], axis=1)
        self.stood += 1
        far, tilted = abs(self.state[:, 0]) > 2.4, abs(self.state[:, 2]) > 0.21
        over = far | tilted | (self.stood >= LONGEST)
        self.lengths += self.stood[over].tolist()
        self.stood[over] = 0
        self.state[over] = self.rng.uniform(-0.05, 0.05, (over.sum(), 4))
        return over


class ActorCritic(HybridBlock):
    """States to scores of the two pushes, and to how long the pole will stand, discounted."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.Dense(64, activation="tanh", in_units=4)
            self.actor, self.critic = nn.Dense(2, in_units=64), nn.Dense(1, in_units=64)

    def hybrid_forward(self, F, x):
        x = self.body(x)
        return self.actor(x), self.critic(x).reshape((-1,))


def returns(last: np.ndarray, over: list[np.ndarray]) -> np.ndarray:
    """The discounted time that each pole stands from each step on; `last` is what is expected."""
    found = [last]
    for ended in reversed(over):
        found.append(1 + DISCOUNT * found[-1] * ~ended)
    return np.concatenate(found[:0:-1])


def main() -> None:
    """Train, and print how long poles stand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=400)
    updates = parser.parse_args().updates
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    carts, net = Carts(rng), ActorCritic()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})
    for update in range(1, updates + 1):
        states, pushes, over = [], [], []
        for _ in range(STEPS):
            states.append(carts.state)
            scores, _ = net(mx.nd.array(carts.state))
            chances = scores.softmax(axis=1).asnumpy()
            pushes.append(rng.random(POLES) < chances[:, 1])
            over.append(carts.push(pushes[-1]))
        _, expected = net(mx.nd.array(carts.state))
        goals = mx.nd.array(returns(expected.asnumpy(), over))
        chosen = mx.nd.array(np.concatenate(pushes))
        with mx.autograd.record():
            scores, values = net(mx.nd.array(np.concatenate(states)))
            logs = scores.log_softmax(axis=1)
            better = (goals - values).detach()  # than expected
            actor = -(logs.pick(chosen) * better).mean()
            critic = ((goals - values) ** 2).mean()
            disorder = -(logs * logs.exp()).sum(axis=1).mean()
            loss = actor + 0.5 * critic - 0.01 * disorder
        loss.backward()
        trainer.step(1)
        if update % 100 == 0 or update == updates:
            print(f"update {update}: stood {np.mean(carts.lengths[-50:]):.1f}")


if __name__ == "__main__":
    main()
