"""Lines of random programs that train: modules, recurrent layers, schedules, networks in files.

Each function takes the writer of a program and gives its next lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

OPTIMIZERS = """
    sgd|momentum=0.5 sgd|wd=0.25 adam| nag|momentum=0.5 rmsprop| adagrad| ftrl| signum|
    sgd|clip_gradient=0.25
""".split()
METRICS = "acc ce mse mae loss top_k_accuracy perplexity".split()


def module(w: Any) -> Iterator[str]:
    """A module over a small network, trained; then what it predicts, and its score."""
    rng, m, s, i = w.rng, w.fresh("u"), w.fresh("s"), w.fresh("i")
    rows, columns, classes = rng.randint(2, 7), rng.randint(1, 5), rng.randint(2, 4)
    yield f"{s} = mx.sym.Variable('data')"
    for k in range(rng.randint(1, 3)):
        yield f"{s} = " + rng.choice([
            f"mx.sym.FullyConnected({s}, num_hidden={rng.randint(1, 5)}, name='fc{k}', "
            f"no_bias={rng.random() < 0.3})",
            f"mx.sym.Activation({s}, act_type={rng.choice(['relu', 'tanh', 'sigmoid'])!r})",
            f"mx.sym.BatchNorm({s}, name='bn{k}', fix_gamma={rng.random() < 0.5}, momentum=0.5)",
            f"mx.sym.broadcast_mul({s}, mx.sym.Variable('v{k}', shape=(1, 1)))",
            f"mx.sym.concat({s}, {s} * 2, dim=1)",
            f"mx.sym.LeakyReLU({s}, act_type='leaky')",
        ])  # fmt: skip
    yield f"{s} = mx.sym.FullyConnected({s}, num_hidden={classes}, name='last')"
    yield f"{s} = mx.sym.SoftmaxOutput({s}, name='softmax')"
    size = rng.randint(1, rows)
    handle = rng.choice(["pad", "discard", "roll_over"])
    data = f"filled({rng.randrange(99)}, ({rows}, {columns}), 'float32', 1)"
    label = f"np.abs(filled({rng.randrange(99)}, ({rows},), 'float32')) % {classes}"
    yield (
        f"{i} = mx.io.NDArrayIter({data}, {label}, batch_size={size}, last_batch_handle={handle!r})"
    )
    yield f"{m} = mx.mod.Module({s})"
    yield f"{m}.bind({i}.provide_data, {i}.provide_label)"
    yield f"{m}.init_params(mx.init.Constant(0.25))"
    yield (
        f"{m}.set_params({{k: nd.array(filled(len(k), v.shape, 'float32', 1) / 4) "
        f"for k, v in {m}.get_params()[0].items()}}, {m}.get_params()[1])"
    )
    name, _, options = rng.choice(OPTIMIZERS).partition("|")
    metric = rng.choice(METRICS)
    given = f"dict(learning_rate=0.125, {options})"
    options = {"top_k_accuracy": ", top_k=2", "perplexity": ", ignore_label=None"}
    made = f"mx.metric.create({metric!r}{options.get(metric, '')})"
    if metric in ("mse", "mae"):
        made = "mx.metric.create('loss')"
    yield (
        f"{m}.fit({i}, num_epoch={rng.randint(1, 2)}, optimizer={name!r}, "
        f"optimizer_params={given}, eval_metric={made})"
    )
    yield f"q{m} = [v.copy() for k, v in sorted({m}.get_params()[0].items())]"
    yield f"q{m}x = [v.copy() for k, v in sorted({m}.get_params()[1].items())]"
    yield f"{w.fresh('a')} = {m}.predict({i})"
    yield f"r{m} = {m}.score({i}, {made})"
    if rng.random() < 0.4:
        yield from reloaded(w, m, s, rows, columns)


def reloaded(w: Any, m: str, s: str, rows: int, columns: int) -> Iterator[str]:
    """The module's parameters in another one, over other sizes of batches."""
    n = w.fresh("u")
    yield f"{n} = mx.mod.Module(mx.sym.load_json({s}.tojson()), label_names=None)"
    yield f"{n}.bind([('data', ({rows + 2}, {columns}))], for_training=False)"
    yield f"{n}.set_params(*{m}.get_params())"
    data = f"nd.array(filled(7, ({rows + 2}, {columns}), 'float32', 1))"
    yield f"{n}.forward(mx.io.DataBatch([{data}]), is_train=False)"
    yield f"{w.fresh('a')} = {n}.get_outputs()[0].copy()"


def recurrent(w: Any) -> Iterator[str]:
    """A recurrent layer or cell of Gluon, with gradients of its parameters."""
    rng, n, x = w.rng, w.fresh("n"), w.fresh("a")
    steps, rows, size = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 4)
    hidden, layers = rng.randint(1, 4), rng.randint(1, 2)
    layout = rng.choice(["TNC", "NTC"])
    kind = rng.choice(["LSTM", "GRU", "RNN"])
    two = rng.random() < 0.4
    if rng.random() < 0.6:
        given = f"num_layers={layers}, layout={layout!r}, bidirectional={two}"
        yield f"{n} = gluon.rnn.{kind}({hidden}, {given}, input_size={size}, prefix='{n}_')"
        call = f"{n}({x})"
    else:
        yield f"{n} = gluon.rnn.{kind}Cell({hidden}, input_size={size}, prefix='{n}_')"
        call = f"{n}.unroll({steps}, {x}, layout={layout!r}, merge_outputs=True)[0]"
    yield f"{n}.initialize(mx.init.Constant(0.125))"
    yield (
        f"for k, p in enumerate({n}.collect_params().values()): "
        "p.set_data(nd.array(filled(k, p.shape, 'float32', 1) / 8))"
    )
    if rng.random() < 0.4:
        yield f"{n}.hybridize()"
    shape = (steps, rows, size) if layout == "TNC" else (rows, steps, size)
    yield f"{x} = nd.array(filled({rng.randrange(99)}, {shape}, 'float32', 1))"
    yield f"{x}.attach_grad()"
    scope, y = w.fresh("c"), w.fresh("a")
    yield f"{scope} = autograd.record(); _ = {scope}.__enter__()"
    yield f"{y} = {call}"
    yield f"{scope}.__exit__(None, None, None)"
    yield f"{y}.backward()"
    yield f"g{y} = {x}.grad.copy()"
    yield f"q{n} = [p.grad().copy() for p in {n}.collect_params().values()]"


def scheduled(w: Any) -> Iterator[str]:
    """Rates of a schedule, and an optimizer that follows one."""
    rng, o = w.rng, w.fresh("o")
    made = rng.choice([
        f"FactorScheduler(step={rng.randint(1, 3)}, factor=0.5, stop_factor_lr=0.01)",
        "MultiFactorScheduler(step=[2, 5], factor=0.25)",
        f"PolyScheduler(max_update=6, base_lr=0.5, pwr={rng.choice((1, 2))}, final_lr=0.1)",
        "CosineScheduler(max_update=6, base_lr=0.5, final_lr=0.1, warmup_steps=2)",
        "FactorScheduler(step=2, warmup_steps=3, warmup_begin_lr=0.1, warmup_mode='constant')",
        "PolyScheduler(max_update=1)",
        "FactorScheduler(step=0)",
    ])  # fmt: skip
    yield f"{o} = mx.lr_scheduler.{made}"
    yield f"r{o} = [{o}(k) for k in range(1, 9)]"
    x = w.pool.some(lambda v: str(v.dtype).find("float32") >= 0)
    name = rng.choice(["sgd", "adam", "nag"])
    yield f"{o} = mx.optimizer.create({name!r}, lr_scheduler={o}, learning_rate=0.5)"
    yield f"{o} = mx.optimizer.get_updater({o})"
    yield f"for _ in range(4): {o}(0, {w.pool.like(x)} * 0.25, {x})"


def kept(w: Any) -> Iterator[str]:
    """A symbol's text, its lists and its shapes, after a round trip."""
    from_names = w.every("s")
    if not from_names:
        return
    s, t = w.rng.choice(from_names), w.fresh("s")
    yield f"{t} = mx.sym.load_json({s}.tojson())"
    r = w.fresh("r")
    yield f"{r} = [{t}.list_arguments() == {s}.list_arguments(), len({t}.list_outputs())]"
    yield f"{r}b = len({t}.get_internals().list_outputs())"
    yield f"{r}c = {t}.infer_shape_partial()[1]"
    yield f"{r}d = {t}.infer_type()[1]"
    yield f"{r}e = mx.sym.Group([{t}, {s}]).list_outputs() == {s}.list_outputs() * 2"


def looped(w: Any) -> Iterator[str]:
    """Loops and choices of operators, over arrays."""
    p = w.pool
    x = p.some(lambda v: len(v.shape) >= 2)
    y = w.rng.choice([
        f"nd.contrib.foreach(lambda x, s: (x * 2 + s, s + x), {x}, nd.zeros_like({x}[0]))[0]",
        f"nd.contrib.foreach(lambda x, s: (x - s, x), {x}, nd.ones_like({x}[0]))[1]",
        f"nd.contrib.while_loop(lambda i, s: i < 3, lambda i, s: (s + i, [i + 1, s * 2]), "
        f"[nd.zeros((1,)), {x}.sum().reshape((1,))], max_iterations=3)[0]",
        f"nd.contrib.cond({x}.sum() > 0, lambda: {x} * 2, lambda: {x} - 1)",
        f"nd.contrib.isfinite({x})",
        f"nd.contrib.boolean_mask({x}, nd.array(np.arange({x}.shape[0]) % 2))",
    ])  # fmt: skip
    yield f"{w.fresh('a')} = {y}"


TRAINING = [module] * 2 + [recurrent] * 2 + [scheduled, kept, kept, looped]
