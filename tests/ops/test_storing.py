"""Compiled, every operator honours all four requests for every output and gradient."""

from __future__ import annotations

import numpy as np
import pytest
from ops import test_binary, test_nn, test_shapes, test_unary
from ops.records import record

from gnomon.base import GnomonError, ShapeError
from gnomon.ops import find
from gnomon.ops.binary import FORMS
from gnomon.ops.classic import RecordOperator
from gnomon.ops.property import OpContext
from gnomon.ops.requests import (
    OpReqType,
    assign_dispatch,
    kAddTo,
    kNullOp,
    kWriteInplace,
    kWriteTo,
)
from gnomon.ops.testing import check_storing
from gnomon.shadow import TBlob, Tensor


def binary(name):
    a, b = test_binary.arrays((2, 1), (1, 3))
    return record(FORMS[name].broadcast, a, b)


def unary(name):
    _, low, high = test_unary.FUNCTIONS[name]
    return record(name, (2, 3), low=low, high=high)


EVERYTHING = [
    *test_unary.RECORDS,
    *test_shapes.RECORDS,
    *test_nn.RECORDS,
    *map(binary, FORMS),
    *map(unary, test_unary.FUNCTIONS),
]
ONE_EACH = list({r.name: r for r in EVERYTHING}.values())


# a request's code does not depend on the operator: these get all four, the others one in turn
FULLY = """FullyConnected Convolution Activation Pooling BatchNorm Dropout Concat SoftmaxOutput
LinearRegressionOutput broadcast_sub sum Reshape transpose slice SliceChannel""".split()


@pytest.mark.parametrize("number", range(len(ONE_EACH)), ids=[r.name for r in ONE_EACH])
def test_requests(number):
    example = ONE_EACH[number]
    arrays = [a.astype(np.float32) if a.dtype == np.float64 else a for a in example.arrays()]
    requests = list(OpReqType) if example.name in FULLY else [list(OpReqType)[1 + number % 3]]
    check_storing(example.op(), arrays, example.train, 2e-5, requests)


CONVOLUTION = {"kernel": (3, 5), "num_filter": 7, "pad": (1, 2)}
POOLING = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}
# nothing, one, and sizes that no vector length divides
SIZES = [
    record("FullyConnected", (0, 3), (4, 3), (4,), num_hidden=4),
    record("FullyConnected", (1, 1), (1, 1), (1,), num_hidden=1),
    record("FullyConnected", (13, 11), (7, 11), (7,), num_hidden=7),
    record("Convolution", (0, 5, 11, 13), (7, 5, 3, 5), (7,), **CONVOLUTION),
    record("Convolution", (3, 5, 11, 13), (7, 5, 3, 5), (7,), **CONVOLUTION),
    record("Convolution", (1, 1, 1, 1), (1, 1, 1, 1), (1,), kernel=(1, 1), num_filter=1),
    record("Pooling", (0, 1, 5, 5), **POOLING),
    record("Pooling", (3, 5, 11, 13), **POOLING),
    record("Pooling", (3, 5, 11, 13), pool_type="avg", **POOLING),
    record("BatchNorm", (0, 3), (3,), (3,), *test_nn.STATES, train=True),
    record("BatchNorm", (17, 3, 7, 11), (3,), (3,), *test_nn.STATES, fix_gamma=False, train=True),
    record("Dropout", (0, 3), train=True),
    record("Dropout", (31, 13), train=True),
    record("Concat", (0, 3), (2, 3), num_args=2, dim=0),
    record("Concat", (31, 13), (31, 7), num_args=2),
    record("SoftmaxOutput", (0, 4), (0,)),
    record("SoftmaxOutput", (1, 1), np.zeros(1)),
    record("SoftmaxOutput", (17, 13), np.arange(17.0) % 13),
    record("LinearRegressionOutput", (7, 1), (7,)),
    record("broadcast_mul", (31, 1, 7), (5, 1)),
    record("sum", (31, 5, 37), axis=(0, 2)),
    record("mean", (0, 3), axis=1),
    record("transpose", (31, 37)),
    record("slice", (2, 3), begin=(1,), end=(1,)),
]


@pytest.mark.parametrize("example", SIZES, ids=str)
def test_sizes(example):
    arrays = [a.astype(np.float32) for a in example.arrays()]
    check_storing(example.op(), arrays, example.train, 2e-4, [kAddTo])


def test_the_list_of_those_with_all_four_is_right():
    assert {r.name for r in ONE_EACH} >= set(FULLY)


@pytest.mark.parametrize("request_type", [kNullOp, kWriteTo, kWriteInplace, kAddTo])
def test_assign_dispatch(request_type):
    x = np.array([1, 2, 3], np.float32)
    out = Tensor(x)
    assign_dispatch(out, request_type, out * 2.0 + 1.0)
    told = {kNullOp: [1, 2, 3], kAddTo: [4, 7, 10]}.get(request_type, [3, 5, 7])
    np.testing.assert_array_equal(x, told)
    assign_dispatch(TBlob(x), request_type, 5.0)
    told = {kNullOp: [1, 2, 3], kAddTo: [9, 12, 15]}.get(request_type, [5, 5, 5])
    np.testing.assert_array_equal(x, told)


def test_what_does_not_fit_leaves_the_destination_alone():
    x = np.ones(3, np.float32)
    with pytest.raises(ShapeError):
        assign_dispatch(Tensor(x), kWriteTo, Tensor(np.zeros(4, np.float32)) + 1.0)
    with pytest.raises(ValueError, match=r"argument .req.: expected one of kNullOp.*got 7"):
        assign_dispatch(Tensor(x), 7, 1.0)
    relu = RecordOperator(find("relu")())
    with pytest.raises(GnomonError, match="relu: argument 'req': expected 1 requests, got 0"):
        relu.forward(OpContext(), [TBlob(x)], [], [TBlob(x)], [])
    np.testing.assert_array_equal(x, 1)
