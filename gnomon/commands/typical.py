"""Typical work of every kind, small: what it compiles serves most programs.

A kernel depends on the structure of what is computed, not on its sizes. So those that programs need
first are mostly among these, whatever their networks are. A wheel carries them (`tools/carry.py`);
`gnomon cache warm` compiles them on a machine that the wheel was not built for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gnomon import autograd, gluon, initializer, shadow
from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.gluon import nn, rnn
from gnomon.io import NDArrayIter
from gnomon.module import Module
from gnomon.native.serve import binding, served
from gnomon.ndarray.lazy.materialize import native_wait
from gnomon.ndarray.lazy.native_pend import native_pend
from gnomon.ops import registry
from gnomon.ops.op import Op
from gnomon.recordio.parts import cut

BATCH, WIDTH, CLASSES = 8, 16, 3
STEPS = 4  # of training: recorded ones that come again become programs
SHAPES = (6,), (4, 5), (4, 4), (3, 4, 5), (3, 4, 2), (2, 3, 4, 5), (2, 3, 4, 5, 6)
OPTIMIZERS: dict[str, dict[str, Any]] = {"sgd": {"momentum": 0.9, "wd": 1e-4}, "adam": {}}
LAYERS = {"lstm": rnn.LSTM, "gru": rnn.GRU, "rnn": rnn.RNN}


# Arrays, one operator at a time


def arrays() -> None:
    """Operators, each on its own."""
    statements()
    for dtype, shape in itertools.product(("float32", "int32"), SHAPES):
        movements(nd.ones(shape, dtype=dtype))
        reductions(nd.ones(shape, dtype=dtype))
    for part in (rows, maps, choices, products, draws, formulas):
        part()


def statements() -> None:
    """What enters operators natively, and waits for them, where programs have many."""
    native_wait()
    binding(native_pend)


def reductions(x: nd.NDArray) -> None:
    """Reductions along all axes, and what stretches along them."""
    for axes in _subsets(min(x.ndim, 4)):
        y = nd.ones([1 if k in axes else n for k, n in enumerate(x.shape)], dtype=x.dtype)
        along = [reduce(x, axis=axes) for reduce in (nd.sum, nd.mean, nd.max, nd.min)]
        for z in (*along, x + y, x - y, x * y, x / y):
            z.wait_to_read()


def movements(x: nd.NDArray) -> None:
    """Transposes, slices, mirror images and joins."""
    for order in itertools.permutations(range(x.ndim)):
        nd.transpose(x, axes=order).wait_to_read()
    for axes in _subsets(x.ndim):
        begin = [int(k in axes) for k in range(x.ndim)]
        nd.slice(x, begin=begin, end=x.shape).wait_to_read()
    for axis in range(x.ndim):
        parts = nd.slice_axis(x, axis=axis, begin=0, end=1), nd.flip(x, axis=axis)
        for y in (*parts, nd.concat(x, x, dim=axis), nd.stack(x, x, axis=axis)):
            y.wait_to_read()


def _subsets(rank: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, rank + 1):
        yield from itertools.combinations(range(rank), count)


def rows() -> None:
    """What rows and columns become as a whole, or by their order."""
    x = _numbers(4, 6)
    for axis, function in itertools.product(range(2), (nd.softmax, nd.log_softmax, nd.norm)):
        with autograd.record():
            y = function(x, axis=axis)
        y.backward()
    for axis in range(2):
        ordered = nd.topk(x, k=2, axis=axis), nd.sort(x, axis=axis), nd.argsort(x, axis=axis)
        for y in (*ordered, nd.argmax(x, axis=axis)):
            y.wait_to_read()


def maps() -> None:
    """Each element-wise operator that needs no parameters, and its gradients."""
    for cls in _maps():
        x = [_numbers(4, 6) for _ in cls.usual_inputs()]
        with autograd.record():
            y = getattr(nd._internal, cls.name)(*x)
        y.backward()
        x[0].grad.wait_to_read()


def _maps() -> list[type[Op]]:
    found = {registry.find(name) for name in registry.names()}
    free = (cls for cls in found if not any(field.required for field in cls.fields.values()))
    return sorted((cls for cls in free if cls.elementwise), key=lambda cls: cls.name)


def choices() -> None:
    """What chooses elements by numbers, and products of matrices."""
    x, places = _numbers(4, 6), nd.array([1, 0, 3])
    wide = _numbers(BATCH * WIDTH, BATCH * WIDTH)
    with autograd.record():
        picked = nd.pick(x, nd.zeros((4,))), nd.take(x, places), nd.Embedding(places, x, 4, 6)
        products = nd.dot(x, x.T), nd.batch_dot(x.reshape((2, 2, 6)), x.reshape((2, 6, 2)))
        found = nd.add_n(*(y.sum() for y in (*picked, *products, nd.dot(wide, wide))))
    found.backward()
    for y in (nd.one_hot(places, 6), nd.where(x > 0.5, x, -x), nd.clip(x, 0, 1)):
        y.wait_to_read()
    x[1:3] = 0
    x[:, 2] = x[:, 3]
    x.astype("float16").astype("uint8").astype("float32").wait_to_read()


def products() -> None:
    """Products of matrices by tiles of every size: what sizes leave of rows and columns differs."""
    for columns in (48, 40, 20, 10, 5):
        nd.dot(_numbers(15, 8), _numbers(8, columns)).wait_to_read()
    for count in (11, 9):
        nd.dot(_numbers(count, 160), _numbers(7, 160), transpose_b=True).wait_to_read()


def draws() -> None:
    """Random numbers, and what initializers draw."""
    for function in (nd.random.uniform, nd.random.normal, nd.random.gamma, nd.random.exponential):
        function(shape=(5,)).wait_to_read()
    nd.random.randint(0, 9, shape=(5,)).wait_to_read()
    nd.shuffle(nd.arange(5)).wait_to_read()
    for name in ("Uniform", "Normal", "Orthogonal", "Xavier", "MSRAPrelu"):
        getattr(initializer, name)()(initializer.InitDesc("a_weight"), nd.zeros((4, 4)))


def formulas() -> None:
    """Statements on tensors."""
    x, y, z = (shadow.Tensor(np.linspace(0, 1, 60, dtype=np.float32)) for _ in range(3))
    x[:] = y + z
    x[:] = 2.0 * y - z / 3.0
    x[:] = -0.1 * (y + 0.01 * x)
    x[:] += y * z
    y[:] = shadow.F("tanh")(z) + shadow.F("exp")(-z)


def _numbers(*shape: int) -> nd.NDArray:
    x = nd.array(np.linspace(0.1, 0.9, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    x.attach_grad()
    return x


# Networks


class Residual(gluon.HybridBlock):
    """Two convolutions with normalization; what came in is added, by a third one where halved."""

    def __init__(self, halved: bool) -> None:
        super().__init__()
        stride = 2 if halved else 1
        with self.name_scope():
            self.body = _sequence(
                nn.Conv2D(WIDTH, 3, stride, 1, use_bias=False),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(WIDTH, 3, 1, 1, use_bias=False),
                nn.BatchNorm(),
            )
            short = nn.Conv2D(WIDTH, 1, stride, use_bias=False)
            self.short = _sequence(short, nn.BatchNorm()) if halved else _sequence()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Activation(self.body(x) + self.short(x), act_type="relu")


class Attention(gluon.HybridBlock):
    """A transformer's layer: attention by two heads, then two dense layers; each is added."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.first, self.second = nn.LayerNorm(), nn.LayerNorm()
            self.parts = nn.Dense(3 * WIDTH, flatten=False)
            self.joined = nn.Dense(WIDTH, flatten=False)
            self.wide = _sequence(
                nn.Dense(4 * WIDTH, flatten=False), nn.GELU(), nn.Dense(WIDTH, flatten=False)
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        def heads(part: Any) -> Any:
            return part.reshape((0, 0, 2, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0))

        query, key, value = map(heads, F.split(self.parts(self.first(x)), num_outputs=3, axis=2))
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) * 0.5, axis=-1)
        found = F.batch_dot(weights, value).reshape((-4, -1, 2, 0, 0)).transpose((0, 2, 1, 3))
        x = x + self.joined(found.reshape((0, 0, -3)))
        return x + self.wide(self.second(x))


class Recurrent(gluon.HybridBlock):
    """A recurrent layer over the steps of examples."""

    def __init__(self, layer: Callable[..., gluon.Block]) -> None:
        super().__init__()
        with self.name_scope():
            self.layer = layer(WIDTH, num_layers=2, layout="NTC", dropout=0.2)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.layer(x)


def networks() -> Iterator[tuple[gluon.HybridBlock, tuple[int, ...]]]:
    """Blocks of the usual kinds, each with the shape of what it takes."""
    last = nn.Dense(CLASSES)
    yield _sequence(nn.Dense(WIDTH, "relu"), nn.Dropout(0.3), last), (BATCH, 6)
    yield _pictures(), (BATCH, 3, 12, 12)
    residual = Residual(False), Residual(True), nn.GlobalAvgPool2D(), nn.Dense(CLASSES)
    yield _sequence(*residual), (BATCH, WIDTH, 8, 8)
    yield _sequence(Attention(), Attention(), nn.Dense(CLASSES)), (BATCH, 5, WIDTH)
    for layer in LAYERS.values():
        yield _sequence(Recurrent(layer), nn.Dense(CLASSES)), (BATCH, 5, 6)


def _sequence(*layers: gluon.Block) -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def _pictures() -> gluon.HybridBlock:
    return _sequence(
        nn.Conv2D(WIDTH, 3, activation="tanh"),
        nn.MaxPool2D(),
        nn.Conv2D(WIDTH, 3, padding=1, use_bias=False),
        nn.BatchNorm(),
        nn.LeakyReLU(0.1),
        nn.AvgPool2D(),
        nn.Dense(WIDTH, activation="sigmoid"),
        nn.Dense(CLASSES),
    )


def imperative() -> None:
    """Each network trained by Gluon, as one program and operator by operator."""
    for hybrid, optimizer in itertools.product((True, False), OPTIMIZERS):
        for net, shape in networks():
            net.initialize(initializer.Xavier())
            net.hybridize(hybrid)
            _train(net, nd.random.uniform(shape=shape), optimizer)


def _train(net: gluon.HybridBlock, x: nd.NDArray, optimizer: str) -> None:
    labels = nd.array(np.arange(BATCH) % CLASSES)
    entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), optimizer, dict(OPTIMIZERS[optimizer]))
    for _ in range(STEPS):
        with autograd.record():
            loss = entropy(net(x), labels)
        loss.backward()
        trainer.step(BATCH)
    nd.argmax(net(x), axis=1).wait_to_read()


def bound() -> None:
    """Each network as a symbol, trained and asked by a module."""
    for optimizer, given in OPTIMIZERS.items():
        for net, shape in networks():
            x = np.ones((2 * BATCH, *shape[1:]), np.float32)
            batches = NDArrayIter(x, np.arange(2 * BATCH) % CLASSES, BATCH)
            module = Module(sym.SoftmaxOutput(net(sym.Variable("data")), name="softmax"))
            start = initializer.Xavier()
            module.fit(batches, optimizer=optimizer, optimizer_params=given, initializer=start,
                       num_epoch=1)  # fmt: skip
            module.predict(batches).wait_to_read()


def training() -> None:
    """Networks, and what reads the records that they are given."""
    for part in (imperative, bound, records):
        part()


def records() -> None:
    """What finds records in a file."""
    served(cut)


#: All of it. The parts need few kernels in common, and take about as long.
PARTS: dict[str, Callable[[], None]] = {"arrays": arrays, "training": training}
