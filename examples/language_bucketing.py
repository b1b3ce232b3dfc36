"""Train a language model on sentences of different lengths with buckets and `mx.rnn`.

    python examples/language_bucketing.py --epochs 8

The sentences are made here: each counts up or down through an alphabet from a random letter, so
that a model that has read two letters knows the next ones.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx

LETTERS = "abcdefghij"


def sentences(count: int) -> list[list[str]]:
    """Sentences of 4 to 12 letters."""
    rng = np.random.default_rng(0)
    lengths, starts = rng.integers(4, 13, count), rng.integers(0, 10, count)
    rows = zip(lengths, starts, rng.choice([-1, 1], count), strict=True)
    return [[LETTERS[(s + step * k) % 10] for k in range(n)] for n, s, step in rows]


def main() -> None:
    """Train, and print the perplexity after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    epochs = parser.parse_args().epochs
    np.random.seed(0)
    mx.random.seed(0)
    coded, vocab = mx.rnn.encode_sentences(sentences(400), invalid_label=0, start_label=1)
    source = mx.rnn.BucketSentenceIter(coded, 20, buckets=[6, 9, 12], invalid_label=0)
    cell = mx.rnn.SequentialRNNCell()
    cell.add(mx.rnn.LSTMCell(32, prefix="lstm0_"))
    cell.add(mx.rnn.LSTMCell(32, prefix="lstm1_"))

    def network(length: int):
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        x = mx.sym.Embedding(data, input_dim=len(vocab), output_dim=16, name="embed")
        x, _ = cell.unroll(length, x, merge_outputs=True)
        x = mx.sym.Reshape(x, shape=(-1, 32))
        x = mx.sym.FullyConnected(x, num_hidden=len(vocab), name="out")
        label = mx.sym.Reshape(label, shape=(-1,))
        how = {"use_ignore": True, "ignore_label": 0, "normalization": "valid"}
        return mx.sym.SoftmaxOutput(x, label, name="softmax", **how), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(network, default_bucket_key=source.default_bucket_key)
    metric = mx.metric.Perplexity(ignore_label=0)

    def told(epoch: int, *_: object) -> None:
        print(f"epoch {epoch}: perplexity {metric.get()[1]:.3f}")

    module.fit(
        source,
        eval_metric=metric,
        epoch_end_callback=told,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.02, "rescale_grad": 1.0},
        initializer=mx.init.Xavier(),
        num_epoch=epochs,
    )
    print(f"perplexity: {metric.get()[1]:.3f}")


if __name__ == "__main__":
    main()
