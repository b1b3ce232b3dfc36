"""Names that begin with an underscore in MXNet, which cells and layers of programs import."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd, sym
from gnomon.gluon.rnn import rnn_cell

X = nd.array(np.arange(24).reshape(2, 3, 4))


def test_sequences_in_a_form():
    steps, axis, F, rows = rnn_cell._format_sequence(3, X, "NTC", False)
    assert ([x.shape for x in steps], axis, F, rows) == ([(2, 4)] * 3, 1, nd, 2)
    merged, axis, F, rows = rnn_cell._format_sequence(None, steps, "TNC", True, "NTC")
    assert (merged.shape, axis, F, rows) == ((3, 2, 4), 0, nd, 2)
    turned, *_ = rnn_cell._format_sequence(3, X, "TNC", None, "NTC")
    np.testing.assert_array_equal(turned.asnumpy(), X.asnumpy().swapaxes(0, 1))
    steps, axis, F, rows = rnn_cell._format_sequence(3, sym.var("x"), "NTC", False)
    assert (len(steps), axis, F, rows) == (3, 1, sym, 0)


def test_first_states():
    cell = rnn_cell.LSTMCell(5)
    assert [x.shape for x in rnn_cell._get_begin_state(cell, nd, None, X, 2)] == [(2, 5)] * 2
    assert rnn_cell._get_begin_state(cell, nd, [X], X, 2) == [X]
    cells = [cell, rnn_cell.GRUCell(3)]
    assert [x["shape"] for x in rnn_cell._cells_state_info(cells, 2)] == [(2, 5), (2, 5), (2, 3)]
    assert len(rnn_cell._cells_begin_state(cells, batch_size=2)) == 3


def test_sequences_of_several_lengths():
    lengths = nd.array([1, 3])
    found = rnn_cell._mask_sequence_variable_length(nd, X, 3, lengths, 1, True)
    expected = X.asnumpy()
    expected[0, 1:] = 0
    np.testing.assert_array_equal(found.asnumpy(), expected)
    steps = rnn_cell._mask_sequence_variable_length(nd, X, 3, lengths, 1, False)
    np.testing.assert_array_equal(steps[1].asnumpy(), expected[:, 1])
    turned = rnn_cell._reverse_sequences(steps, 3)
    assert [x is y for x, y in zip(turned, steps[::-1], strict=True)] == [True] * 3
    turned = rnn_cell._reverse_sequences(steps, 3, lengths)
    np.testing.assert_array_equal(turned[0].asnumpy(), [expected[0, 0], expected[1, 2]])


@pytest.mark.parametrize("module", [nd, nd.ndarray])
def test_numbers_of_types(module):
    assert module._DTYPE_NP_TO_MX[np.float32] == 0
    assert module._DTYPE_MX_TO_NP[6] is np.int64
    assert module._DTYPE_NP_TO_MX[None] == -1
    assert module._STORAGE_TYPE_ID_TO_STR[module._STORAGE_TYPE_STR_TO_ID["csr"]] == "csr"
    assert module._GRAD_REQ_MAP["add"] == 3


def test_scopes_of_blocks():
    with mx.name.NameManager():
        scope = mx.gluon.block._BlockScope
        assert scope.create(None, None, "cell")[0] == "cell0_"
        assert scope.create("own_", None, "cell")[0] == "own_"
