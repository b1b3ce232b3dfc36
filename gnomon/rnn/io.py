"""Sentences as numbers, in batches of like length."""

from __future__ import annotations

import bisect
import itertools
import logging
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import ParamError, UnknownNameError, complaint
from gnomon.ground.arguments import checked
from gnomon.io import DataBatch, DataDesc, DataIter


@checked
def encode_sentences(
    sentences: Sequence[Sequence[Any]],
    vocab: dict[Any, int] | None = None,
    invalid_label: int = -1,
    invalid_key: Any = "\n",
    start_label: int = 0,
    unknown_token: Any = None,
) -> tuple[list[list[int]], dict[Any, int]]:
    """The sentences as lists of numbers, and the vocabulary.

    Without `vocab` a new one grows: `invalid_key` is `invalid_label`, the words count up from
    `start_label`. With a `vocab`, a word that is not in it becomes `unknown_token`.

    >>> encode_sentences([["a", "b"], ["b", "c"]])
    ([[0, 1], [1, 2]], {'\\n': -1, 'a': 0, 'b': 1, 'c': 2})

    Raises:
        UnknownNameError: a word is not in `vocab`, and there is no `unknown_token`.
    """
    grows = vocab is None
    vocab = {invalid_key: invalid_label} if vocab is None else vocab
    numbers = (n for n in itertools.count(start_label) if n != invalid_label)

    def code(word: Any) -> int:
        if word not in vocab:
            if not grows and unknown_token is None:
                expected = "words of vocab, or an unknown_token"
                got = repr(word)
                raise UnknownNameError(complaint("encode_sentences", "sentences", expected, got))
            word = word if unknown_token is None else unknown_token
            if word not in vocab:
                vocab[word] = next(numbers)
        return vocab[word]

    return [[code(word) for word in sentence] for sentence in sentences], vocab


class BucketSentenceIter(DataIter):
    """Batches of sentences padded to the length of their bucket; the labels are the next words.

    Every batch has its bucket as `bucket_key`. `reset` shuffles batches and sentences, by the
    generators of the modules `random` and `numpy.random`.

    Args:
        sentences: lists of numbers.
        batch_size: sentences a batch; what does not fill a batch is left out.
        buckets: lengths; by default all that at least `batch_size` sentences have. A sentence
            longer than all is left out, and a warning is logged; buckets without sentences go.
        invalid_label: fills the ends.
        data_name, label_name: names of the two inputs.
        dtype: of both.
        layout: "NT" or "TN".

    >>> it = BucketSentenceIter([[1, 2], [3, 4], [5] * 3], 2, buckets=[2, 4, 8])
    >>> it.provide_data, next(it).bucket_key
    ([DataDesc[data,(2, 4),<class 'numpy.float32'>,NT]], 2)
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: Sequence[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        layout: str = "NT",
    ) -> None:
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise ParamError(
                complaint("BucketSentenceIter", "layout", "'NT' or 'TN'", repr(layout))
            )
        if not buckets:
            counts = np.bincount([len(s) for s in sentences])
            buckets = [size for size, count in enumerate(counts) if count >= batch_size]
        if not buckets:
            expected, got = f"at least {batch_size} of one length, or buckets", len(sentences)
            raise ParamError(complaint("BucketSentenceIter", "sentences", expected, got))
        self.invalid_label, self.dtype, self.layout = invalid_label, dtype, layout
        self.data_name, self.label_name = data_name, label_name
        self.major_axis = layout.find("N")
        self.buckets, self.data = self._bucketed(sentences, sorted(buckets))
        self.default_bucket_key = self.buckets[-1]
        self.provide_data = [self._desc(data_name, self.default_bucket_key)]
        self.provide_label = [self._desc(label_name, self.default_bucket_key)]
        self.idx = [
            (k, start)
            for k, rows in enumerate(self.data)
            for start in range(0, len(rows) - batch_size + 1, batch_size)
        ]
        self.reset()

    def _bucketed(
        self, sentences: Sequence[Sequence[int]], buckets: Sequence[int]
    ) -> tuple[list[int], list[np.ndarray]]:
        """The lengths of buckets that have sentences, and these, filled up to that length.

        Raises:
            ParamError: there is no such bucket.
        """
        found: list[list[np.ndarray]] = [[] for _ in buckets]
        left_out = 0
        for sentence in sentences:
            k = bisect.bisect_left(buckets, len(sentence))
            if k == len(buckets):
                left_out += 1
                continue
            row = np.full(buckets[k], self.invalid_label, self.dtype)
            row[: len(sentence)] = sentence
            found[k].append(row)
        if left_out:
            logging.warning(
                "BucketSentenceIter: %d sentences are longer than every bucket", left_out
            )
        used = [(size, rows) for size, rows in zip(buckets, found, strict=True) if rows]
        if not used:
            expected = f"a sentence of at most {buckets[-1]} words, the largest bucket"
            raise ParamError(complaint("BucketSentenceIter", "sentences", expected, len(sentences)))
        return [size for size, _ in used], [np.array(rows, self.dtype) for _, rows in used]

    def _desc(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length)
        dtype = np.dtype(self.dtype).type  # as the other iterators say it
        return DataDesc(name, shape[:: 1 - 2 * self.major_axis], dtype, self.layout)

    def reset(self) -> None:
        """Begin anew, in another order."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        for rows in self.data:
            np.random.shuffle(rows)

    def next(self) -> DataBatch:
        """The next batch; StopIteration behind the last."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        k, start = self.idx[self.curr_idx]
        self.curr_idx += 1
        rows = self.data[k][start : start + self.batch_size]
        labels = np.full_like(rows, self.invalid_label)
        labels[:, :-1] = rows[:, 1:]
        data, label = (
            nd.array(x.T if self.major_axis else x, dtype=self.dtype) for x in (rows, labels)
        )
        length = self.buckets[k]
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=length,
            provide_data=[self._desc(self.data_name, length)],
            provide_label=[self._desc(self.label_name, length)],
        )
