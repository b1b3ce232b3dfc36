"""Every translated operator: written, run by ONNX's own Python, read again, and run here."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gnomon as mx
from gnomon.onnx import table
from gnomon.ops import registry
from gnomon.symbol.apply import apply as make
from tests.onnx.roundtrip import check

sym = mx.sym
RNG = np.random.default_rng(7)
SETTINGS = settings(
    max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def reals(*shape: int, low: float = -2, high: float = 2) -> np.ndarray[Any, Any]:
    return RNG.uniform(low, high, shape).astype(np.float32)


def op(name: str, inputs: dict[str, Any], **params: Any) -> Any:
    """The symbol of one operator on variables of these names."""
    variables = [sym.var(n, dtype=a.dtype.name) for n, a in inputs.items()]
    return apply(name, variables, params)


def apply(name: str, variables: Any, params: Any, label: str = "node") -> Any:
    return make(sym.Symbol, name, name, variables, {}, params, label)


def holds(name: str, *arrays: Any, **params: Any) -> Any:
    """Check one operator on arrays, as inputs of the model."""
    how = {k: params.pop(k) for k in ("oracle", "tolerance", "again") if k in params}
    inputs = {f"x{k}": a for k, a in enumerate(arrays)}
    return check(op(name, inputs, **params), inputs, **how)


def weighted(name: str, data: Any, *weights: Any, **params: Any) -> Any:
    """Check one operator on data, with the other arrays as parameters of the model."""
    how = {k: params.pop(k) for k in ("oracle", "tolerance") if k in params}
    arrays = {f"x{k}": a for k, a in enumerate((data, *weights))}
    net = op(name, arrays, **params)
    return check(net, {"x0": data}, {n: a for n, a in arrays.items() if n != "x0"}, **how)


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


def indices(high: int, *shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return RNG.integers(0, high, shape).astype(dtype)


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


# layers ----------------------------------------------------------------------------------------


@SETTINGS
@given(st.booleans(), st.booleans(), st.integers(2, 4))
def test_fully_connected(flatten, bias, rank):
    shape = (3, 2, 4, 2)[:rank]
    inner = int(np.prod(shape[1:])) if flatten else shape[-1]
    weights = [reals(5, inner), *([reals(5)] if bias else [])]
    weighted(
        "FullyConnected", reals(*shape), *weights, num_hidden=5, no_bias=not bias, flatten=flatten
    )


@st.composite
def convolution(draw):
    n = draw(st.integers(1, 3))
    pick = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(n))  # noqa: E731
    return (
        n,
        pick(1, 3),
        pick(1, 2),
        pick(0, 1),
        pick(1, 2),
        draw(st.sampled_from([1, 2])),
        draw(st.booleans()),
    )


@SETTINGS
@given(convolution())
def test_convolution(case):
    n, kernel, stride, pad, dilate, group, bias = case
    weights = [reals(4, 2 // group, *kernel), *([reals(4)] if bias else [])]
    how = {"kernel": kernel, "stride": stride, "pad": pad, "dilate": dilate, "num_group": group}
    weighted("Convolution", reals(2, 2, *(7,) * n), *weights, num_filter=4, no_bias=not bias, **how)


@SETTINGS
@given(convolution())
def test_deconvolution(case):
    n, kernel, stride, _, _, group, bias = case
    weights = [reals(4, 4 // group, *kernel), *([reals(4)] if bias else [])]
    how = {"kernel": kernel, "stride": stride, "num_group": group, "no_bias": not bias}
    oracle = {"oracle": None} if group > 1 else {}  # ONNX's own Python knows no groups
    weighted("Deconvolution", reals(2, 4, *(4,) * n), *weights, num_filter=4, **how, **oracle)


def test_convolution_of_other_layouts():
    how = {"kernel": (3, 3), "num_filter": 4, "layout": "NHWC"}
    weighted("Convolution", reals(1, 6, 6, 3), reals(4, 3, 3, 3), reals(4), **how)
    more = {"target_shape": (7, 8), "stride": (2, 2)}
    weighted(
        "Deconvolution", reals(1, 2, 4, 4), reals(2, 3, 3, 3), kernel=(3, 3), num_filter=3, **more
    )
    more = {"pad": (1, 1), "adj": (1, 0), "stride": (2, 2)}
    weighted(
        "Deconvolution", reals(1, 2, 4, 4), reals(2, 3, 3, 3), kernel=(3, 3), num_filter=3, **more
    )


@st.composite
def pooling(draw):
    n = draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(2, 3)) for _ in range(n))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(n))
    pad = tuple(draw(st.integers(0, 1)) for _ in range(n))
    return n, {"kernel": kernel, "stride": stride, "pad": pad}


@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize("kind", ["max", "avg", "mean", "sum", "lp"])
@SETTINGS
@given(pooling())
def test_pooling(kind, convention, case):
    n, how = case
    how["pool_type"] = "avg" if kind == "mean" else kind
    if kind == "mean":
        how["count_include_pad"] = False
    if kind == "lp":
        how["p_value"] = 2
    oracle = {} if convention == "valid" and kind != "lp" else {"oracle": None}
    holds("Pooling", reals(2, 2, *(6,) * n), pooling_convention=convention, **how, **oracle)


def test_pooling_of_everything():
    for kind in ("max", "avg", "sum"):
        holds("Pooling", reals(2, 3, 4, 5), global_pool=True, pool_type=kind, kernel=(1, 1))
    holds(
        "Pooling",
        reals(2, 3, 5),
        pool_type="max",
        kernel=(2,),
        stride=(2,),
        pooling_convention="same",
    )
    holds("Pooling_v1", reals(1, 2, 5, 5), pool_type="avg", kernel=(2, 2))
    holds("Pooling", reals(2, 5, 5, 3), pool_type="max", kernel=(2, 2), layout="NHWC")
    holds("_contrib_AdaptiveAvgPooling2D", reals(1, 2, 6, 5), output_size=(1, 1))
    holds("_contrib_AdaptiveAvgPooling2D", reals(1, 2, 6, 4), output_size=(3, 2))
    holds("_contrib_AdaptiveAvgPooling2D", reals(1, 2, 7, 5), output_size=(3, 2))


@pytest.mark.parametrize("kind", ["relu", "sigmoid", "softrelu", "tanh", "softsign"])
def test_activations(kind):
    holds("Activation", reals(2, 3), act_type=kind)


@pytest.mark.parametrize("kind", ["leaky", "elu", "selu", "gelu", "rrelu"])
def test_rectifiers(kind):
    holds("LeakyReLU", reals(2, 3, 4), act_type=kind, slope=0.3)


def test_rectifiers_with_weights():
    weighted("LeakyReLU", reals(2, 3, 4), reals(3), act_type="prelu")
    weighted("LeakyReLU", reals(2, 3), reals(1), act_type="prelu")


def test_softmax():
    x, lengths = reals(2, 4, 3), np.array([[1, 2, 3], [4, 1, 2]], np.int32)
    for name in ("softmax", "softmin", "log_softmax"):
        holds(name, x, axis=1)
        holds(name, x, temperature=2.0)
    holds("softmax", x, lengths, axis=1, use_length=True)
    holds("softmax", x, dtype="float64")
    holds("SoftmaxActivation", x, mode="channel")
    holds("SoftmaxActivation", reals(2, 3))


@pytest.mark.parametrize(
    "name",
    ["LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput", "SVMOutput"],
)
def test_outputs(name):
    x = reals(3, 4)
    label = reals(3) if name == "SVMOutput" else reals(3, 4)
    labelled(name, x, label)


def labelled(name: str, x: Any, label: Any, **params: Any) -> None:
    net = apply(name, [sym.var("x"), sym.var("label")], params)
    check(net, {"x": x, "label": label}, shapes=[x.shape])


def test_softmax_outputs():
    labelled("SoftmaxOutput", reals(3, 4), reals(3))
    labelled("SoftmaxOutput", reals(3, 4, 2), reals(3, 2), multi_output=True)
    labelled("SoftmaxOutput", reals(3, 4, 2), reals(3, 4), preserve_shape=True)


# normalizations --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["BatchNorm", "_contrib_BatchNormWithReLU"])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("fix_gamma", [False, True])
def test_batch_norm(name, axis, fix_gamma):
    x = reals(2, 3, 4, 5)
    c = x.shape[axis]
    states = [reals(c), reals(c), reals(c), reals(c, low=0.5)]
    weighted(name, x, *states, axis=axis, fix_gamma=fix_gamma, eps=1e-3)


def test_normalizations():
    x = reals(2, 4, 3, 3)
    weighted("LayerNorm", x, reals(3), reals(3))
    weighted("LayerNorm", x, reals(4), reals(4), axis=1)
    weighted("LayerNorm", x, reals(4), reals(4), axis=1, output_mean_var=True)
    weighted("InstanceNorm", x, reals(4), reals(4))
    weighted("GroupNorm", x, reals(2), reals(2), num_groups=2)
    weighted("_contrib_SyncBatchNorm", x, reals(4), reals(4), reals(4), reals(4, low=0.5), key="a")
    for mode in ("instance", "channel", "spatial"):
        holds("L2Normalization", x, mode=mode)
    holds("LRN", reals(4, 4, 3, 3), nsize=3, alpha=0.5)


# products --------------------------------------------------------------------------------------


def test_products():
    holds("dot", reals(2, 3), reals(3, 4))
    holds("dot", reals(3, 2), reals(4, 3), transpose_a=True, transpose_b=True)
    holds("dot", reals(2, 3, 4), reals(4, 3, 2))
    holds("dot", reals(3), reals(3))
    holds("batch_dot", reals(2, 3, 4), reals(2, 5, 4), transpose_b=True)
    holds("batch_dot", reals(2, 2, 4, 3), reals(2, 2, 4, 5), transpose_a=True)
    holds("_linalg_gemm2", reals(2, 3, 4), reals(2, 4, 5), alpha=0.5)
    holds("_linalg_gemm", reals(2, 3, 4), reals(2, 4, 5), reals(2, 3, 5), beta=0.5, alpha=2.0)
    holds("_linalg_det", reals(2, 3, 3))
    holds("_linalg_det", reals(3, 3))
    holds("khatri_rao", reals(2, 3), reals(4, 3), num_args=2)


def test_attention():
    qkv, kv, q = reals(5, 2, 24), reals(4, 2, 16), reals(5, 2, 8)
    scores, cross = reals(4, 5, 5), reals(4, 5, 4)
    holds("_contrib_interleaved_matmul_selfatt_qk", qkv, heads=2)
    holds("_contrib_interleaved_matmul_selfatt_valatt", qkv, scores, heads=2)
    holds("_contrib_interleaved_matmul_encdec_qk", q, kv, heads=2)
    holds("_contrib_interleaved_matmul_encdec_valatt", kv, cross, heads=2)


# images ----------------------------------------------------------------------------------------


def test_images():
    x = reals(2, 3, 4, 5)
    holds("UpSampling", x, scale=2, sample_type="nearest", num_args=1)
    holds("UpSampling", x, reals(2, 1, 8, 10), scale=4, sample_type="nearest", num_args=2)
    how = {"sample_type": "bilinear", "num_filter": 3, "num_args": 2}
    weighted("UpSampling", x, reals(3, 1, 4, 4), scale=2, **how)
    for corners in (True, False):
        holds("_contrib_BilinearResize2D", x, height=7, width=3, align_corners=corners)
    holds("_contrib_BilinearResize2D", x, reals(2, 3, 6, 6), mode="like")
    grid = reals(2, 2, 3, 3, low=-1.2, high=1.2)
    holds("BilinearSampler", x, grid, oracle=None)
    theta = np.tile(np.array([1, 0.2, 0.1, -0.1, 0.9, 0], np.float32), (2, 1))
    holds("GridGenerator", theta, transform_type="affine", target_shape=(3, 4))
    how = {"transform_type": "affine", "sampler_type": "bilinear", "target_shape": (3, 4)}
    holds("SpatialTransformer", x, theta, oracle=None, **how)


ROIS = np.array([[0, 0, 0, 4, 4], [1, 1, 1, 3, 3]], np.float32)


def test_regions():
    x = reals(2, 3, 6, 6)
    for aligned in (False, True):
        how = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sample_ratio": 2, "aligned": aligned}
        holds("_contrib_ROIAlign", x, ROIS, **how)
    holds("ROIPooling", x, ROIS, pooled_size=(2, 2), spatial_scale=1.0, oracle=None)


def test_boxes():
    holds("_contrib_MultiBoxPrior", reals(1, 2, 3, 4), sizes=(0.5, 0.2), ratios=(1, 2))
    for form in ("center", "corner"):
        anchors = np.sort(reals(1, 5, 4, low=0, high=1), -1)
        holds("_contrib_box_decode", reals(2, 5, 4), anchors, format=form, clip=0.5, std0=0.1)


def test_suppression():
    rows = np.concatenate([indices(2, 2, 9, 1), reals(2, 9, 1, low=0, high=1)], -1)
    corners = reals(2, 9, 2, low=0, high=2)
    rows = np.concatenate([rows, corners, corners + reals(2, 9, 2, low=0.5, high=1)], -1)
    how = {"coord_start": 2, "score_index": 1, "again": False}
    for more in (
        {},
        {"id_index": 0},
        {"topk": 4, "valid_thresh": 0.3},
        {"background_id": 0, "id_index": 0},
    ):
        holds("_contrib_box_nms", rows, overlap_thresh=0.3, **how, **more)


# recurrent layers ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_layers(mode, both, layers):
    size, channels, d = 4, 3, 1 + both
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    inputs = [channels if k == 0 else size * d for k in range(layers)]
    count = sum(d * gates * size * (i + size + 2) for i in inputs)
    x, states = (
        reals(5, 2, channels),
        [reals(layers * d, 2, size) for _ in range(1 + (mode == "lstm"))],
    )
    arrays = {"x": x, "w": reals(count, low=-0.5, high=0.5), "h": states[0]}
    arrays |= {"c": states[1]} if mode == "lstm" else {}
    how = {"mode": mode, "state_size": size, "num_layers": layers, "bidirectional": both}
    net = op("RNN", arrays, state_outputs=True, **how)
    weights = {"w": arrays.pop("w")}
    # ONNX's own Python has one direction, and no relu
    oracle = {"oracle": None} if both or mode == "rnn_relu" else {}
    check(net, arrays, weights, **oracle)


def test_every_translated_operator_is_in_this_file():
    text = inspect.getsource(inspect.getmodule(test_recurrent_layers))  # type: ignore[arg-type]
    names = {registry.find(n).name for n in table.exports() if registry.has(n)}
    forms = {f"broadcast_{w}" for w in BINARY + COMPARE + LOGIC} | {f"_{w}_scalar" for w in SCALAR}
    forms |= {PLAIN.get(w, f"_{w}") for w in BINARY + COMPARE + LOGIC}
    # made by functions of other names, as sym.zeros
    elsewhere = {"_zeros", "_ones", "_linspace", "_eye"}
    missing = [n for n in sorted(names - forms - elsewhere) if n not in text]
    assert missing == []
