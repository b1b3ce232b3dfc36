"""The cache of kernels, asked by a signal's handler while it is being asked."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import pytest

from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.statements import dispatch
from gnomon.shadow import TensorContainer, fn


def test_a_handler_amidst_a_look_finds_kernels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    x = TensorContainer((3, 5), init=0.5)
    made: list[np.ndarray] = []

    class Interrupted(OrderedDict):
        handled = False

        def get(self, key, default=None):
            if not self.handled:
                self.handled = True
                compute()
            return super().get(key, default)

    def compute():
        y = TensorContainer((3, 5))
        y[:] = fn.exp(x) - fn.log1p(x) * 7.0
        made.append(y.numpy())

    monkeypatch.setattr(CACHE, "kernels", Interrupted())
    dispatch.forget()
    asking = threading.Thread(target=compute, daemon=True)
    asking.start()
    asking.join(30)
    assert not asking.is_alive()
    for found in made:
        np.testing.assert_allclose(found, np.exp(0.5) - np.log1p(0.5) * 7, rtol=1e-6)
    assert len(made) == 2
