"""Factorize a sparse matrix of ratings, with sparse gradients and lazy updates.

    python examples/factorization.py --epochs 6

The ratings are made here: products of hidden numbers of users and items, and noise. Each batch
touches a few rows of the tables, and only those are computed and updated.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx
from gnomon.gluon import HybridBlock, Trainer, nn
from gnomon.gluon.data import ArrayDataset, DataLoader

USERS, ITEMS, HIDDEN, NOISE = 800, 500, 4, 0.1


def ratings(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, items, and what the ones say of the others."""
    rng = np.random.default_rng(0)
    left, right = (rng.normal(0, 0.7, (n, HIDDEN)) for n in (USERS, ITEMS))
    users, items = rng.integers(0, USERS, count), rng.integers(0, ITEMS, count)
    found = (left[users] * right[items]).sum(axis=1) + rng.normal(0, NOISE, count)
    return np.float32(users), np.float32(items), np.float32(found)


class Factors(HybridBlock):
    """The product of a user's numbers and an item's."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            how = {"sparse_grad": True, "weight_initializer": mx.init.Normal(0.3)}
            self.users = nn.Embedding(USERS, HIDDEN, **how)
            self.items = nn.Embedding(ITEMS, HIDDEN, **how)

    def hybrid_forward(self, F, user, item):
        return F.sum(self.users(user) * self.items(item), axis=1)


def main() -> None:
    """Train, and print the root of the mean square error on ratings that were held back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--ratings", type=int, default=60_000)
    options = parser.parse_args()
    mx.random.seed(0)
    np.random.seed(0)
    known = ratings(options.ratings)
    first = options.ratings // 10
    held_out = [mx.nd.array(each[:first]) for each in known]
    loader = DataLoader(ArrayDataset(*(each[first:] for each in known)), 500, shuffle=True)
    print(f"spread of the ratings: {known[2].std():.3f}, noise: {NOISE}")
    net = Factors()
    net.initialize()
    loss_of = mx.gluon.loss.L2Loss()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.03})
    for epoch in range(options.epochs):
        for user, item, rating in loader:
            with mx.autograd.record():
                loss = loss_of(net(user, item), rating)
            loss.backward()
            trainer.step(len(user))
        missed = ((net(*held_out[:2]) - held_out[2]) ** 2).mean().sqrt().asscalar()
        print(f"epoch {epoch}: error {missed:.3f}")


if __name__ == "__main__":
    main()
