"""Signatures: written and read again, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon import dtype as dt
from gnomon.expr import ext, fn
from gnomon.expr.node import Buffer
from gnomon.plan.pipeline import plan
from gnomon.plan.signature import Signature, read, signature_of
from gnomon.plan.statement import Store, Structure

NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6) - 7


def leaf(array: np.ndarray) -> Buffer:
    return Buffer(array.shape, dt.of(array.dtype), None, array.ctypes.data, array)


def signatures() -> list[Signature]:
    x = leaf(NUMBERS)
    turned = Buffer((6, 4), dt.float32, (1, 6), x.address, x)
    values = [
        fn.exp(x) * 2.0,
        ext.reduce(x, "sum"),
        ext.reduce(x, "argmax", 1),
        fn.maximum(turned, 0.0),
        x - ext.broadcast_axis(ext.reduce(x, "max", 1), (4, 6), 0),
        ext.reshape(x, (8, 3)),
        ext.take_grad(leaf(np.array([2, 0, 2, 1])), x, 3),
    ]
    found = []
    for value in values:
        result = np.zeros(value.shape, value.dtype.numpy)
        stores = [Store(leaf(result), "saveto", value)]
        found.append(signature_of(plan(stores, Structure(stores))))
    return found


SIGNATURES = signatures()


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_signature_is_read_as_it_was_written(signature: Signature) -> None:
    assert read(signature.words()) == signature


@given(st.sampled_from(SIGNATURES), st.data())
def test_words_that_are_no_signature_are_refused(signature: Signature, data: st.DataObject) -> None:
    words = signature.words()
    place = data.draw(st.integers(0, len(words) - 1))
    odd = data.draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 70))
    for wrong in (words[:place], [*words, odd], [*words[:place], odd, *words[place + 1 :]]):
        try:
            read(wrong)
        except ValueError:
            continue
        assert len(wrong) == len(words), "a change of length is always seen"


def test_numbers_that_are_equal_but_differ_are_told_apart():
    x = leaf(NUMBERS)
    keys = set()
    for value in (0.0, -0.0, 1.0, True, 1):
        padded = ext.pad(x, (1, 0), (0, 0), value)
        result = leaf(np.zeros(padded.shape, np.float32))
        keys.add(Structure([Store(result, "saveto", padded)]).key)
    assert len(keys) == 5
