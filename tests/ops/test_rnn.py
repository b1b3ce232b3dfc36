"""RNN against MXNet, against itself on shorter sequences, and against finite differences."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden import recurrent

import gnomon as mx
from gnomon import config
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.expr import oracle
from gnomon.expr.call import Layer, Recurrence, RecurrenceGradient
from gnomon.expr.call.cell import CELLS
from gnomon.expr.call.rnn import panels
from gnomon.expr.node import Cast
from gnomon.ops import find
from gnomon.ops.testing import check, check_storing
from gnomon.plan.statement import Store
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries import tile
from gnomon.runtime.statements.prepare import prepare
from gnomon.shadow import Tensor

GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "recurrent.npz")
KINDS = [(kind, None) for kind in CELLS] + [("lstm", 4)]  # the last with states projected
PLAIN = [case for case in recurrent.CASES if not case[3]]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: "-".join(map(str, case)))
def test_values_and_gradients_are_mxnets(case):
    for name, found in recurrent.results(mx, [case]).items():
        np.testing.assert_allclose(found, GOLDEN[name], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_sequence_that_ends_is_a_shorter_one(mode, bidirectional):
    rng = np.random.default_rng(0)
    lengths, steps = [2, 4, 1], 4
    rnn = find("RNN")(mode=mode, state_size=3, num_layers=2, bidirectional=bidirectional,
                      state_outputs=True, use_sequence_length=True)  # fmt: skip
    shapes = rnn.infer_shape([(steps, 3, 5), *[None] * (len(rnn.arguments()) - 1)])[0]
    data, parameters, *states = (rng.normal(size=s) * 0.5 for s in shapes[:-1])
    run = [*(mx.nd.array(v, dtype="float64") for v in (data, parameters, *states))]
    whole = mx.nd.RNN(*run, sequence_length=mx.nd.array(lengths), **_told(rnn))
    for k, length in enumerate(lengths):
        part = [data[:length, k : k + 1], parameters, *(s[:, k : k + 1] for s in states)]
        told = _told(rnn) | {"use_sequence_length": False}
        alone = mx.nd.RNN(*(mx.nd.array(v, dtype="float64") for v in part), **told)
        output = whole[0].asnumpy()[:, k]
        np.testing.assert_allclose(output[:length], alone[0].asnumpy()[:, 0], rtol=1e-12)
        assert (output[length:] == 0).all()
        for state, expected in zip(whole[1:], alone[1:], strict=True):
            np.testing.assert_allclose(state.asnumpy()[:, k], expected.asnumpy()[:, 0], rtol=1e-12)


def _told(rnn):
    return {
        "mode": rnn.mode,
        "state_size": rnn.state_size,
        "num_layers": rnn.num_layers,
        "bidirectional": rnn.bidirectional,
        "state_outputs": True,
        "use_sequence_length": True,
    }


@pytest.mark.parametrize(
    "told",
    [
        {"mode": "lstm", "bidirectional": True},
        {"mode": "lstm", "lstm_state_clip_min": -0.3, "lstm_state_clip_max": 0.2},
        {"mode": "gru", "num_layers": 2},
        {"mode": "rnn_relu"},
        {"mode": "rnn_tanh", "num_layers": 2, "bidirectional": True},
    ],
    ids=lambda told: "-".join(map(str, told.values())),
)
def test_gradients_and_requests(told):
    rng = np.random.default_rng(1)
    rnn = find("RNN")(**({"num_layers": 1, "state_size": 2, "state_outputs": True} | told))
    shapes = rnn.infer_shape([(3, 2, 2), *[None] * (len(rnn.arguments()) - 1)])[0]
    values = [rng.normal(size=s) * 0.7 for s in shapes]
    check(rnn, values)
    check_storing(rnn, values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "projection"), KINDS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lengths", [False, True])
def test_the_library_does_what_the_expressions_say(dtype, kind, projection, reverse, lengths):
    rng = np.random.default_rng(2)

    def tensor(*shape):
        return Tensor((rng.normal(size=shape) * 0.5).astype(dtype))

    layer = Layer(kind, reverse, 4, 3, 5, 7, projection=projection)
    y = layer
    weights = [tensor(*s) for s in ((y.width, 5), (y.width, y.state), (y.width,), (y.width,))]
    w_out = tensor(y.state, 7) if projection else None
    data, h = tensor(4, 3, 5), tensor(3, y.state)
    c = tensor(3, 7) if y.cell.has_cell else None
    length = Tensor(np.array([2, 4, 0], dtype)) if lengths else None
    node = Recurrence(data, *weights, h, c, length, layer, w_out)
    kept = _stored(node)
    error = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(kept.numpy(), oracle.evaluate(node), rtol=error, atol=error)
    dy, dh, dc = tensor(4, 3, y.state), tensor(3, y.state), tensor(3, 7) if c is not None else None
    for ends in ((dh, dc), (None, None)):  # what the final states get besides
        gradient = RecurrenceGradient(data, *weights[:2], kept, dy, *ends, length, layer, w_out)
        found = _stored(gradient).numpy()
        np.testing.assert_allclose(found, oracle.evaluate(gradient), rtol=error, atol=error)


@pytest.mark.parametrize("kind", CELLS)
def test_floats_of_16_bits_are_computed_in_single_precision(kind):
    """As one call, not step by step: what is compiled does not grow with the steps."""
    rng = np.random.default_rng(7)
    y = Layer(kind, True, 6, 3, 5, 7)
    shapes = [(6, 3, 5), (y.width, 5), (y.width, 7), (y.width,), (y.width,), (3, 7), (3, 7)]
    values = [(rng.normal(size=s) * 0.5).astype("float16") for s in shapes]
    values += [np.array([2, 6, 0], "float16"), (rng.normal(size=(6, 3, 7)) * 0.5).astype("float16")]

    def run(dtype, before=None):
        *given, c, length, dy = (Tensor(v.astype(dtype)) for v in values)
        node = Recurrence(*given, c if y.cell.has_cell else None, length, y)
        kept = _stored(node)
        seen = kept if before is None else Tensor(before.astype(dtype))
        gradient = RecurrenceGradient(*given[:3], seen, dy, None, None, length, y)
        return node, kept.numpy(), _stored(gradient).numpy()

    node, *found = run("float16")
    _, *expected = run("float32", before=found[0])
    for values_found, values_expected in zip(found, expected, strict=True):
        np.testing.assert_allclose(values_found, values_expected, rtol=2e-3, atol=2e-3)
    assert isinstance(node.fallback(), Cast)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("others", [0, 1])
def test_weights_in_panels(dtype, others):
    """In those of this machine's tiles, and in others, which are brought back."""
    rng = np.random.default_rng(3)
    y = Layer("lstm", False, 3, 2, 5, 13, wanted=False)
    shapes = [(y.width, 5), (y.width, 13), (y.width,), (y.width,)]
    weights = [Tensor((rng.normal(size=s) * 0.5).astype(dtype)) for s in shapes]
    data, h, c = (Tensor(rng.normal(size=s).astype(dtype)) for s in ((3, 2, 5), (2, 13), (2, 13)))
    columns = tile.columns(weights[0].dtype) + others
    packed = [_stored(panels(w, columns)) for w in weights[:2]]
    node = Recurrence(data, *packed, *weights[2:], h, c, None, y)
    error = 1e-5 if dtype == "float32" else 1e-12
    want = oracle.evaluate(Recurrence(data, *weights, h, c, None, y))
    for found in (_stored(node).numpy(), oracle.evaluate(node)):
        np.testing.assert_allclose(found, want, rtol=error, atol=error)
    with pytest.raises(ShapeError, match="w_hid"):
        Recurrence(data, packed[0], weights[1], *weights[2:], h, c, None, y)


def _stored(node):
    out = Tensor(np.full(node.shape, np.nan, node.dtype.numpy))
    for step in prepare([Store(out, "saveto", node)]):
        step.run()
    return out


@pytest.fixture
def any_threads():
    before = threads.num_threads()
    yield (1, 2, 3)
    threads.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "projection"), KINDS)
@pytest.mark.parametrize("batch", [2, 23, 41])
@pytest.mark.parametrize(("reverse", "lengths"), [(False, False), (True, True)])
def test_rows_among_threads(dtype, kind, projection, batch, reverse, lengths, any_threads):
    """Rows enough to pack the weights; 23 are shared out between two threads, 41 among three."""
    rng = np.random.default_rng(4)

    def tensor(*shape):
        return Tensor((rng.normal(size=shape) * 0.5).astype(dtype))

    clip = (-0.2, 0.3, False) if kind == "lstm" and reverse else None
    y = Layer(kind, reverse, 1 + 64 // batch, batch, 5, 7, clip, projection=projection)
    weights = [tensor(*s) for s in ((y.width, 5), (y.width, y.state), (y.width,), (y.width,))]
    w_out = tensor(y.state, 7) if projection else None
    across = tensor(batch, y.steps, 5).numpy().transpose(1, 0, 2)  # the rows of a step lie apart
    data, h = Tensor(across), tensor(batch, y.state)
    c = tensor(batch, 7) if y.cell.has_cell else None
    length = Tensor((np.arange(batch) % (y.steps + 1)).astype(dtype)) if lengths else None
    node = Recurrence(data, *weights, h, c, length, y, w_out)
    dy, dh = tensor(y.steps, batch, y.state), tensor(batch, y.state)
    found = []
    for count in any_threads:
        threads.set_num_threads(count)
        kept = _stored(node)
        gradient = RecurrenceGradient(data, *weights[:2], kept, dy, dh, c, length, y, w_out)
        found.append((kept.numpy(), _stored(gradient).numpy()))
        bare = replace(y, wanted=False)
        states = _stored(Recurrence(data, *weights, h, c, length, bare, w_out)).numpy()
        assert (states == kept.numpy()[: bare.areas().size]).all()
    error = 2e-5 if dtype == "float32" else 1e-12
    for values, want in zip(found[0], (node, gradient), strict=True):
        np.testing.assert_allclose(values, oracle.evaluate(want), rtol=error, atol=error)
    assert all((kept == found[0][0]).all() for kept, _ in found)
    for _, grads in found:
        np.testing.assert_allclose(grads, found[0][1], rtol=error, atol=error)


@pytest.mark.parametrize("mode", CELLS)
def test_derived_gradient_of_a_recurrence(mode):
    rng = np.random.default_rng(3)
    layer = Layer(mode, True, 3, 2, 2, 2)
    shapes = [(3, 2, 2), (layer.width, 2), (layer.width, 2), (layer.width,), (layer.width,), (2, 2)]
    operands = [Tensor(rng.normal(size=s) * 0.5) for s in shapes]
    c = Tensor(rng.normal(size=(2, 2))) if layer.cell.has_cell else None
    node = Recurrence(*operands, c, None, layer)
    g = Tensor(np.zeros(node.shape))
    areas = layer.areas()
    begin = areas.starts["h"]
    g.numpy()[begin : begin + 16] = rng.normal(size=16)
    for operand, gradient in node.adjoint(g):
        values, found = operand.numpy(), oracle.evaluate(gradient)
        where = tuple(rng.integers(n) for n in values.shape)
        start, sides = values[where], []
        for change in (1e-6, -1e-6):
            values[where] = start + change
            sides.append((oracle.evaluate(node) * g.numpy()).sum())
        values[where] = start
        assert abs((sides[0] - sides[1]) / 2e-6 - found[where]) < 1e-7


def test_dropout_between_layers():
    mx.random.seed(1)
    told = {"mode": "lstm", "state_size": 50, "num_layers": 2, "p": 0.5, "name": "r"}
    net = mx.sym.RNN(mx.sym.var("data"), **told)
    bound = net.simple_bind(mx.cpu(), data=(3, 20, 4))
    for array in bound.arg_dict.values():
        array[:] = mx.nd.random.normal(shape=array.shape) * 0.3
    first, again = (bound.forward(is_train=True)[0].asnumpy() for _ in range(2))
    still = [bound.forward(is_train=False)[0].asnumpy() for _ in range(2)]
    assert not np.allclose(first, again)
    np.testing.assert_array_equal(*still)
    bound.forward(is_train=True)
    bound.backward(mx.nd.ones((3, 20, 50)))
    assert all(np.isfinite(g.asnumpy()).all() for g in bound.grad_dict.values())


def test_without_libraries():
    with config.using(onednn=False):
        case = ("gru", True, 2, False)
        for name, found in recurrent.results(mx, [case]).items():
            np.testing.assert_allclose(found, GOLDEN[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", CELLS)
@pytest.mark.parametrize("batch", [3, 23])  # 23 rows are shared out among threads
def test_arrays_in_other_places(mode, batch):
    """The steps that were made for a first call serve others, wherever their arrays lie."""
    shapes = {"data": (4, batch, 5), "parameters": (CELLS[mode].gates * 7 * 14,)}
    shapes |= dict.fromkeys(("state", "state_cell")[: 1 + CELLS[mode].has_cell], (1, batch, 7))
    told = {"mode": mode, "state_size": 7, "num_layers": 1}
    net = mx.sym.RNN(*map(mx.sym.var, shapes), **told)
    rng, used = np.random.default_rng(6), []
    for _ in range(3):
        given = {name: mx.nd.array(rng.normal(size=s) * 0.5) for name, s in shapes.items()}
        used.append(given)  # so that no two calls find theirs in one place
        for array in given.values():
            array.attach_grad()
        with mx.autograd.record():
            out = mx.nd.RNN(*given.values(), **told)
        out.backward()
        grads = {name: mx.nd.zeros(s) for name, s in shapes.items()}
        bound = net.bind(mx.cpu(), given, grads)
        want = bound.forward(is_train=True)[0].asnumpy()
        bound.backward(mx.nd.ones(out.shape))
        np.testing.assert_allclose(out.asnumpy(), want, rtol=1e-5, atol=1e-6)
        for name, array in given.items():
            np.testing.assert_allclose(
                array.grad.asnumpy(), grads[name].asnumpy(), rtol=1e-4, atol=1e-5, err_msg=name
            )


def test_gluons_way_of_calling():
    x, h, c = mx.nd.ones((2, 3, 4)), mx.nd.zeros((1, 3, 5)), mx.nd.zeros((1, 3, 5))
    size = 4 * 5 * (4 + 5 + 2)
    weights = mx.nd.ones((size,)) * 0.1
    weights.attach_grad()
    with mx.autograd.record():
        y, *states = mx.nd.RNN(x, weights, h, c, state_size=5, num_layers=1, mode="lstm",
                               state_outputs=True)  # fmt: skip
    y.backward()
    assert y.shape == (2, 3, 5) and [s.shape for s in states] == [(1, 3, 5)] * 2
    assert (weights.grad.asnumpy() != 0).any()


@pytest.mark.parametrize("nan", [False, True])
def test_states_that_are_no_numbers(nan):
    """Clipped to the least value where that is asked for, and carried on otherwise."""
    x, weights = mx.nd.ones((2, 1, 1)), mx.nd.zeros((4 * (1 + 1 + 2),))
    told = {"mode": "lstm", "state_size": 1, "num_layers": 1, "state_outputs": True}
    told |= {"lstm_state_clip_min": -0.5, "lstm_state_clip_max": 2.0, "lstm_state_clip_nan": nan}
    start = mx.nd.full((1, 1, 1), np.nan)
    cell = mx.nd.RNN(x, weights, mx.nd.zeros((1, 1, 1)), start, **told)[2].asscalar()
    assert cell == -0.25 if nan else np.isnan(cell)  # -0.5, then halved by the forget gate


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"mode": "elman"}, "argument 'mode'"),
        ({"mode": "gru", "projection_size": 2}, "projection_size"),
        ({"mode": "lstm", "lstm_state_clip_min": 1.0}, "lstm_state_clip_min"),
        ({"mode": "lstm", "p": 1.5}, "argument 'p'"),
        ({"mode": "lstm", "state_size": 0}, "state_size"),
    ],
)
def test_parameters_that_are_refused(told, text):
    with pytest.raises(GnomonError, match=text):
        find("RNN")(**({"state_size": 3, "num_layers": 1} | told))


def test_shapes_that_do_not_fit():
    x, h = mx.nd.ones((2, 3, 4)), mx.nd.zeros((1, 3, 5))
    with pytest.raises(GnomonError, match="parameters"):
        mx.nd.RNN(x, mx.nd.ones((7,)), h, mode="rnn_tanh", state_size=5, num_layers=1)
    with pytest.raises(GnomonError, match=r"RNN: argument 'parameters': expected an array"):
        mx.nd.RNN(x, None, h, mode="rnn_tanh", state_size=5, num_layers=1)
    with pytest.raises(GnomonError, match="3 axes"):
        mx.nd.RNN(mx.nd.ones((2, 3)), mx.nd.ones((7,)), h, mode="gru", state_size=5, num_layers=1)


@pytest.mark.parametrize(("kind", "projection", "given"), [("lstm", 3, False), ("gru", 3, True)])
def test_projections_that_do_not_fit(kind, projection, given):
    y = Layer(kind, False, 2, 3, 4, 5, projection=projection)
    shapes = [(2, 3, 4), (y.width, 4), (y.width, 3), (y.width,), (y.width,), (3, 3), (3, 5)]
    operands = [Tensor(np.ones(s)) for s in shapes]
    with pytest.raises(ShapeError, match="w_out"):
        Recurrence(*operands, None, y, Tensor(np.ones((3, 5))) if given else None)


@pytest.mark.parametrize("hybrid", [False, True])
def test_projected_layers_train(hybrid):
    layer = mx.gluon.rnn.LSTM(5, num_layers=2, projection_size=3, bidirectional=True, dropout=0.3)
    layer.initialize(mx.init.Uniform(0.5))
    if hybrid:
        layer.hybridize()
    x = mx.nd.random.uniform(shape=(4, 2, 6))
    trainer = mx.gluon.Trainer(layer.collect_params(), "adam", {"learning_rate": 0.05})
    losses = []
    for _ in range(25):
        with mx.autograd.record():
            y, states = layer(x, layer.begin_state(2))
            loss = ((y - 0.4) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.asscalar())
    assert y.shape == (4, 2, 6)
    assert [s.shape for s in states] == [(4, 2, 3), (4, 2, 5)]
    assert layer.l1_i2h_weight.shape == (20, 6)
    assert layer.r0_h2r_weight.grad().abs().max().asscalar() > 0
    assert losses[-1] < 0.5 * losses[0]


def test_projected_layers_have_no_single_cells():
    with pytest.raises(mx.GnomonError, match="projection_size"):
        mx.gluon.rnn.LSTM(5, projection_size=3)._unfuse()


@pytest.mark.parametrize("layer", [mx.gluon.rnn.GRU, mx.gluon.rnn.RNN])
def test_only_states_of_lstms_are_projected(layer):
    with pytest.raises(ParamError, match="only states of an LSTM"):
        layer(4, projection_size=2)
