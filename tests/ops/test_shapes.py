"""Operators that reduce, reshape, move, join and part, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ops.records import record

from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.ops import find
from gnomon.ops.testing import backward, check, forward

A = (2, 3, 4)


def norm(order, axis):
    return lambda x: (np.abs(x) ** order).sum(axis) ** (1 / order)


def assigned(x, part):
    out = x.copy()
    out[0:3:2, 4::-2] = part
    return out


RECORDS = [
    record("sum", A, reference=lambda x: x.sum().reshape(1)),
    record("sum", A, reference=lambda x: x.sum((0, 2)), axis=(0, 2)),
    record("sum", A, reference=lambda x: x.sum((0, 2)), axis=1, exclude=True),
    record("sum", A, reference=lambda x: x.sum(1, keepdims=True), axis=-2, keepdims=True),
    record("sum", A, reference=lambda x: x.sum(keepdims=True), keepdims=True),
    record("sum", A, reference=lambda x: x.sum().reshape(1), axis=()),
    record("sum", (0, 3), reference=lambda x: np.zeros(3), axis=0),
    record("mean", A, reference=lambda x: x.mean(1), axis=1),
    record("mean", (7,), reference=lambda x: x.mean().reshape(1)),
    record("prod", A, reference=lambda x: x.prod(2), axis=2),
    record("prod", (5,), reference=lambda x: x.prod().reshape(1)),
    record("max", A, reference=lambda x: x.max(1), axis=1),
    record("min", A, reference=lambda x: x.min((0, 1)), axis=(0, 1)),
    record("nansum", A, reference=lambda x: x.sum(1), axis=1),
    record("nanprod", A, reference=lambda x: x.prod(1), axis=1),
    record("_square_sum", A, reference=lambda x: (x * x).sum(1), axis=1),
    record("norm", A, reference=norm(2, 1), axis=1),
    record("norm", A, reference=norm(1, (0, 2)), ord=1, axis=(0, 2)),
    record("norm", (3,), reference=lambda x: np.linalg.norm(x).reshape(1)),
    record("moments", A, reference=lambda x: (x.mean((0, 2)), x.var((0, 2))), axes=(0, 2)),
    record("argmax", A, reference=lambda x: x.argmax(1) * 1.0, axis=1),
    record("argmax", A, reference=lambda x: x.argmax().reshape(1) * 1.0),
    record("argmin", A, reference=lambda x: x.argmin(-1)[..., None] * 1.0, axis=-1, keepdims=True),
    record("argmax_channel", A, reference=lambda x: x.argmax(1) * 1.0),
    record("Reshape", A, reference=lambda x: x.reshape(6, 4), shape=(-1, 4)),
    record("Reshape", A, reference=lambda x: x.reshape(2, 12), shape=(0, -1)),
    record("Reshape", A, reference=lambda x: x.reshape(6, 4), shape=(-3, 0)),
    record("Reshape", A, reference=lambda x: x.reshape(1, 2, 3, 4), shape=(-4, 1, 2, -2)),
    record("Reshape", A, reference=lambda x: x.reshape(2, 3, 2, 2), shape=(0, 0, -4, -1, 2)),
    record("Reshape", (10, 5, 4), reference=lambda x: x.reshape(50, 4), shape=(-1, 0), reverse=1),
    record("Reshape", (8, 3, 4), reference=lambda x: x.reshape(4, 2, 3, 4), shape=(-4, -1, 2, 0, 0),
           reverse=True),
    record("Reshape", A, reference=lambda x: x.reshape(2, 12), target_shape=(0, 12)),
    record("Reshape", A, reference=lambda x: x.reshape(2, 12), target_shape=(0, 0),
           keep_highest=True),
    record("Flatten", A, reference=lambda x: x.reshape(2, 12)),
    record("Flatten", (3,), reference=lambda x: x.reshape(3, 1)),
    record("expand_dims", A, reference=lambda x: x[:, :, None], axis=2),
    record("expand_dims", A, reference=lambda x: x[..., None], axis=-1),
    record("squeeze", (1, 2, 1), reference=lambda x: x.reshape(2)),
    record("squeeze", (1, 2, 1), reference=lambda x: x[0], axis=0),
    record("squeeze", (1, 1), reference=lambda x: x.reshape(1)),
    record("reshape_like", (6, 4), A, reference=lambda x, y: x.reshape(A), differentiable=(0,)),
    record("reshape_like", (30, 7), (15, 2, 4), reference=lambda x, y: x.reshape(15, 2, 7),
           lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2, differentiable=(0,)),
    record("transpose", A, reference=lambda x: x.T),
    record("transpose", A, reference=lambda x: x.transpose(1, 2, 0), axes=(1, 2, 0)),
    record("SwapAxis", A, reference=lambda x: x.swapaxes(0, 2), dim1=0, dim2=-1),
    record("reverse", A, reference=lambda x: x[::-1, :, ::-1], axis=(0, 2)),
    record("slice", A, reference=lambda x: x[:, 1:3], begin=(None, 1), end=(None, 3)),
    record("slice", A, reference=lambda x: x[0:1, ::-1, ::2], begin=(0, -1, None),
           end=(1, None, None), step=(1, -1, 2)),
    record("slice", A, reference=lambda x: x[:5, 1:9], begin=(0, 1), end=(5, 9)),
    record("slice", A, reference=lambda x: x[1:1], begin=(1,), end=(1,)),
    record("slice_axis", A, reference=lambda x: x[:, :, 1:3], axis=-1, begin=-3, end=-1),
    record("slice_axis", A, reference=lambda x: x[1:], axis=0, begin=1, end=None),
    record("slice_like", A, (1, 2, 2), reference=lambda x, y: x[:1, :2, :2], differentiable=(0,)),
    record("slice_like", A, (1, 2), reference=lambda x, y: x[:1, :2], axes=(0, 1),
           differentiable=(0,)),
    record("tile", (2, 3), reference=lambda x: np.tile(x, (2, 1, 2)), reps=(2, 1, 2)),
    record("tile", A, reference=lambda x: np.tile(x, 2), reps=(2,)),
    record("repeat", (2, 2), reference=lambda x: np.repeat(x, 2), repeats=2),
    record("repeat", (2, 2), reference=lambda x: np.repeat(x, 3, 0), repeats=3, axis=0),
    record("repeat", (2, 2), reference=lambda x: np.zeros(0), repeats=0),
    record("broadcast_to", (1, 3, 1), reference=lambda x: np.broadcast_to(x, A), shape=(2, 0, 4)),
    record("broadcast_axis", (1, 3, 1), reference=lambda x: np.broadcast_to(x, A), axis=(0, 2),
           size=(2, 4)),
    record("broadcast_like", (1, 3, 1), A, reference=lambda x, y: np.broadcast_to(x, A),
           differentiable=(0,)),
    record("broadcast_like", (1, 3), (2, 3), reference=lambda x, y: np.broadcast_to(x, (2, 3)),
           rhs_axes=(1,), differentiable=(0,)),
    record("broadcast_like", (1, 3), (5, 6), reference=lambda x, y: np.broadcast_to(x, (6, 3)),
           lhs_axes=(0,), rhs_axes=(-1,), differentiable=(0,)),
    record("Concat", (2, 1), (2, 3), reference=lambda a, b: np.hstack([a, b]), num_args=2),
    record("Concat", (2, 3), reference=lambda a: a, num_args=1),
    record("Concat", A, A, A, reference=lambda *x: np.concatenate(x, -1), num_args=3, dim=-1),
    record("stack", (2, 3), (2, 3), reference=lambda *x: np.stack(x), num_args=2),
    record("stack", (2, 3), (2, 3), reference=lambda *x: np.stack(x, -1), num_args=2, axis=-1),
    record("SliceChannel", A, reference=lambda x: np.split(x, 3, 1), num_outputs=3),
    record("SliceChannel", A, reference=lambda x: [p[:, 0] for p in np.split(x, 3, 1)],
           num_outputs=3, squeeze_axis=True),
    record("_split_v2", A, reference=lambda x: np.split(x, [1, 3], 2), axis=2, indices=(0, 1, 3)),
    record("_split_v2", A, reference=lambda x: np.split(x, 3, 1), indices=(), sections=3),
    record("_zeros", reference=lambda: np.zeros((2, 3)), shape=(2, 3), dtype="float64"),
    record("_ones", reference=lambda: np.ones((2, 3), np.int32), shape=(2, 3), dtype="int32"),
    record("_full", reference=lambda: np.full(2, 2.5, np.float32), shape=2, value=2.5),
    record("_zeros_without_dtype", reference=lambda: np.zeros(2, np.float32), shape=2),
    record("_arange", reference=lambda: np.repeat(np.arange(0, 5, 1.5, np.float32), 2), start=0,
           stop=5, step=1.5, repeat=2),
    record("_arange", reference=lambda: np.arange(5, 0, -2, np.int32), start=5, stop=0, step=-2,
           dtype="int32"),
    record("_arange", reference=lambda: np.arange(3, dtype=np.float32), start=3),
    record("_eye", reference=lambda: np.eye(2, 3, 1, np.float32), N=2, M=3, k=1),
    record("_eye", reference=lambda: np.eye(3, dtype=np.int32), N=3, dtype="int32"),
    record("dot", (2, 3), (3, 4), reference=np.dot),
    record("dot", (3,), (3,), reference=lambda a, b: np.dot(a, b).reshape(1)),
    record("dot", A, (4, 5), reference=np.dot),
    record("dot", A, (4, 5, 2), reference=lambda a, b: np.tensordot(a, b, 1)),
    record("dot", (4, 2, 3), (5, 4), transpose_a=True, transpose_b=True,
           reference=lambda a, b: np.einsum("kab,ck->abc", a, b)),
    record("batch_dot", (2, 3, 4), (2, 4, 5), reference=np.matmul),
    record("batch_dot", (2, 3, 4, 3), (2, 3, 5, 4), transpose_a=True, transpose_b=True,
           reference=lambda a, b: a.swapaxes(-1, -2) @ b.swapaxes(-1, -2)),
    record("depth_to_space", (1, 4, 2, 3), block_size=2, reference=lambda x:
           x.reshape(1, 2, 2, 1, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 4, 6)),
    record("space_to_depth", (1, 1, 4, 6), block_size=2, reference=lambda x:
           x.reshape(1, 1, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 2, 3)),
    record("_slice_assign", (4, 5), (2, 3), reference=assigned, begin=(0, 4), end=(3, None),
           step=(2, -2)),
    record("_slice_assign_scalar", (4, 5), reference=lambda x: assigned(x, 7.0), begin=(0, 4),
           end=(3, None), step=(2, -2), scalar=7),
    record("Pad", (1, 2, 2, 3), reference=lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 1)],
           constant_values=5), mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 0, 1),
           constant_value=5),
    record("Pad", (1, 2, 2, 3), reference=lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 1)],
           "edge"), mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 0, 1)),
    record("Pad", (1, 2, 3, 3), reference=lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 1)],
           "reflect"), mode="reflect", pad_width=(0, 0, 0, 0, 1, 2, 0, 1)),
]  # fmt: skip


@pytest.mark.parametrize("example", RECORDS, ids=str)
def test_against_numpy(example):
    check(
        example.op(),
        example.arrays(),
        example.reference,
        differentiable=example.differentiable,
    )


def test_nan_counts_only_where_it_should():
    x = np.array([[1, np.nan, 3], [4, 5, 6]])
    for name, expected in (("sum", np.nan), ("nansum", 4), ("nanprod", 3), ("max", np.nan)):
        assert np.array_equal(forward(find(name)(axis=1), [x])[0][0], expected, equal_nan=True)
    (grad,) = backward(find("nansum")(axis=1), [x], [np.ones(2)])
    np.testing.assert_array_equal(grad, [[1, 0, 1], [1, 1, 1]])
    np.testing.assert_array_equal(forward(find("argmax")(axis=1), [x])[0], [1, 2])


def test_all_ties_get_the_gradient_of_an_extreme():
    (grad,) = backward(find("max")(axis=1), [np.array([[1.0, 3, 3]])], [np.ones(1)])
    np.testing.assert_array_equal(grad, [[0, 1, 1]])


def test_the_mean_of_integers_is_cut_off():
    (y,) = forward(find("mean")(), [np.array([7, -7, 7, -7, 3], np.int32)])
    assert (y.dtype, y.tolist()) == (np.int32, [0])


@pytest.mark.parametrize(
    ("name", "params", "shapes", "says"),
    [
        ("sum", {"axis": (0, 0)}, [A], "expected each axis once"),
        ("sum", {"axis": 3}, [A], "an axis of 3 axes, got 3"),
        ("Reshape", {"shape": (5, 5)}, [A], r"shape \(5, 5\), got \(2, 3, 4\), 24 elements"),
        ("Reshape", {"shape": (-1, -1)}, [A], "at most one -1"),
        ("Reshape", {"shape": (0, 0, 0, 0)}, [A], "codes for as many axes"),
        ("Reshape", {"shape": (-4, 2, 2, -2)}, [A], "a split of size 2"),
        ("Reshape", {"shape": (-5,)}, [A], "numbers from -4 on"),
        ("squeeze", {"axis": 0}, [A], "size 1 along axes"),
        ("transpose", {"axes": (0, 0, 1)}, [A], "each of 3 axes once"),
        ("slice_axis", {"axis": 1, "begin": 0, "end": 9}, [A], "a part of the 3 elements"),
        ("slice_axis", {"axis": 1, "begin": 2, "end": 2}, [A], "a part of the 3 elements"),
        ("slice_like", {}, [A, (9, 3, 4)], "'shape_like'"),
        ("broadcast_to", {"shape": (2, 3)}, [(3,)], "2 axes"),
        ("broadcast_to", {"shape": (4, 3)}, [(2, 3)], r"stretches to \(4, 3\), got \(2, 3\)"),
        ("broadcast_axis", {"axis": 0, "size": 4}, [(2, 3)], "stretches to"),
        ("Concat", {"num_args": 2}, [A, (2, 2, 5)], "'arg1'"),
        ("SliceChannel", {"num_outputs": 2}, [A], "a multiple of 2 along axis 1"),
        ("SliceChannel", {"num_outputs": 2, "axis": 2, "squeeze_axis": 1}, [A], "size 2 along"),
        ("dot", {}, [(2, 3), (4, 5)], "'rhs': expected size 3"),
        ("batch_dot", {}, [(2, 3, 4), (2, 5, 6)], "'rhs'"),
        ("Pad", {"mode": "reflect", "pad_width": (0, 0, 3, 0)}, [(2, 3)], "above pad_width"),
    ],
)
def test_shapes_that_do_not_fit_are_named(name, params, shapes, says):
    with pytest.raises(ShapeError, match=f"{name}: argument .*{says}"):
        find(name)(**params).infer_shape(shapes)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("slice", {"begin": (0,), "end": (2,), "step": (0,)}),
        ("slice", {"begin": (0, 1), "end": (2,)}),
        ("broadcast_axis", {"axis": (0, 1), "size": (2,)}),
        ("tile", {"reps": (0,)}),
        ("_arange", {"start": 0, "stop": 1, "step": 0}),
        ("Pad", {"mode": "constant", "pad_width": (0, 0, 1)}),
        ("_split_v2", {"indices": ()}),
    ],
)
def test_parameters_that_do_not_fit_are_refused(name, params):
    with pytest.raises(ParamError, match=f"{name}: argument"):
        find(name)(**params)


@pytest.mark.parametrize(
    ("name", "params", "ins", "outs", "expected"),
    [
        ("transpose", {"axes": (1, 0)}, [None], [(2, 3)], [(3, 2)]),
        ("SwapAxis", {"dim1": 0, "dim2": 1}, [None], [(2, 3)], [(3, 2)]),
        ("Flatten", {}, [(0, 3, 4)], [(2, 12)], [(2, 3, 4)]),
        ("Reshape", {"shape": (-1, 12)}, [(0, 3, 4)], [(2, 12)], [(2, 3, 4)]),
        ("expand_dims", {"axis": 1}, [(0, 3)], [(2, 1, 3)], [(2, 3)]),
        ("Concat", {"num_args": 2}, [(2, 3), (0, 0)], [(2, 7)], [(2, 3), (2, 4)]),
        ("stack", {"num_args": 2}, [(2, 0), (0, 3)], None, [(2, 3), (2, 3)]),
        ("batch_dot", {}, [(2, 3, 4), (0, 0, 5)], None, [(2, 3, 4), (2, 4, 5)]),
    ],
)
def test_inputs_follow_from_what_else_is_known(name, params, ins, outs, expected):
    assert find(name)(**params).infer_shape(ins, outs)[0] == expected


def test_a_shape_left_open_comes_from_the_graph():
    zeros = find("_zeros")(shape=(0, 3))
    assert zeros.infer_shape([])[1] == [(0, 3)]
    assert zeros.infer_shape([], [(2, 3)])[1] == [(2, 3)]
    assert zeros.apply([], out_shapes=[(2, 3)])[0].shape == (2, 3)
    with pytest.raises(GnomonError, match="_full: argument 'shape'"):
        find("_full")(value=1).apply([])
    arange = find("_arange")(start=0, infer_range=True)
    assert arange.apply([], out_shapes=[(4,)])[0].shape == (4,)
