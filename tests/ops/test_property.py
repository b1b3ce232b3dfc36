"""The classic interface: a convolution written by hand, and every record seen through it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gnomon as mx
from gnomon import shadow
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.dtype import float32
from gnomon.ops import Dims, find, param
from gnomon.ops.classic import property_of
from gnomon.ops.derive import Needs
from gnomon.ops.param import Parameter
from gnomon.ops.property import OpContext, Operator, OperatorProperty, register_op_property
from gnomon.ops.requests import assign_dispatch, kAddTo, kNullOp, kWriteTo
from gnomon.resource import ResourceRequest, request
from gnomon.shadow import (
    TBlob,
    dot,
    pack_col2patch,
    reshape,
    transpose,
    unpack_patch2col,
)

KINDS = ("data", "weight")
X, W = (2, 3, 5, 4), (4, 3, 3, 2)


class ConvolutionParam(Parameter):
    """What a convolution is told."""

    kernel: Dims = param(low=1)
    num_filter: int = param(low=1)
    pad: Dims = param((0, 0), low=0)


class ConvolutionOp(Operator):
    """Patches as columns in scratch memory, and one matrix product each way."""

    def __init__(self, told):
        self.told = told
        self.calls = 0

    def columns(self, ctx, data, weight):
        patches = unpack_patch2col(data.tensor, self.told.kernel, (1, 1), (1, 1), self.told.pad)
        space = ctx.requested[0].get_space(patches.shape, dtype=data.tensor.dtype)
        assign_dispatch(space, kWriteTo, patches)
        return space, weight.get_with_shape((weight.shape_[0], patches.shape[0]))

    def forward(self, ctx, in_data, req, out_data, aux_states):
        self.calls += 1
        columns, rows = self.columns(ctx, *in_data)
        n, filters, *space = out_data[0].shape_
        apart = reshape(dot(rows, columns), (filters, n, *space))
        assign_dispatch(out_data[0], req[0], transpose(apart, (1, 0, 2, 3)))

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux_states):
        assert out_data[0] is None
        columns, rows = self.columns(ctx, *in_data)
        swapped = transpose(out_grad[0].tensor, (1, 0, 2, 3))
        grads = reshape(swapped, (rows.shape[0], columns.shape[1]))
        weight = reshape(dot(grads, transpose(columns)), in_grad[1].shape_)
        data = pack_col2patch(
            dot(rows.T, grads), in_grad[0].shape_, self.told.kernel, (1, 1), (1, 1), self.told.pad
        )
        assign_dispatch(in_grad[0], req[0], data)
        assign_dispatch(in_grad[1], req[1], weight)


@register_op_property("_test_convolution")
class ConvolutionProp(OperatorProperty):
    """A convolution, the classic way."""

    parameters = ConvolutionParam

    def list_arguments(self):
        return list(KINDS)

    def infer_shape(self, in_shape):
        if in_shape[0] is None or 0 in in_shape[0]:
            return False
        n, channels, *space = in_shape[0]
        weight = (self.param.num_filter, channels, *self.param.kernel)
        if in_shape[1] not in (None, weight):
            raise ShapeError(f"_test_convolution: weight: expected {weight}, got {in_shape[1]}")
        sizes = zip(space, self.param.kernel, self.param.pad, strict=True)
        places = [s - k + 2 * p + 1 for s, k, p in sizes]
        return [in_shape[0], weight], [(n, self.param.num_filter, *places)], []

    def forward_resource(self, in_shape):
        return [ResourceRequest(ResourceRequest.kTempSpace)]

    backward_resource = forward_resource

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        return [out_grad[0], in_data[0], in_data[1]]

    def create_operator(self, ctx):
        return ConvolutionOp(self.param)


def classic():
    return find("_test_convolution").parse({"kernel": "(3, 2)", "num_filter": 4, "pad": (1, 0)})


def arrays():
    generator = np.random.default_rng(0)
    return [generator.normal(size=s).astype(np.float32) for s in (X, W, (2, 4, 5, 3))]


def scratch(op, backward=False):
    return OpContext(True, requested=[request(r) for r in op.resources([X, W], backward)])


def test_a_property_is_an_operator_like_any_other():
    op = classic()
    assert not op.is_expression
    assert (op.arguments(), op.kernel, op.attrs()["num_filter"]) == (KINDS, (3, 2), "4")
    assert op.infer_shape([X, None]) == ([X, W], [(2, 4, 5, 3)], [])
    assert op.infer_shape([None, None]) == ([None, None], [None], [])
    assert op.infer_type([float32, None]) == ([float32] * 2, [float32], [])
    assert op.backward_needs([X, W], [float32] * 2) == Needs((0,), (0, 1), ())
    assert find("_test_convolution").__doc__ == "A convolution, the classic way."
    assert find("_test_convolution").__module__ == __name__  # it is none of the package's
    assert op == classic()
    with pytest.raises(ShapeError, match="weight: expected"):
        op.infer_shape([X, (1, 2, 3, 4)])
    with pytest.raises(ParamError, match=r"ConvolutionParam: argument 'num_filters'.*'num_filter'"):
        find("_test_convolution")(num_filters=4, kernel=3)


@pytest.mark.parametrize("how", [kNullOp, kWriteTo, kAddTo])
def test_the_classic_convolution_computes_what_the_record_does(how):
    x, w, g = arrays()
    record = property_of("Convolution", kernel=(3, 2), num_filter=4, pad=(1, 0), no_bias=True)
    ours, theirs = np.ones_like(g), np.ones_like(g)
    op = classic()
    context = scratch(op)
    op.run(context, [TBlob(x), TBlob(w)], [how], [TBlob(ours)], [])
    operator = record.create_operator(None)
    operator.forward(OpContext(True), [TBlob(x), TBlob(w)], [how], [TBlob(theirs)], [])
    np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)
    mine, other = ([np.ones_like(x), np.ones_like(w)] for _ in range(2))
    blobs = [TBlob(a) for a in mine]
    op.run_backward(context, [TBlob(g)], [TBlob(x), TBlob(w)], [None], [how] * 2, blobs, [])
    blobs = [TBlob(a) for a in other]
    operator.backward(
        OpContext(True), [TBlob(g)], [TBlob(x), TBlob(w)], [TBlob(theirs)], [how] * 2, blobs, []
    )
    for a, b in zip(mine, other, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-4)
    assert context.state["operator"].calls == 1


def test_requests_are_counted():
    x, w, g = arrays()
    op = classic()
    with pytest.raises(GnomonError, match="_test_convolution: argument 'req': expected 1 requests"):
        op.run(scratch(op), [TBlob(x), TBlob(w)], [], [TBlob(g)], [])


def test_every_record_has_the_classic_face():
    dense = property_of("FullyConnected", num_hidden="4")
    assert dense.get_params() == {"num_hidden": "4"}
    assert dense.list_arguments() == ["data", "weight", "bias"]
    assert dense.declare_backward_dependency([0], [1, 2, 3], [4]) == [0, 1, 2, 3, 4]
    assert dense.infer_shape([(2, 3), None, None])[0] == [(2, 3), (4, 3), (4,)]
    assert dense.infer_shape([None, None, None]) is False
    assert dense.infer_shape([(2, 3), None, None])[1] == [(2, 4)]
    assert dense.infer_type([float32, None, None])[1] == [float32]
    assert dense.declare_backward_dependency([0], [1, 2, 3], [4]) == [0, 1, 2]
    norm = property_of("BatchNorm")
    assert norm.list_auxiliary_states() == ["moving_mean", "moving_var"]
    assert (norm.num_outputs(), norm.num_visible_outputs()) == (3, 1)
    assert str(property_of("Dropout").forward_resource([])) == "[ResourceRequest(kRandom)]"
    relu = property_of("relu")
    assert relu.infer_shape([(3,)])
    assert relu.infer_type([float32])
    assert relu.forward_inplace_option([7], [8]) == [(7, 8)]
    assert property_of("_test_convolution", kernel=3, num_filter=1).param.kernel == (3,)


def test_a_record_at_work_moves_its_states_in_backward():
    op = property_of("BatchNorm", fix_gamma=False, momentum=0.5).create_operator(None)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    scale, shift, mean, var = (np.full(3, v, np.float32) for v in (1, 0, 8, 2))
    outs = [np.zeros_like(x), np.zeros(3, np.float32), np.zeros(3, np.float32)]
    op.forward(
        OpContext(True),
        [TBlob(a) for a in (x, scale, shift)],
        [kWriteTo] * 3,
        [TBlob(y) for y in outs],
        [TBlob(mean), TBlob(var)],
    )
    assert (mean == 8).all()
    grads = [np.zeros_like(a) for a in (x, scale, shift)]
    op.backward(
        OpContext(True),
        [TBlob(np.ones_like(x))],
        [TBlob(a) for a in (x, scale, shift)],
        [TBlob(y) for y in outs],
        [kWriteTo] * 3,
        [TBlob(g) for g in grads],
        [TBlob(mean), TBlob(var)],
    )
    assert (grads[2] == 4).all()
    np.testing.assert_allclose(mean, 4 + x.mean(0) / 2)
    np.testing.assert_allclose(var, 1 + x.var(0) / 2, 1e-5)
    np.testing.assert_allclose(outs[0].mean(0), 0, atol=1e-6)


def test_what_a_property_leaves_out_is_named():
    @register_op_property("_test_nothing")
    class Nothing(OperatorProperty):
        """Nothing."""

    op = find("_test_nothing")()
    assert op.infer_shape([(2, 3)])[1] == [(2, 3)]
    assert op.infer_shape([None])[1] == [None]
    with pytest.raises(GnomonError, match="Nothing: says nothing of create_operator"):
        op.run(OpContext(), [], [1], [None], [])
    with pytest.raises(GnomonError, match="Operator: says nothing of forward"):
        Operator().forward(OpContext(), [], [], [], [])
    assert find("_test_nothing")(x=1).attrs() == {"x": "1"}


class Told(OperatorProperty):
    """The product of both."""

    parameters = None

    def list_arguments(self):
        return ["data", "weight"]

    def create_operator(self, ctx):
        return 3


def test_a_property_is_documented_with_its_inputs():
    register_op_property("told_product")(Told)
    shown = str(inspect.signature(mx.nd.told_product))
    assert shown == "(data=None, weight=None, *, out=None, name=None)"
    assert "data : NDArray\nweight : NDArray" in mx.nd.told_product.__doc__
    assert "weight : Symbol" in mx.sym.told_product.__doc__


def test_a_property_that_wants_parameters_is_documented_without_inputs():
    class Wanting(Told):
        def init(self, kwargs):
            self.count = int(kwargs["count"])

    register_op_property("told_wanting")(Wanting)
    assert str(inspect.signature(mx.nd.told_wanting)) == "(*args, out=None, name=None)"


def test_mistakes_in_registrations_are_told():
    with pytest.raises(TypeError, match=r"register_op_property: argument 'told_number'.*got 3"):
        register_op_property("told_number")(3)
    with pytest.raises(TypeError, match="argument 'name': expected a string, got 3"):
        register_op_property(3)
    register_op_property("told_no_operator")(Told)
    with pytest.raises(mx.MXNetError, match=r"told_no_operator.create_operator: .*an Operator"):
        mx.nd.told_no_operator(mx.nd.ones((2,)), mx.nd.ones((2,))).asnumpy()


@pytest.mark.parametrize("request_type", ["add", 7, None])
def test_requests_that_are_none_are_told(request_type):
    out = shadow.Tensor(np.ones(3, np.float32))
    with pytest.raises(mx.base.ParamError, match=r"argument 'req': .*kAddTo \(3\)"):
        assign_dispatch(out, request_type, out * 2.0)
    assert out.numpy().tolist() == [1, 1, 1]
