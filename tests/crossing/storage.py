"""Lines of random programs over sparse arrays: made, computed with, trained with, written.

Each function takes the writer of a program and gives its next lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def sparse(w: Any) -> list[str]:
    """The names of sparse arrays."""
    return [n for n in w.every("a") if getattr(w.names[n], "stype", "default") != "default"]


def made(w: Any) -> Iterator[str]:
    """A sparse array: of parts, of a dense one, empty."""
    rng = w.rng
    rows, columns = rng.choice((1, 2, 3, 4, 8)), rng.choice((1, 2, 3, 5))
    dense = f"filled({rng.randrange(99)}, ({rows}, {columns}), 'float32') % 2"
    kept = sorted(rng.sample(range(rows), rng.randint(0, rows)))
    values = f"filled({rng.randrange(99)}, ({len(kept)}, {columns}), 'float32', 1)"
    text = rng.choice([
        f"nd.array({dense}).tostype({rng.choice(['csr', 'row_sparse'])!r})",
        f"nd.sparse.row_sparse_array(({values}, {kept}), shape=({rows}, {columns}))",
        f"nd.sparse.csr_matrix({dense})",
        f"nd.sparse.zeros({rng.choice(['csr', 'row_sparse'])!r}, ({rows}, {columns}))",
        f"nd.sparse.csr_matrix(([1.0, 2.0], ([0, {rows - 1}], [0, {columns - 1}])), "
        f"shape=({rows}, {columns}))",
    ])  # fmt: skip
    yield f"{w.fresh('a')} = {text}"


def used(w: Any) -> Iterator[str]:
    """A sparse array in an operator."""
    names = sparse(w)
    if not names:
        yield from made(w)
        return
    rng, x = w.rng, w.rng.choice(names)
    shape = tuple(w.names[x].shape)
    y = rng.choice([n for n in names if tuple(w.names[n].shape) == shape])
    dense = f"nd.array(filled({rng.randrange(99)}, {shape}, 'float32', 1))"
    side = f"nd.array(filled(3, ({shape[1]}, 2), 'float32', 1))"
    other = f"nd.array(filled(4, ({shape[0]}, 3), 'float32', 1))"
    number = w.pool.number()
    text = rng.choice([
        f"{x} + {y}", f"{x} - {y}", f"{x} * {y}", f"{x} * {dense}", f"{x} + {dense}",
        f"{dense} - {x}", f"{x} * {number}", f"{x} / 2", f"-{x}", f"{x} + {number}",
        f"nd.dot({x}, {side})", f"nd.dot({x}, {other}, transpose_a=True)",
        f"nd.sparse.dot({x}, {side})", f"nd.sparse.add({x}, {y})",
        f"nd.sparse.multiply({x}, {y})", f"nd.sparse.subtract({x}, {dense})",
        f"nd.sparse.elemwise_add({x}, {y})", f"nd.sparse.square({x})", f"nd.sparse.abs({x})",
        f"nd.sparse.sign({x})", f"nd.sparse.sqrt(nd.sparse.abs({x}))", f"nd.sparse.relu({x})",
        f"nd.sparse.sum({x}, axis={rng.choice((0, 1))})", f"nd.sparse.tanh({x})",
        f"nd.sparse.clip({x}, {rng.choice(['-1', '0'])}, 2)", f"nd.sparse.mean({x}, axis=0)",
        f"nd.sparse.retain({x}, nd.array([0]))", f"{x}.tostype('default')", f"{x}[0:1]",
        f"{x}[:]", f"{x}.copy()", f"{x}.astype('float64')",
        f"{x}.tostype('row_sparse')", f"{x}.tostype('csr')", f"nd.norm({x})",
        f"nd.sparse.where({x}, {dense}, {dense})", f"nd.sparse.zeros_like({x})",
        f"nd.sparse.concat({x}, {y}, dim=0)", f"nd.sparse.sum({x})", f"nd.sparse.norm({x})",
        f"nd.cast_storage({dense}, 'row_sparse')", f"nd.sparse.broadcast_add({x}, {side})",
        f"nd.sparse.elemwise_mul({x}, {y})", f"nd.sparse.log1p({x})", f"nd.sparse.sin({x})",
    ])  # fmt: skip
    yield f"{w.fresh('a')} = {text}"


def written(w: Any) -> Iterator[str]:
    """A sparse array written, or a weight updated by rows."""
    rng, names = w.rng, sparse(w)
    if not names:
        yield from made(w)
        return
    x = rng.choice(names)
    shape = tuple(w.names[x].shape)
    y = rng.choice([n for n in names if tuple(w.names[n].shape) == shape])
    dense = f"nd.array(filled({rng.randrange(99)}, {shape}, 'float32', 1))"
    a, o = w.fresh("a"), w.fresh("o")
    name = rng.choice(["sgd", "adam", "adagrad", "ftrl"])
    form = rng.randrange(4)
    if form == 0:
        yield f"{x}[:] = {rng.choice([y, dense, dense + '.tostype(' + repr('csr') + ')'])}"
    elif form == 1:
        yield f"{a} = nd.zeros({shape})"
        yield f"{x}.copyto({a})"
    elif form == 2:
        yield f"{x}.copyto({y})"
    else:
        yield f"{a} = {dense}"
        yield f"{o} = mx.optimizer.get_updater(mx.optimizer.create({name!r}, learning_rate=0.5))"
        yield f"for _ in range(2): {o}(0, {x}, {a})"


def embedded(w: Any) -> Iterator[str]:
    """An embedding with gradients by rows, and a step of a trainer."""
    rng, n = w.rng, w.fresh("n")
    rows, size = rng.randint(2, 5), rng.randint(1, 3)
    yield f"{n} = gluon.nn.Embedding({rows}, {size}, sparse_grad=True, prefix='{n}_')"
    yield f"{n}.initialize(mx.init.One())"
    name = rng.choice(["sgd", "adam", "adagrad"])
    t, y, scope = w.fresh("t"), w.fresh("a"), w.fresh("c")
    yield f"{t} = gluon.Trainer({n}.collect_params(), {name!r}, dict(learning_rate=0.5))"
    ids = [rng.randrange(rows) for _ in range(rng.randint(1, 4))]
    for _ in range(rng.randint(1, 2)):
        yield f"{scope} = autograd.record(); _ = {scope}.__enter__()"
        yield f"{y} = {n}(nd.array({ids})) * 2"
        yield f"{scope}.__exit__(None, None, None)"
        yield f"{y}.backward()"
        yield f"g{y} = {n}.weight.grad().copy()"
        yield f"{t}.step({rng.choice((1, 2))})"
    yield f"q{n} = {n}.weight.data().copy()"


STORAGE = [made] * 2 + [used] * 5 + [written, embedded]
