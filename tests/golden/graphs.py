"""Symbols composed alike by the real library and by gnomon, and questions to ask of them."""

from __future__ import annotations

from typing import Any

from golden import nets

GRAPHS: dict[str, Any] = {}
SHAPES: dict[str, list[dict[str, tuple[int, ...]]]] = {}
TYPES: dict[str, list[dict[str, str]]] = {}


def graph(*shapes: dict[str, tuple[int, ...]], types: tuple[dict[str, str], ...] = ()) -> Any:
    """Enter a function of `mx` that composes a symbol, with the shapes and types to infer from."""

    def enter(function: Any) -> Any:
        GRAPHS[function.__name__] = function
        SHAPES[function.__name__] = list(shapes)
        TYPES[function.__name__] = list(types)
        return function

    return enter


@graph({"data": (8, 784)}, {"fc1_weight": (128, 20)}, {"data": (0, 5)}, {"data": (3, 2, 2)}, {})
def mlp(mx: Any) -> Any:
    """Forward inference, and what can be told from a weight."""
    return nets.mlp(mx.sym)


@graph({"data": (4, 1, 28, 28)}, {"data": (4, 1, 8, 8)}, {"data": (4, 0, 28, 28)})
def lenet(mx: Any) -> Any:
    """Also a picture too small for it."""
    return nets.lenet(mx.sym)


@graph({"data": (5, 2, 6, 5)}, {"data": (0, 2, 6, 5)})
def branches(mx: Any) -> Any:
    """A group, auxiliary states."""
    return nets.branches(mx.sym)


@graph(
    {"data": (2, 3)},
    types=({"data": "float16"}, {"data": "float64"}, {}, {"fullyconnected0_bias": "float64"}),
)
def unnamed(mx: Any) -> Any:
    """Names that the library gives, counted by operator."""
    x = mx.sym.Variable("data")
    for _ in range(2):
        x = mx.sym.FullyConnected(x, num_hidden=4)
        x = mx.sym.Activation(x, act_type="tanh")
    return mx.sym.Concat(x, x + 1, -x, mx.sym.BlockGrad(x))


@graph({"a": (2, 3)}, {"b": (2, 3)}, {"a": (2, 0), "b": (0, 3)}, types=({"b": "float64"},))
def arithmetic(mx: Any) -> Any:
    """Python's operators; shapes and types that go backwards."""
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    c = (a + b) * 2 - 3 / b + a**2 - (1 - a) / 4
    return c * (a > b) + (a == 1) - mx.sym.maximum(a, b)


@graph({"data": (2, 3, 4)}, types=({"data": "int32"}, {"data": "float16"}))
def several(mx: Any) -> Any:
    """Operators with several outputs, one of them taken."""
    parts = mx.sym.SliceChannel(mx.sym.Variable("data"), num_outputs=3, axis=1, name="split")
    return mx.sym.Group([parts[0], mx.sym.sum(parts[2], axis=1, name="total"), parts[1]])


@graph({"x": (4, 3)}, types=({"x": "float16"}, {"x": "float64"}))
def normalised(mx: Any) -> Any:
    """Auxiliary states, attributes and an initializer on a variable."""
    w = mx.sym.Variable("w", shape=(5, 3), lr_mult=2.0, wd_mult=0.5, init=mx.init.One())
    x = mx.sym.FullyConnected(mx.sym.Variable("x"), weight=w, num_hidden=5, name="fc")
    with mx.AttrScope(ctx_group="stage2", __mood__="calm"):
        x = mx.sym.BatchNorm(x, name="bn", fix_gamma=False, eps=0.002)
    return mx.sym.SoftmaxOutput(x, name="softmax", attr={"__force__": "1"})


@graph({"data": (2, 3)}, {"data": (2, 3), "second_fc_bias": (7,)})
def composed(mx: Any) -> Any:
    """One symbol called with another as its data; a prefix."""
    with mx.name.Prefix("second_"):
        second = mx.sym.FullyConnected(mx.sym.Variable("data2"), num_hidden=2, name="fc")
    first = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="first")
    return second(data2=first, name="whole")


@graph({"data": (2, 3, 4, 5)}, {})
def shapely(mx: Any) -> Any:
    """Tuples, booleans, None and numbers as parameters."""
    x = mx.sym.Variable("data")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(1, 1), pool_type="avg", name="pool")
    x = mx.sym.transpose(x, axes=(0, 2, 3, 1), name="turn")
    x = mx.sym.slice_axis(x, axis=1, begin=0, end=None, name="cut")
    x = mx.sym.Reshape(x, shape=(0, -3, -1), name="flat")
    x = mx.sym.sum(x, axis=(1,), keepdims=True, name="sum")
    return mx.sym.clip(x, a_min=-1.5, a_max=1e-05, name="clip")


@graph({"data": (2, 5)}, types=({"data": "int32"}, {"data": "int32", "table_weight": "float16"}))
def embedded(mx: Any) -> Any:
    """Types that differ along the way."""
    x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=9, output_dim=4, name="table")
    x = mx.sym.argmax(mx.sym.sum(x, axis=2), axis=1)
    return mx.sym.one_hot(mx.sym.Cast(x, dtype="int32"), depth=5, dtype="float16")
