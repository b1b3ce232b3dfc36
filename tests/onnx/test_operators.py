"""Every translated operator: written, run by ONNX's own Python, read again, and run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gnomon as mx
from gnomon.onnx import table
from gnomon.ops import registry
from tests.onnx.roundtrip import RNG, SETTINGS, apply, check, holds, indices, reals, weighted

sym = mx.sym
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
DOMAIN = {
    "arccos": (-0.9, 0.9), "arcsin": (-0.9, 0.9), "arctanh": (-0.9, 0.9), "arccosh": (1.1, 3),
    "log": (0.1, 3), "log2": (0.1, 3), "log10": (0.1, 3), "log1p": (-0.5, 3), "sqrt": (0.1, 3),
    "rsqrt": (0.1, 3), "reciprocal": (0.5, 3), "rcbrt": (0.5, 3), "tan": (-1, 1),
}  # fmt: skip
UNARY = """abs arccos arccosh arcsin arcsinh arctan arctanh ceil cos cosh erf exp floor log negative
reciprocal relu sigmoid sign sin sinh softsign sqrt tan tanh BlockGrad _copy make_loss square rsqrt
cbrt rcbrt log2 log10 log1p expm1 degrees radians fix trunc round rint logical_not
_contrib_div_sqrt_dim zeros_like ones_like shape_array size_array hard_sigmoid smooth_l1
_contrib_quadratic Flatten Dropout MakeLoss _contrib_gradientmultiplier""".split()
PARAMS = {"_contrib_quadratic": {"a": 1.5, "b": -2.0, "c": 0.5}}
BINARY = "add sub mul div power maximum minimum mod hypot".split()
COMPARE = "equal not_equal greater greater_equal lesser lesser_equal".split()
LOGIC = "logical_and logical_or logical_xor".split()


@SETTINGS
@given(shape=SHAPES)
def test_unary(shape):
    inputs, made = {}, []
    for k, name in enumerate(UNARY):
        low, high = DOMAIN.get(name, (-2, 2))
        inputs[f"x{k}"] = reals(*shape, low=low, high=high)
        made.append(apply(name, [sym.var(f"x{k}")], PARAMS.get(name, {}), f"n{k}"))
    check(sym.Group(made), inputs)


def operands(word: str, *shapes: Any) -> list[np.ndarray[Any, Any]]:
    if word in (*COMPARE, *LOGIC):
        return [RNG.integers(-1, 2, s).astype(np.float32) for s in shapes]
    low = 0.5 if word in ("power", "div", "mod") else -2
    return [reals(*s, low=low) for s in shapes]


@st.composite
def stretched(draw):
    """Two shapes that go together, with axes of 1 in either."""
    shape = draw(SHAPES)
    masks = [draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape))) for _ in "ab"]
    return [tuple(1 if m else d for m, d in zip(mask, shape, strict=True)) for mask in masks]


PLAIN = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul", "div": "elemwise_div"}
WORDS = BINARY + COMPARE + LOGIC


def many(names: dict[str, str], *shapes: Any, **params: Any) -> None:
    """Check operators, each on operands that suit its word, in one network."""
    inputs, made = {}, []
    for k, (name, word) in enumerate(names.items()):
        given = {f"x{k}_{j}": a for j, a in enumerate(operands(word, *shapes))}
        made.append(apply(name, [sym.var(n) for n in given], params, f"n{k}"))
        inputs |= given
    check(sym.Group(made), inputs)


@SETTINGS
@given(shapes=stretched())
def test_binary(shapes):
    many({f"broadcast_{word}": word for word in WORDS}, *shapes)


@SETTINGS
@given(shape=SHAPES)
def test_binary_of_equal_shapes(shape):
    many({PLAIN.get(word, f"_{word}"): word for word in WORDS}, shape, shape)


SCALAR = """plus minus rminus mul div rdiv power rpower maximum minimum mod rmod hypot equal
not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor""".split()


@SETTINGS
@given(shape=SHAPES, number=st.sampled_from([1.0, 2.0, 0.5, 3.0]))
def test_with_a_number(shape, number):
    plain = {"rdiv": "div", "rpower": "power", "rmod": "mod"}
    many({f"_{word}_scalar": plain.get(word, word) for word in SCALAR}, shape, scalar=number)


@pytest.mark.parametrize("name", ["add_n", "_grad_add"])
def test_sums(name):
    given = {"num_args": 2} if name == "add_n" else {}
    holds(name, reals(2, 3), reals(2, 3), **given)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8", "bool"])
def test_casts(dtype):
    holds("Cast", RNG.integers(0, 4, (2, 3)).astype(np.float32), dtype=dtype)
    holds("amp_cast", reals(2, 3), dtype="float16", tolerance=1e-2)


def test_choices():
    mask = RNG.integers(0, 2, (3, 4)).astype(np.float32)
    holds("where", mask, reals(3, 4), reals(3, 4))
    holds("where", mask[:, 0].copy(), reals(3, 4), reals(3, 4))
    holds("clip", reals(3, 4), a_min=-0.5, a_max=1.0)


# reductions ------------------------------------------------------------------------------------


@st.composite
def reduction(draw):
    shape = draw(SHAPES)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=len(shape)))
    return shape, tuple(axes), draw(st.booleans()), draw(st.booleans())


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "_square_sum", "norm"])
@SETTINGS
@given(case=reduction())
def test_reductions(name, case):
    shape, axes, keep, exclude = case
    given = {"exclude": exclude} if name != "norm" and len(axes) < len(shape) else {}
    if name == "norm":
        given["ord"] = 1 if exclude else 2
    holds(name, reals(*shape), axis=axes, keepdims=keep, **given)


@SETTINGS
@given(case=reduction())
def test_moments(case):
    shape, axes, keep, _ = case
    holds("moments", reals(*shape), axes=axes, keepdims=keep)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@SETTINGS
@given(case=reduction())
def test_positions(name, case):
    shape, axes, keep, _ = case
    holds(name, reals(*shape), axis=axes[0] if axes else None, keepdims=keep)


def test_positions_of_channels():
    holds("argmax_channel", reals(2, 5, 3))


@pytest.mark.parametrize("ascend", [False, True])
def test_order(ascend):
    x = RNG.permutation(24).astype(np.float32).reshape(4, 6)
    holds("sort", x, axis=0, is_ascend=ascend)
    holds("argsort", x, is_ascend=ascend)
    for kind in ("value", "indices", "both"):
        holds("topk", x, k=3, axis=1, ret_typ=kind, is_ascend=ascend)
    holds("topk", x, k=2, axis=None)
    holds("_np_cumsum", x, axis=1)
    holds("_np_cumsum", x)


# shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "codes"),
    [
        ((2, 3, 4), (0, -1)), ((2, 3, 4), (-1,)), ((2, 3, 4), (-3, 0)),
        ((2, 3, 4), (0, -4, 3, 1, -2)),
        ((2, 3, 4), (-2, 1)), ((6, 4), (-4, 2, -1, 0)), ((2, 3, 4), (4, 0, 2)),
    ],
)  # fmt: skip
def test_reshape(shape, codes):
    holds("Reshape", reals(*shape), shape=codes)


def test_shapes():
    x = reals(2, 3, 4)
    holds("squeeze", reals(2, 1, 3, 1))
    holds("squeeze", reals(2, 1, 3, 1), axis=(1,))
    holds("squeeze", reals(1, 1))
    holds("expand_dims", x, axis=-1)
    holds("reshape_like", x, reals(4, 6))
    holds("reshape_like", x, reals(6, 2), lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=1)
    holds("transpose", x)
    holds("transpose", x, axes=(1, 0, 2))
    holds("SwapAxis", x, dim1=0, dim2=2)
    holds("Concat", x, x, dim=1, num_args=2)
    holds("stack", x, x, axis=-1, num_args=2)
    holds("_rnn_param_concat", reals(3), reals(4), dim=0, num_args=2)
    holds("SliceChannel", x, num_outputs=2, axis=2)
    holds("SliceChannel", x, num_outputs=3, axis=1, squeeze_axis=True)
    holds("SliceChannel", reals(2, 1), num_outputs=1, axis=1, squeeze_axis=True)
    holds("_split_v2", x, indices=(0, 1, 3), axis=2)
    holds("_split_v2", x, indices=(), sections=2, axis=2)
    holds("slice", x, begin=(None, 1), end=(None, 3), step=(-1, 1))
    holds("slice", x, begin=(0, None, 3), end=(1, None, 0), step=(1, 1, -2))
    holds("slice_axis", x, axis=-1, begin=1, end=None)
    holds("slice_axis", x, axis=1, begin=-2, end=-1)
    holds("slice_like", x, reals(1, 2, 2))
    holds("slice_like", x, reals(1, 2, 2), axes=(-1,))
    holds("tile", x, reps=(2, 1))
    holds("tile", x, reps=(2, 1, 1, 2))
    holds("repeat", x, repeats=2, axis=1)
    holds("repeat", x, repeats=2)
    holds("broadcast_to", reals(1, 3, 1), shape=(2, 0, 4))
    holds("broadcast_axis", reals(1, 3, 1), axis=(0, 2), size=(2, 4))
    holds("broadcast_like", reals(1, 3, 1), x)
    holds("reverse", x, axis=(0, 2))
    holds("depth_to_space", reals(2, 8, 3, 2), block_size=2)
    holds("space_to_depth", reals(2, 2, 4, 6), block_size=2)
    holds("Crop", reals(1, 2, 6, 6), h_w=(3, 4), offset=(1, 2), num_args=1)
    holds("Crop", reals(1, 2, 6, 6), reals(1, 1, 4, 2), center_crop=True, num_args=2)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode):
    width = (0, 0, 0, 0, 1, 2, 2, 1)
    more = {"constant_value": 1.5} if mode == "constant" else {}
    holds("Pad", reals(1, 2, 4, 5), mode=mode, pad_width=width, **more)


# creation --------------------------------------------------------------------------------------


def with_data(made: Any) -> Any:
    """A network of something that reads nothing, beside its data."""
    return sym.Group([made, sym.var("x") * 1.0])


def test_creation():
    x = {"x": reals(2, 3)}
    for made in (
        apply("_zeros_without_dtype", [], {"shape": (2,)}),
        sym.zeros((2, 3)),
        sym.ones((2,), dtype="int32"),
        sym.full((2, 2), 1.5),
        sym.arange(1, 7, 2, repeat=2),
        sym.linspace(0, 1, 5),
        sym.eye(3, 4, 1),
    ):
        check(with_data(made), x)
    holds("_contrib_arange_like", reals(2, 3), axis=1, start=1.0, step=0.5)
    holds("_contrib_arange_like", reals(2, 3))
    holds("_contrib_index_array", reals(2, 3))


def test_random_numbers():
    data = sym.var("x")
    for made in (
        apply("_random_uniform", [], {"low": 1, "high": 2, "shape": (4, 3)}),
        apply("_random_normal", [], {"loc": 5, "shape": (4, 3)}),
        apply("_random_uniform_like", [data], {"low": 1, "high": 2}),
        apply("_random_normal_like", [data], {"loc": 5}),
    ):
        check(sym.Group([made * 0, data * 1.0]), {"x": reals(4, 3)}, oracle=None)
    sure = np.array([[0, 1, 0], [0, 0, 1]], np.float32)
    holds("_sample_multinomial", sure, oracle=None)
    holds("_sample_multinomial", sure, shape=(4,), oracle=None)


# positions -------------------------------------------------------------------------------------


def test_positions_in_tables():
    table_ = reals(5, 3)
    weighted("Embedding", indices(5, 2, 4), table_, input_dim=5, output_dim=3)
    weighted("_contrib_SparseEmbedding", indices(5, 2, 4), table_, input_dim=5, output_dim=3)
    for mode in ("clip", "wrap"):
        holds("take", reals(3, 4, 2), indices(9, 2, 2) - 3, axis=1, mode=mode)
    holds("pick", reals(3, 4), indices(4, 3))
    holds("pick", reals(3, 4), indices(4, 3, 1), keepdims=True)
    holds("pick", reals(3, 4), indices(3, 4), axis=0)
    holds("batch_take", reals(3, 4), indices(4, 3, dtype="int32"))
    holds("gather_nd", reals(3, 4, 2), indices(3, 2, 5))
    holds("gather_nd", reals(3, 4), np.array([1, 2], np.float32))
    holds("scatter_nd", reals(5, 2), indices(3, 2, 5), shape=(3, 4, 2))
    holds(
        "_scatter_set_nd",
        reals(3, 4),
        reals(2),
        np.array([[0, 2], [1, 3]], np.float32),
        shape=(3, 4),
    )
    holds("one_hot", np.array([0, 3, 7, -1], np.float32), depth=4, on_value=2.0, off_value=-1.0)
    holds("diag", reals(3), k=1)
    holds("diag", reals(3, 5), k=-1)


def test_sequences():
    x, lengths = reals(4, 3, 2), np.array([1, 4, 2], np.float32)
    for name, more in (
        ("SequenceMask", {"value": -1.0}),
        ("SequenceLast", {}),
        ("SequenceReverse", {}),
    ):
        holds(name, x, lengths, use_sequence_length=True, **more)
        holds(name, x)
    holds("SequenceMask", reals(3, 4, 2), lengths, use_sequence_length=True, axis=1)
    holds("SequenceLast", reals(3, 4), lengths, use_sequence_length=True, axis=1)


def test_every_translated_operator_is_tested():
    text = "".join(p.read_text() for p in Path(__file__).parent.glob("test_*.py"))
    names = {registry.find(n).name for n in table.exports() if registry.has(n)}
    forms = {f"broadcast_{w}" for w in BINARY + COMPARE + LOGIC} | {f"_{w}_scalar" for w in SCALAR}
    forms |= {PLAIN.get(w, f"_{w}") for w in BINARY + COMPARE + LOGIC}
    # made by functions of other names, as sym.zeros
    elsewhere = {"_zeros", "_ones", "_linspace", "_eye"}
    missing = [n for n in sorted(names - forms - elsewhere) if n not in text]
    assert missing == []
