"""What every rank of a job checks of the stores that join processes; run by `test_ranks.py`.

All ranks draw the values of all ranks from one seed: each pushes its own, and compares what comes
back with what it computes from everybody's.
"""

import functools
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, engine
from gnomon.kvstore.shards import SPLIT_BYTES
from gnomon.ranks import job

SHAPES = {"w": (3, 4), 5: (7,), "big": (SPLIT_BYTES // 128, 35), "scalar": (1,), "v": (2, 3, 5)}


class Rounds:
    """Gradients of all ranks, drawn round after round."""

    def __init__(self, store, shapes, seed=0):
        self.store, self.shapes = store, shapes
        self.draw = np.random.default_rng(seed)

    def __iter__(self):
        for _ in range(3):
            ranks = range(self.store.num_workers)
            yield [
                {k: self.draw.standard_normal(s, np.float32) for k, s in self.shapes.items()}
                for _ in ranks
            ]


def made(kind="dist_sync", shapes=SHAPES, dtype="float32"):
    store = mx.kv.create(kind)
    start = np.float32(1 if store.rank == 0 else 99)  # rank 0's counts
    store.init(list(shapes), [mx.nd.ones(s, dtype=dtype) * start for s in shapes.values()])
    return store


def arrays(table):
    return [mx.nd.array(a, dtype=a.dtype) for a in table.values()]


def pulled(store, shapes=SHAPES, dtype="float32"):
    outs = {k: mx.nd.zeros(s, dtype=dtype) for k, s in shapes.items()}
    store.pull(list(outs), out=list(outs.values()))
    return {k: a.asnumpy() for k, a in outs.items()}


def close(found, expected, rtol=1e-5, atol=1e-5):
    assert found.keys() == expected.keys()
    for key in found:
        np.testing.assert_allclose(found[key], expected[key], rtol, atol, err_msg=str(key))


def total(ranks):
    return {k: sum(each[k] for each in ranks) for k in ranks[0]}


def sums_of_lists_and_single_keys():
    store = made()
    close(pulled(store), {k: np.ones(s) for k, s in SHAPES.items()})
    for number, ranks in enumerate(Rounds(store, SHAPES)):
        mine = ranks[store.rank]
        if number == 1:  # one at a time, several devices, priorities
            for order, (key, value) in enumerate(mine.items()):
                halves = [mx.nd.array(value / 2, ctx=mx.cpu(k)) for k in range(2)]
                store.push(key, halves, priority=-order)
        else:
            store.push(list(mine), arrays(mine))
        close(pulled(store), total(ranks))
    for ranks in Rounds(store, SHAPES, 1):
        values = dict(zip(SHAPES, arrays(ranks[store.rank]), strict=True))
        store.pushpull(list(values), list(values.values()))
        close({k: v.asnumpy() for k, v in values.items()}, total(ranks))
    store.barrier()


def what_is_pushed_may_be_overwritten():
    store, out = made(shapes={"w": (4,)}), mx.nd.zeros((4,))
    value = mx.nd.ones((4,))
    store.push("w", value)
    value[:] = 50
    store.pull("w", out=out)
    assert out.asnumpy().tolist() == [store.num_workers] * 4


def other_types():
    for dtype in ("float16", "float64", "int32", "bfloat16"):
        shapes = {"a": (5,), "b": (SPLIT_BYTES // 16, 3)}
        store = made(shapes=shapes, dtype=dtype)
        ones = [mx.nd.ones(s, dtype=dtype) * (store.rank + 1) for s in shapes.values()]
        store.push(list(shapes), ones)
        n = store.num_workers
        for value in pulled(store, shapes, dtype).values():
            assert (value.astype("f4") == n * (n + 1) / 2).all()


def halves_on_the_wire():
    for wire in ("float16", "bfloat16"):
        with config.using(dist_wire_dtype=wire):
            near_sums(made(), 0.1)


def near_sums(store, atol):
    for ranks in Rounds(store, SHAPES):
        store.push(list(SHAPES), arrays(ranks[store.rank]))
        close(pulled(store), total(ranks), 0, atol)


def optimizers_are_those_of_one_process():
    for name in ("sgd", "adam", "lamb", "nadam", "nag"):
        store, single = made(), mx.kv.create("local")
        single.init(list(SHAPES), [mx.nd.ones(s) for s in SHAPES.values()])
        for each in (store, single):
            each.set_optimizer(mx.optimizer.create(name, learning_rate=0.1, wd=0.01))
        for ranks in Rounds(store, SHAPES):
            store.push(list(SHAPES), arrays(ranks[store.rank]))
            single.push(list(SHAPES), [[mx.nd.array(each[k]) for each in ranks] for k in SHAPES])
            close(pulled(store), pulled(single))
        if store.num_workers > 1 and name == "adam":
            kept = sum(s[0].size for s in store._updater.states.values())
            whole = sum(np.prod(s) for s in SHAPES.values())
            assert kept < 0.8 * whole  # a part of the states each


def keys_travel_in_any_company():
    """Groups that overlap: each lays the arrays of its keys together, away from others."""
    groups = [list(SHAPES), ["w", 5], [5, "v", "big"], ["v"], ["scalar", "w"], list(SHAPES)]
    for name in (None, "sgd", "nadam", "adam"):
        store, single = made(), mx.kv.create("local")
        single.init(list(SHAPES), [mx.nd.ones(s) for s in SHAPES.values()])
        pushed_alike(store, single, groups)
        if name is not None:  # what was received so far stays where it is
            store.set_optimizer(mx.optimizer.create(name, learning_rate=0.1, wd=0.01))
            single.set_optimizer(mx.optimizer.create(name, learning_rate=0.1, wd=0.01))
        pushed_alike(store, single, groups)


def pushed_alike(store, single, groups):
    for group, ranks in zip(groups, [*Rounds(store, SHAPES)] * 2, strict=True):
        store.push(group, [mx.nd.array(ranks[store.rank][k]) for k in group])
        single.push(group, [[mx.nd.array(each[k]) for each in ranks] for k in group])
        close(pulled(store), pulled(single))


def states_go_from_one_count_of_ranks_to_another():
    process = mx.kv.create("dist_sync")._comm.peers[0].process  # rank 0's: the same name on all
    file = Path(tempfile.gettempdir()) / f"gnomon-states-{process}"
    single = stateful(mx.kv.create("local"))
    store = stateful(mx.kv.create("dist_sync"))
    for _ in range(3):  # what was loaded is saved again
        for ranks in Rounds(store, SHAPES):
            store.push(list(SHAPES), arrays(ranks[store.rank]))
            single.push(list(SHAPES), [[mx.nd.array(each[k]) for each in ranks] for k in SHAPES])
        close(pulled(store), pulled(single))
        store.save_optimizer_states(str(file), dump_optimizer=True)
        weights, store = pulled(store), stateful(mx.kv.create("dist_sync"), 9)
        other = stateful(mx.kv.create("local"), 9)
        for each in (store, other):
            each.load_optimizer_states(str(file))
            for key, weight in weights.items():
                each._stored[key][:] = mx.nd.array(weight)
        single = other
    store.barrier()
    if store.rank == 0:
        file.unlink()


def stateful(store, rate=0.1):
    store.init(list(SHAPES), [mx.nd.ones(s) for s in SHAPES.values()])
    store.set_optimizer(mx.optimizer.create("adam", learning_rate=rate))
    return store


def a_command_may_bring_the_optimizer():
    for kind in ("dist_sync", "dist_async"):
        store, out = made(kind, {"w": (3,)}), mx.nd.zeros((3,))
        sgd = mx.optimizer.create("sgd", learning_rate=0.5)
        if kind == "dist_sync":
            store.send_command_to_servers(0, pickle.dumps(sgd, 0).decode("latin1"))
        else:
            store.set_optimizer(sgd)
        store.send_command_to_servers(7, "")
        store.push("w", mx.nd.ones((3,)))
        store.barrier()
        store.pull("w", out=out)
        assert out.asnumpy().tolist() == [1 - 0.5 * store.num_workers] * 3


def updaters_of_users_see_whole_sums():
    store = made()

    def update(key, gradient, stored):
        stored += 2 * gradient

    store.set_updater(update)
    expected = {k: np.ones(s, "f4") for k, s in SHAPES.items()}
    for ranks in Rounds(store, SHAPES):
        store.push(list(SHAPES), arrays(ranks[store.rank]))
        for key, each in total(ranks).items():
            expected[key] += 2 * each
    close(pulled(store), expected, 1e-4, 1e-4)


def compression_is_each_ranks_own():
    for kind in ("1bit", "2bit"):
        params = {"type": kind, "threshold": 0.5}
        store = made()
        ranks = [mx.kv.create("device") for _ in range(store.num_workers)]
        for each in ranks:
            each.init(list(SHAPES), [mx.nd.ones(s) for s in SHAPES.values()])
        for each in (store, *ranks):
            each.set_gradient_compression(params)
        for number, drawn in enumerate(Rounds(store, SHAPES)):
            push_in_either_way(store, drawn[store.rank], together=number > 0)
            for each, table in zip(ranks, drawn, strict=True):
                each.push(list(table), arrays(table))
            close(pulled(store), total([pulled(each) for each in ranks]))
        ints = mx.nd.ones((2,), dtype="int32")
        store.init("ints", ints)
        for keys, values in (("ints", ints), (["w", "ints"], [mx.nd.ones((3, 4)), ints])):
            with pytest.raises(TypeError, match="floating-point"):
                store.push(keys, values)


def push_in_either_way(store, table, together):
    if together:
        store.push(list(table), arrays(table))
        return
    for key, value in table.items():
        store.push(key, mx.nd.array(value))


def rows_of_all_ranks_are_summed():
    store, shape = mx.kv.create("dist_sync"), (6, 2)
    store.init("e", mx.nd.ones(shape).tostype("row_sparse") * (1 + store.rank))
    out = mx.nd.zeros(shape).tostype("row_sparse")
    everything = mx.nd.arange(6)
    store.row_sparse_pull("e", out=out, row_ids=everything)
    assert (out.asnumpy() == 1).all()
    for optimizer in (None, mx.optimizer.create("sgd", learning_rate=0.5)):
        if optimizer is not None:
            store.set_optimizer(optimizer)
        expected = out.asnumpy()
        gradient = np.zeros(shape, "f4")
        for rank in range(store.num_workers):
            gradient[[rank % 6, 5]] += rank + 1
        mine = np.full((2, 2), store.rank + 1, "f4")
        rows = mx.nd.sparse.row_sparse_array((mine, [store.rank % 6, 5]), shape=shape)
        if store.rank % 6 == 5:
            raise AssertionError("at most five ranks")
        store.push("e", rows)
        store.row_sparse_pull("e", out=out, row_ids=everything)
        expected = gradient if optimizer is None else expected - 0.5 * gradient
        np.testing.assert_allclose(out.asnumpy(), expected, 1e-5, 1e-5)


def horovod_sums_without_keys():
    store, out = mx.kv.create("horovod"), mx.nd.zeros((3,))
    assert (store.type, store.is_capable("optimizer")) == ("horovod", False)
    assert 0 <= store.local_rank < store.num_workers
    store.broadcast(0, mx.nd.ones((3,)) * (store.rank + 4), out=out)
    assert out.asnumpy().tolist() == [4, 4, 4]
    value = mx.nd.ones((3,)) * (store.rank + 1)
    store.pushpull("g", value)
    n = store.num_workers
    assert value.asnumpy().tolist() == [n * (n + 1) / 2] * 3


def bad_input_is_refused_before_anything_is_sent():
    store = made()
    for act, kind, words in (
        (lambda: store.push("none", mx.nd.ones((2,))), KeyError, "none"),
        (lambda: store.push("w", mx.nd.ones((2,))), ValueError, r"\(3, 4\)"),
        (lambda: store.push("w", mx.nd.ones((3, 4), dtype="float64")), TypeError, "float64"),
        (lambda: store.init("w", mx.nd.ones((3, 4))), ValueError, "new key"),
        (lambda: store.set_optimizer("sgd"), ValueError, "Optimizer"),
        (lambda: store.save_optimizer_states("x"), RuntimeError, "set_optimizer first"),
        (lambda: mx.kv.create("dist_snyc"), ValueError, "dist_sync"),
        (lambda: store.send_command_to_servers("0", ""), ValueError, "an int, got '0'"),
        (lambda: store.send_command_to_servers(0, None), ValueError, "a string, got NoneType"),
    ):
        with pytest.raises(kind, match=words):
            act()
    close(pulled(store), {k: np.ones(s) for k, s in SHAPES.items()})


def asynchronous_pushes_all_count():
    store = mx.kv.create("dist_async")
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5))
    store.init(list(SHAPES), [mx.nd.ones(s) * (store.rank + 1) for s in SHAPES.values()])
    close(pulled(store), {k: np.ones(s) for k, s in SHAPES.items()})
    with pytest.raises(ValueError, match="a new key, got 'n'"):
        store.init(["n", "n"], [mx.nd.ones((1,))] * 2)
    store.barrier()
    expected = {k: np.ones(s, "f4") for k, s in SHAPES.items()}
    for ranks in Rounds(store, SHAPES):
        before = pulled(store)
        store.push(list(SHAPES), arrays(ranks[store.rank]))
        assert not np.allclose(before["w"], pulled(store)["w"])  # a worker sees its own pushes
        for key, each in total(ranks).items():
            expected[key] -= 0.5 * each
    store.barrier()
    close(pulled(store), expected, 1e-4, 1e-4)
    store.barrier()
    mine = mx.nd.ones((3, 4)) * (store.rank + 1)
    store.pushpull("w", [mine, mine], out=mine)
    store.barrier()


def asynchronous_rows_bits_and_states():
    store, shape = mx.kv.create("dist_async"), (8, 2)
    file = Path(tempfile.gettempdir()) / f"gnomon-async-{store._comm.peers[0].process}"
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=1, momentum=0.5))
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("e", mx.nd.ones(shape).tostype("row_sparse"))
    store.init("b", mx.nd.zeros((SPLIT_BYTES,)))
    rows = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "f4"), [store.rank]), shape=shape)
    store.push(["e", "b"], [rows, mx.nd.ones((SPLIT_BYTES,)) * 0.6])
    store.barrier()
    out = mx.nd.zeros(shape).tostype("row_sparse")
    store.row_sparse_pull("e", out=out, row_ids=mx.nd.arange(8))
    n = store.num_workers
    assert out.asnumpy()[:, 0].tolist() == [0.0] * n + [1.0] * (8 - n)
    got = mx.nd.zeros((SPLIT_BYTES,))
    store.pull("b", out=got)
    first = got.asnumpy()
    assert (first == first[0]).all() and first[0] <= -0.5 * n
    if store.rank == 0:
        store.save_optimizer_states(str(file))
        single = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.5))
        single.set_states(file.read_bytes())
        assert single.states["b"].shape == (SPLIT_BYTES,)
        store.load_optimizer_states(str(file))
        file.unlink()
    store.barrier()
    with pytest.raises(RuntimeError, match="set_optimizer"):
        mx.kv.create("dist_async").set_updater(lambda key, grad, weight: None)


def named_sums_meet_in_any_order():
    store = mx.kv.create("dist_sync")
    assert (job.rank, job.count) == (store.rank, store.num_workers)
    names = [f"layer {k}" for k in range(6)]
    var, n = {name: engine.get().new_variable() for name in names}, store.num_workers
    found = {name: [] for name in names}

    def total(name, number, _):
        mine = np.arange(4.0).reshape(2, 2) + 10 * store.rank + number
        found[name].append(job.total(name, mine))

    for number in range(3):
        store.push("w", mx.nd.ones((3, 4))) if number else store.init("w", mx.nd.ones((3, 4)))
        for name in names if store.rank % 2 else reversed(names):
            work = functools.partial(total, name, number)
            engine.get().push_sync(work, None, (), (var[name],))
    engine.get().wait_for_all()
    for sums in found.values():
        for number, each in enumerate(sums):
            expected = n * (np.arange(4.0).reshape(2, 2) + number) + 5 * n * (n - 1)
            np.testing.assert_array_equal(each, expected)
    with pytest.raises(TypeError, match="array of numbers"):
        job.total("text", np.array(["a"]))


CHECKS = (
    sums_of_lists_and_single_keys, what_is_pushed_may_be_overwritten, other_types,
    halves_on_the_wire, optimizers_are_those_of_one_process, keys_travel_in_any_company,
    states_go_from_one_count_of_ranks_to_another, a_command_may_bring_the_optimizer,
    updaters_of_users_see_whole_sums,
    compression_is_each_ranks_own, rows_of_all_ranks_are_summed, horovod_sums_without_keys,
    bad_input_is_refused_before_anything_is_sent, asynchronous_pushes_all_count,
    asynchronous_rows_bits_and_states, named_sums_meet_in_any_order,
)  # fmt: skip

if __name__ == "__main__":
    chosen = sys.argv[1:]
    for check in CHECKS:
        if not chosen or check.__name__ in chosen:
            check()
            print("done", check.__name__, flush=True)
