"""What was recorded and followed, in later records."""

from __future__ import annotations

import pytest

from gnomon import autograd, nd
from gnomon.base import GnomonError


def test_what_was_followed_is_constant_in_later_records() -> None:
    """As in MXNet 1.9.1, whose numbers these are: states go from step to step so."""
    w, s = nd.ones((2,)), nd.ones((2,))
    w.attach_grad()
    for expected in (8.0, 32.0, 128.0):
        with autograd.record():
            s = s * w * 2
            loss = (s * s).sum()
        loss.backward()
        assert w.grad.asnumpy().tolist() == [expected] * 2
    with autograd.record():
        s[:] = 4
        loss = (s * w).sum()
    loss.backward()
    assert w.grad.asnumpy().tolist() == [4, 4]


def test_a_value_beside_what_was_followed_is_refused() -> None:
    """MXNet 1.9.1 refuses it too: the tape behind it is gone."""
    w = nd.ones((2,))
    w.attach_grad()
    with autograd.record():
        h = w * 2
        loss, beside = (h * h).sum(), h * 5
    loss.backward()
    with autograd.record():
        other = (beside * w).sum()
    with pytest.raises(GnomonError, match="followed already"):
        other.backward()
