"""Methods in native code tell what they take, as those they took the places of."""

from __future__ import annotations

import inspect

import pytest

from gnomon.expr.functions.scalar import ScalarFn
from gnomon.expr.node import Expr
from gnomon.runtime.statements import call_cache
from gnomon.shadow import Tensor, TensorContainer


@pytest.mark.native
def test_native_methods_tell_their_signatures():
    a = TensorContainer((3,), init=1.0)
    for _ in range(call_cache.PATIENCE + 4):
        a[:] = a * 1.0
    for method, wanted in (
        (Tensor.__getitem__, "(self, key, /)"),
        (Tensor.__setitem__, "(self, key, value, /)"),
        (Tensor.__iadd__, "(self, value, /)"),
        (Expr.__add__, "(self, other, /)"),
        (Expr.__eq__, "(self, other, /)"),
        (Expr.__neg__, "(self, /)"),
        (ScalarFn.__call__, "(self, /, *args)"),
    ):
        assert not inspect.isfunction(method)
        assert str(inspect.signature(method)) == wanted
    assert "one rank less" in Tensor.__getitem__.__doc__
    with pytest.raises(TypeError):
        a.__getitem__(key=0)
