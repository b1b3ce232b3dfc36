"""Records that are computed operator by operator keep no more than operators that are called."""

from __future__ import annotations

from ndarray.noted_steps import begin_anew

from gnomon import autograd, nd
from gnomon.ndarray.lazy.notes import Record
from gnomon.runtime.devices import pool


def test_results_that_nothing_reads_any_more_go(monkeypatch):
    begin_anew()  # the tests before may have made the thread rest
    used, apply = [], Record._apply

    def watched(*given):
        apply(*given)
        used.append(pool.stats().used)

    monkeypatch.setattr(Record, "_apply", watched)
    w = nd.ones((64, 256))
    w.attach_grad()
    nd.waitall()
    before = pool.stats().used
    with autograd.record():
        y = w
        for _ in range(8):
            y = nd.flip(y, axis=1)  # its gradient reads no value
        loss = y.sum()
    loss.backward()
    assert len(used) == 9
    assert max(used) - before < 4 * 4 * w.size
    assert (w.grad.asnumpy() == 1).all()
