"""`mx.rnn` against the real library: graphs, weights, batches and files."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError, ParamError, ShapeError, UnknownNameError

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import cells  # noqa: E402

RECORD = json.loads(gzip.decompress((GOLDEN / "cells.json.gz").read_bytes()))


def test_graphs_are_those_of_the_real_library():
    with pytest.warns(UserWarning, match="NTC.*TNC is faster"):
        graphs = dict(cells.graphs(mx))
    assert list(graphs) == list(RECORD["graphs"])
    for title, lines in graphs.items():
        assert lines == RECORD["graphs"][title], title


def test_weights_lie_where_the_real_library_has_them():
    assert cells.unpacked(mx) == RECORD["unpacked"]


def test_packing_undoes_unpacking():
    for title, cell, size in cells.packings(mx):
        before = {"f_parameters": mx.nd.arange(size), "other": mx.nd.ones(2)}
        after = cell.pack_weights(cell.unpack_weights(before))
        assert list(after) == ["other", "f_parameters"], title
        np.testing.assert_array_equal(after["f_parameters"].asnumpy(), np.arange(size))


@pytest.mark.parametrize("make", [mx.rnn.RNNCell, mx.rnn.LSTMCell, mx.rnn.GRUCell])
def test_weights_of_single_cells_come_apart_by_gates(make):
    cell = make(3, prefix="c_")
    gates = len(cell._gate_names)
    args = {
        f"c_{group}_{kind}": mx.nd.arange(gates * 3 * width).reshape(shape)
        for group in ("i2h", "h2h")
        for kind, width, shape in (("weight", 5, (-1, 5)), ("bias", 1, (-1,)))
    }
    apart = cell.unpack_weights(args)
    assert len(apart) == 4 * gates
    last = apart[f"c_h2h{cell._gate_names[-1]}_weight"].asnumpy()
    np.testing.assert_array_equal(last, np.arange(gates * 15).reshape(-1, 5)[-3:])
    again = cell.pack_weights(apart)
    assert again.keys() == args.keys()
    for name, array in args.items():
        np.testing.assert_array_equal(again[name].asnumpy(), array.asnumpy())


def test_a_vector_of_another_length_is_refused():
    cell = mx.rnn.FusedRNNCell(4, mode="lstm", prefix="f_")
    with pytest.raises(ShapeError, match=r"vector of weights.*got 7 elements"):
        cell.unpack_weights({"f_parameters": mx.nd.zeros(7)})


def test_the_initializer_of_all_weights():
    assert cells.begun(mx) == RECORD["begun"]


def test_the_initializer_of_all_weights_by_its_attribute_and_the_model_s():
    cell = mx.rnn.FusedRNNCell(4, mode="lstm", prefix="f_", forget_bias=2.5)
    net, _ = cell.unroll(2, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (2, 3, 5))], for_training=False)
    module.init_params(mx.init.Constant(0.25))
    apart = cell.unpack_weights(module.get_params()[0])
    assert {float(a.asnumpy().max()) for n, a in apart.items() if n.endswith("weight")} == {0.25}
    assert apart["f_l0_i2h_f_bias"].asnumpy().tolist() == [2.5] * 4
    assert apart["f_l0_i2h_i_bias"].asnumpy().tolist() == [0] * 4


def test_sentences_in_buckets():
    assert json.loads(json.dumps(cells.batches(mx))) == RECORD["batches"]


def test_an_unknown_word():
    vocab = {"a": 3, "?": 9}
    assert mx.rnn.encode_sentences([["a", "b", "a"]], vocab, unknown_token="?")[0] == [[3, 9, 3]]
    assert vocab == {"a": 3, "?": 9}
    with pytest.raises(UnknownNameError, match=r"encode_sentences.*'b'"):
        mx.rnn.encode_sentences([["b"]], vocab)


def test_buckets_without_sentences_are_left_out():
    source = mx.rnn.BucketSentenceIter([[1] * 4] * 2 + [[2] * 2] * 3, 2, [1, 3, 5, 9])
    assert (source.buckets, source.default_bucket_key) == ([3, 5], 5)
    assert [rows.shape for rows in source.data] == [(3, 3), (2, 5)]
    with pytest.raises(ParamError, match="at most 2 words, the largest bucket"):
        mx.rnn.BucketSentenceIter([[1, 2, 3]], 1, [1, 2])


def test_sentences_too_long_are_told(caplog):
    source = mx.rnn.BucketSentenceIter([[1], [1, 2, 3], [2]], 2, [1])
    assert "1 sentences are longer" in caplog.text
    assert len(list(source)) == 1
    with pytest.raises(ParamError, match=r"buckets"):
        mx.rnn.BucketSentenceIter([[1], [1, 2]], 2)
    with pytest.raises(ParamError, match=r"layout"):
        mx.rnn.BucketSentenceIter([[1]], 1, [1], layout="TC")


def test_a_checkpoint_of_the_real_library(tmp_path):
    size = next(size for title, _, size in cells.packings(mx) if title == "lstm 2")
    cell = cells.fused(mx, "lstm", bidirectional=True)
    weights = {"f_parameters": mx.nd.arange(size)}
    prefix = str(tmp_path / "cells")
    mx.rnn.do_rnn_checkpoint(cell, prefix, 3)(2, mx.sym.Variable("x"), weights, {})
    mx.rnn.do_rnn_checkpoint(cell, prefix, 3)(3, mx.sym.Variable("x"), weights, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cells-0003.params", "cells-symbol.json"]
    theirs = mx.nd.load(str(GOLDEN / "cells-0003.params"))
    ours = mx.nd.load(prefix + "-0003.params")
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name].asnumpy(), array.asnumpy())
    (tmp_path / "cells-0003.params").write_bytes((GOLDEN / "cells-0003.params").read_bytes())
    _, args, _ = mx.rnn.load_rnn_checkpoint([cell], prefix, 3)
    np.testing.assert_array_equal(args["f_parameters"].asnumpy(), np.arange(size))


@pytest.mark.parametrize("mode", cells.MODES)
@pytest.mark.parametrize("sides", [False, True])
def test_unfused_cells_compute_the_same(mode, sides):
    cell = cells.fused(mx, mode, bidirectional=sides)
    size = next(s for title, _, s in cells.packings(mx) if title == f"{mode} {1 + sides}")
    rng = np.random.default_rng(0)
    data = mx.nd.array(rng.normal(size=(2, 5, 3)))
    args = {"f_parameters": mx.nd.array(rng.normal(size=size) / 3)}
    with pytest.warns(UserWarning, match="NTC.*TNC is faster"):
        whole, _ = cell.unroll(5, mx.sym.Variable("x"), merge_outputs=True)
    apart = cell.unfuse()
    single, _ = apart.unroll(5, mx.sym.Variable("x"), merge_outputs=True)
    expected = whole.eval(x=data, **args)[0].asnumpy()
    found = single.eval(x=data, **apart.pack_weights(cell.unpack_weights(args)))[0].asnumpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_states_can_be_variables_of_their_own():
    cell = mx.rnn.LSTMCell(4)
    states = cell.begin_state(func=mx.sym.Variable)
    assert [s.name for s in states] == ["lstm_begin_state_0", "lstm_begin_state_1"]
    output, after = cell(mx.sym.Variable("x"), states)
    shapes = mx.sym.Group([output, *after]).infer_shape(
        x=(2, 3), lstm_begin_state_0=(2, 4), lstm_begin_state_1=(2, 4)
    )
    assert shapes[1] == [(2, 4)] * 3


def test_shared_parameters():
    shared = mx.rnn.RNNParams("s_")
    first, second = (mx.rnn.RNNCell(4, prefix=p, params=shared) for p in ("a_", "b_"))
    x = mx.sym.Variable("x")
    both = mx.sym.Group([c(x, c.begin_state())[0] for c in (first, second)])
    assert both.list_arguments() == [
        "x",
        "s_i2h_weight",
        "s_i2h_bias",
        "s_h2h_weight",
        "s_h2h_bias",
    ]


def test_zoneout_and_dropout_act_in_training_alone():
    cell = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(50), 0.5, 0.5)
    net, _ = cell.unroll(3, mx.sym.Variable("x"), merge_outputs=True)
    run = net.simple_bind(mx.cpu(), x=(4, 3, 2), grad_req="null")
    for name, array in run.arg_dict.items():
        array[:] = 1.0 if name == "x" else 0.2
    still = run.forward(is_train=False)[0].asnumpy()
    moving = run.forward(is_train=True)[0].asnumpy()
    assert np.unique(still[:, 0]).size == 1
    assert set(np.unique(moving[:, 0])) == {0, np.unique(still[:, 0])[0]}


def test_what_cannot_be_is_refused():
    r, x = mx.rnn, mx.sym.Variable("x")
    with pytest.raises(NotImplementedError, match=r"unfuse"):
        r.FusedRNNCell(3)(x, [])
    with pytest.raises(NotImplementedError, match=r"unroll"):
        cells.both(mx)(x, [])
    with pytest.raises(ParamError, match=r"mode"):
        r.FusedRNNCell(3, mode="lstmm")
    for cell in (r.FusedRNNCell(3), cells.both(mx)):
        with pytest.raises(ParamError, match=r"base_cell"):
            r.ZoneoutCell(cell)
    wrapped = r.RNNCell(3)
    r.ResidualCell(wrapped)
    with pytest.raises(GnomonError, match=r"RNNCell.begin_state.*modifier"):
        wrapped.begin_state()
    with pytest.raises(ParamError, match=r"one a step"):
        r.RNNCell(3).unroll(3, [x, x])
    with pytest.raises(ParamError, match=r"one output"):
        r.RNNCell(3).unroll(2, mx.sym.Group([x, x]))
    with pytest.raises(ParamError, match=r"layout"):
        r.RNNCell(3).unroll(2, x, layout="CTN")
    with pytest.raises(ParamError, match=r"h2h_kernel"):
        r.ConvRNNCell((1, 3, 6, 6), 4, h2h_kernel=(2, 2))
    with pytest.raises(TypeError, match=r"dropout"):
        r.DropoutCell("much")
    with pytest.raises(GnomonError, match=r"SequentialRNNCell.*'a_'"):
        r.SequentialRNNCell(r.RNNParams()).add(r.RNNCell(3, prefix="a_", params=r.RNNParams()))


def test_rnn_unroll_of_old():
    with pytest.warns(DeprecationWarning, match=r"unroll"):
        outputs, _ = mx.rnn.rnn_unroll(mx.rnn.RNNCell(3), 2, input_prefix="in_")
    names = outputs[1].list_arguments()
    assert sorted(n for n in names if n.startswith("in_")) == ["in_t0_data", "in_t1_data"]
