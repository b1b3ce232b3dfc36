"""Parameters: states, sharing, storage, files, errors."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, UnknownNameError
from gnomon.gluon import Constant, DeferredInitializationError, Parameter, ParameterDict, Trainer


def made(name="w", shape=(2, 3), **kwargs):
    param = Parameter(name, shape=shape, **kwargs)
    param.initialize(init="ones")
    return param


def test_states():
    param = Parameter("w", shape=(0, 3), allow_deferred_init=True)
    with pytest.raises(GnomonError, match="'w' has not been initialized"):
        param.data()
    param.initialize(ctx=map(mx.cpu, (0, 1)))
    assert param.list_ctx() == [mx.cpu(0), mx.cpu(1)]
    with pytest.raises(DeferredInitializationError, match=r"'w' has no array yet: its shape \(0"):
        param.data()
    param.shape = (4, 3)
    param._finish_deferred_init()
    assert [x.context for x in param.list_data()] == [mx.cpu(0), mx.cpu(1)]
    assert [x.shape for x in param.list_grad()] == [(4, 3)] * 2
    with pytest.raises(GnomonError, match=r"not initialized on gpu\(0\), only on cpu\(0\), cpu\(1"):
        param.data(mx.gpu(0))
    with pytest.warns(UserWarning, match="force_reinit=True"):
        param.initialize()
    param.initialize(init="zeros", force_reinit=True)
    assert param.list_ctx() == [mx.cpu(0)]
    assert not param.data().asnumpy().any()


def test_unknown_shape_is_refused():
    with pytest.raises(ShapeError, match=r"'shape': expected all dimensions known.*got \(0, 3\)"):
        Parameter("w", shape=(0, 3)).initialize()
    with pytest.raises(ShapeError, match=r"expected one that goes with \(2, 3\), got \(2, 4\)"):
        made().shape = (2, 4)


@pytest.mark.parametrize(
    ("argument", "value"), [("grad_req", "wrote"), ("stype", "coo"), ("grad_stype", "dense")]
)
def test_words_are_checked(argument, value):
    with pytest.raises(ParamError, match=f"'w': argument '{argument}': expected one of"):
        Parameter("w", shape=(2,), **{argument: value})


def test_grad_req():
    param = made(grad_req="null")
    with pytest.raises(GnomonError, match="'w' has no gradient"):
        param.grad()
    param.grad_req = "add"
    for _ in range(2):
        with mx.autograd.record():
            y = (param.data() * 2).sum()
        y.backward()
    assert (param.grad().asnumpy() == 4).all()
    param.zero_grad()
    assert (param.grad().asnumpy() == 0).all()
    assert Parameter("s", shape=(1,), differentiable=False).grad_req == "null"


def test_cast_and_contexts():
    param = made()
    param.cast("float16")
    assert param.data().dtype == param.grad().dtype == np.float16
    param.reset_ctx(mx.cpu(1))
    assert param.list_ctx() == [mx.cpu(1)]
    assert (param.data().asnumpy() == 1).all()
    with pytest.raises(GnomonError, match="not been initialized"):
        Parameter("v", shape=(1,)).reset_ctx(mx.cpu())
    with pytest.raises(TypeError, match="'ctx': expected a context"):
        Parameter("v", shape=(1,)).initialize(ctx=["cpu"])


def test_set_data():
    param = Parameter("w", shape=(0,), allow_deferred_init=True)
    with pytest.raises(GnomonError, match="not been initialized"):
        param.set_data(nd.ones((2,)))
    param.initialize()
    param.set_data(nd.array([1, 2]))
    param._finish_deferred_init()
    assert param.data().asnumpy().tolist() == [1, 2]
    with pytest.raises(ShapeError):
        param.set_data(nd.ones((3,)))


def test_symbol_and_constant():
    param = Parameter("w", shape=(2,), lr_mult=2.0, init=mx.init.Xavier(), dtype="float64")
    assert param.var() is param.var()
    attrs = param.var().attr_dict()["w"]
    assert (attrs["__lr_mult__"], attrs["__shape__"]) == ("2.0", "(2,)")
    constant = Constant("c", [[1, 2]])
    constant.initialize()
    assert constant.data().asnumpy().tolist() == [[1, 2]]
    with pytest.warns(UserWarning, match="expected 'null'"):
        constant.grad_req = "write"
    assert constant.grad_req == "null"


def test_dictionary():
    params = ParameterDict("net_")
    first = params.get("w", shape=(2, 0))
    assert params.get("w", shape=(2, 5)) is first
    assert first.shape == (2, 5)
    for wrong in ({"shape": (3, 5)}, {"dtype": "float16"}, {"lr_mult": 2.0}):
        with pytest.raises(ParamError, match="'net_w'"):
            params.get("w", **wrong)
    shared = ParameterDict("net_", params)
    assert shared.get("w") is first
    with pytest.raises(UnknownNameError, match="did you mean 'net_w'"):
        params["net_v"]
    with pytest.raises(UnknownNameError, match="net_c"):
        params.get_constant("c")
    constant = params.get_constant("c", [1, 2])
    assert params.get_constant("c", [1, 2]) is constant
    with pytest.raises(ParamError):
        params.get_constant("c", [1, 3])
    other = ParameterDict()
    other._params["net_w"] = made("net_w")
    with pytest.raises(ParamError, match="same parameter 'net_w'"):
        params.update(other)
    assert "Parameter net_w (shape=(2, 5)" in repr(params)


def test_dictionary_files(tmp_path):
    file, params = str(tmp_path / "p.params"), ParameterDict("net_")
    params.get("w", shape=(2, 2), init="ones")
    params.get("b", shape=(3,), dtype="float16")
    params.initialize()
    with pytest.raises(ParamError, match="strip_prefix"):
        params.save(file, "other_")
    params.save(file, "net_")
    assert list(nd.load(file)) == ["w", "b"]
    with pytest.raises(ParamError, match="'net_w', 'net_b' not in the file"):
        params.load(file)
    params["net_w"].set_data(nd.zeros((2, 2)))
    params.load(file, restore_prefix="net_")
    assert (params["net_w"].data().asnumpy() == 1).all()
    with pytest.raises(GnomonError, match=r"cannot read .*p\.nothing"):
        params.load(str(tmp_path / "p.nothing"))


def test_loading_is_all_or_nothing(tmp_path):
    file, params = str(tmp_path / "p.params"), ParameterDict()
    for name in "ab":
        params.get(name, shape=(2,), init="zeros")
    params.initialize()
    nd.save(file, {"a": nd.ones((2,)), "b": nd.ones((3,))})
    with pytest.raises(ShapeError, match="loading Parameter 'b'"):
        params.load(file)
    nd.save(file, {"a": nd.ones((2,)), "b": nd.ones((2,), dtype="float64")})
    with pytest.raises(DTypeError, match="cast_dtype=True"):
        params.load(file)
    assert not params["a"].data().asnumpy().any()
    params.load(file, cast_dtype=True)
    assert params["b"].data().dtype == np.float32
    params.load(file, cast_dtype=True, dtype_source="saved")
    assert params["b"].data().dtype == np.float64
    nd.save(file, {"a": nd.ones((2,)), "c": nd.ones((2,))})
    with pytest.raises(ParamError, match="'c', which the network has not"):
        params.load(file, allow_missing=True)
    params.load(file, allow_missing=True, ignore_extra=True)
    with pytest.raises(ParamError, match="where it was initialized"):
        params.load(file, mx.cpu(1), allow_missing=True, ignore_extra=True)


def test_row_sparse():
    param = Parameter("w", shape=(5, 2), stype="row_sparse", grad_stype="row_sparse", init="ones")
    param.initialize()
    for method in (param.data, param.list_data):
        with pytest.raises(GnomonError, match=r"use (list_)?row_sparse_data\(row_id\)"):
            method()
    rows = nd.array([1, 3])
    with pytest.raises(GnomonError, match="make a Trainer"):
        param.row_sparse_data(rows)
    with pytest.raises(ParamError, match="a store that updates weights"):
        Trainer([param], "sgd", kvstore=None).step(1)
    with pytest.raises(GnomonError, match=r"use data\(\)"):
        made().row_sparse_data(rows)


def test_no_dtype_is_that_of_arrays():
    param = Parameter("w", shape=(2,), dtype="float64")
    param.initialize()
    param.cast(None)
    assert param.dtype is None
    assert param.data().dtype == np.float32
    other = Parameter("w", shape=(2,), dtype=None)
    other.initialize()
    assert other.data().dtype == np.float32
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2), mx.gluon.nn.BatchNorm())
    net.cast(None)
    net.initialize()
    assert net(nd.ones((2, 3))).dtype == np.float32


class _Interrupted(mx.init.Initializer):
    def __init__(self, times):
        super().__init__()
        self.times = times

    def _init_weight(self, name, arr):
        self.times -= 1
        if self.times >= 0:
            raise KeyboardInterrupt
        arr[:] = 2


@pytest.mark.parametrize("hybrid", [False, True])
def test_an_interrupted_first_pass_leaves_parameters_to_the_next(hybrid):
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2), mx.gluon.nn.Dense(1, weight_initializer=_Interrupted(2)))
    net.initialize(mx.init.One())
    if hybrid:
        net.hybridize()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            net(nd.ones((3, 4)))
    np.testing.assert_array_equal(net(nd.ones((3, 4))).asnumpy(), np.full((3, 1), 16))
