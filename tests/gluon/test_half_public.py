"""Names with an underscore that libraries for Gluon import, as MXNet 1.9.1 has them."""

from __future__ import annotations

import io
import multiprocessing
import pickle

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.contrib.amp import amp
from gnomon.gluon import tensor_types
from gnomon.gluon.block import _flatten, _regroup
from gnomon.gluon.data.dataloader import ForkingPickler, _as_in_context, _MultiWorkerIter
from gnomon.gluon.loss import _apply_weighting, _reshape_like
from gnomon.gluon.model_zoo.model_store import _model_sha1
from gnomon.gluon.utils import _get_repo_file_url, _get_repo_url
from gnomon.image import _get_interp_method

SAMPLES = np.arange(20.0)


def made(numbers, batchify, dataset):
    """What a worker process does."""
    batch = batchify([SAMPLES[k] for k in numbers])
    stream = io.BytesIO()
    ForkingPickler(stream, pickle.HIGHEST_PROTOCOL).dump(batch)
    return stream.getvalue() if dataset is None else batch


def slow(numbers, batchify, dataset):
    """A worker that never comes back in time."""
    multiprocessing.Event().wait(20)


def test_nested_lists():
    x, y = mx.nd.ones((2,)), mx.sym.var("y")
    flat, form = _flatten([x, None, (x, [y])], "input")
    assert flat == [x, None, x, y]
    assert form == [0, -1, [0, [0]]]
    assert _regroup(flat, form) == [x, None, [x, [y]]]
    assert _flatten(mx.sym.Group([y, y + 1]), "input")[1] == 2
    with pytest.raises(ValueError, match=r"input.*list.*got 3"):
        _flatten(3, "input")
    assert isinstance(x, tensor_types) and isinstance(y, tensor_types)


def test_losses():
    loss = mx.nd.ones((2, 3))
    weighted = _apply_weighting(mx.nd, loss, 0.5, mx.nd.array([[1], [2]]))
    assert weighted.asnumpy().tolist() == [[0.5] * 3, [1.0] * 3]
    assert _apply_weighting(mx.nd, loss) is loss
    assert _reshape_like(mx.nd, mx.nd.ones((4, 1)), mx.nd.ones((4,))).shape == (4,)


def test_addresses(monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://a.b/c")
    assert _get_repo_url() == "http://a.b/c/"
    assert _get_repo_file_url("x", "y.zip") == "http://a.b/c/x/y.zip"
    assert isinstance(_model_sha1, dict)


def test_interpolations():
    sizes = [(), (10, 10, 20, 20), (20, 20, 10, 10), (10, 20, 20, 10)]
    assert [_get_interp_method(9, s) for s in sizes] == [2, 2, 3, 1]
    assert [_get_interp_method(k, s) for k in (0, 4) for s in sizes] == [0] * 4 + [4] * 4
    with pytest.raises(ValueError, match="7"):
        _get_interp_method(7)


def test_amp_under_its_inner_path():
    assert amp.init is mx.contrib.amp.init
    assert amp._amp_initialized is False


@pytest.mark.parametrize("processes", [True, False])
def test_batches_of_a_pool(processes):
    batches = [[0, 1], [5, 3], [7]]
    kind = (
        multiprocessing.get_context("fork").Pool if processes else multiprocessing.pool.ThreadPool
    )
    batchify = mx.gluon.data.dataloader.default_mp_batchify_fn
    with kind(2) as pool:
        dataset = None if processes else SAMPLES
        found = _MultiWorkerIter(
            pool, batchify, batches, pin_memory=True, worker_fn=made, prefetch=2, dataset=dataset
        )
        assert len(found) == 3
        assert [x.asnumpy().tolist() for x in found] == [[0, 1], [5, 3], [7]]
        late = _MultiWorkerIter(pool, batchify, batches, worker_fn=slow, timeout=0.05)
        with pytest.raises(GnomonError, match=r"batch 0 was not made in 0.05 s"):
            next(late)


def test_arrays_of_a_batch_elsewhere():
    x = mx.nd.ones((2,))
    first, (second, third) = _as_in_context([x, (x, 3)], mx.cpu(1))
    assert first.context == second.context == mx.cpu(1) and third == 3
