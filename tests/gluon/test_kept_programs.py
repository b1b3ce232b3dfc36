"""Programs of compiled blocks: how long they are kept, in which memory, for which arrays."""

from __future__ import annotations

import gc

import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.gluon import nn
from gnomon.gluon.block import site
from tests.gluon.test_compiled import dense, grads, rows, same, twins


def test_programs_are_used_again():
    net, x = dense(in_units=4), rows()
    for _ in range(5):
        with mx.autograd.record():
            y = net(x)
        y.backward()
    (own,) = net._last._sites
    del y
    gc.collect()
    assert len(own._programs) == len(own._free) == 1


def test_more_calls_before_a_backward_pass_than_kinds_are_kept(monkeypatch):
    monkeypatch.setattr(site, "KINDS_KEPT", 2)
    net, made = dense(4, in_units=4), []
    monkeypatch.setattr(
        site.Site, "_made", lambda *a, before=site.Site._made: made.append(a) or before(*a)
    )
    for _ in range(3):
        with mx.autograd.record():
            y = rows()
            for _ in range(5):
                y = net(y)
        y.backward()
        gc.collect()
    assert len(made) == 5


def test_calls_that_fail_keep_no_memory():
    net = dense(in_units=4)
    net(rows())
    for _ in range(3):
        with pytest.raises(GnomonError, match="weight"):
            net(rows(shape=(2, 5)))
        net(rows())
    (own,) = net._last._sites
    assert len(own._free) == sum(map(len, own._programs.values())) == 1


def test_batches_of_all_sizes_work_in_the_same_memory(monkeypatch):
    monkeypatch.setattr(site, "KINDS_KEPT", 6)

    def run(net):
        found = []
        for size in (7, 1, 13, 7, 2, 13, 5, 1):
            x, other = rows(size, (size, 4)), rows(size, (size + 1, 4))
            with mx.autograd.record():
                loss = (net(x) * net(other)[:-1]).sum()
            loss.backward()
            found += [loss.asnumpy(), *grads(net), net(other).asnumpy()]
        return found

    plain, hybrid = twins(lambda: nn.Dense(3, in_units=4), rows())
    same(run(hybrid), run(plain))
    (own,) = hybrid._last._sites
    gc.collect()
    assert len(own._programs) <= 6
    assert len(own._free) == 2  # two calls had their backward pass still to come


def test_parameters_that_move_to_another_context():
    plain, hybrid = twins(lambda: nn.Dense(3, in_units=4), rows())
    for where in ([mx.cpu(1)], [mx.cpu(0), mx.cpu(2)], [mx.cpu(2)]):
        found = []
        for net in (plain, hybrid):
            net.collect_params().reset_ctx(where)
            with mx.autograd.record():
                y = net(rows().as_in_context(where[-1]))
            y.backward()
            assert y.context == where[-1]
            found.append([y.asnumpy(), net.weight.grad(where[-1]).asnumpy()])
        same(*found)
    with pytest.raises(GnomonError, match=r"not initialized on cpu\(0\), only on cpu\(2\)"):
        hybrid(rows())
