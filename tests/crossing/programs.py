"""Random programs of MXNet: arrays, gradients, symbols, blocks, optimizers and metrics mixed.

A program is written while gnomon runs it, so that its lines know the shapes there are; most are
right, some ask for what must be refused. Every line is one statement over `mx`, `nd`, `np` and the
names that lines before it made: `a...` arrays, `s...` symbols, `e...` executors, `n...` blocks,
`o...` updaters, `m...` metrics, `t...` trainers, `u...` modules, `i...` iterators.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.crossing.expressions import DTYPES, LARGE, SIZES, Pool
from tests.crossing.operators import expression
from tests.crossing.storage import STORAGE
from tests.crossing.training import TRAINING

OPTIMIZERS = """
    sgd|momentum=0.9 sgd|wd=0.1 nag|momentum=0.5 adam|wd=0.01 adagrad| rmsprop| adadelta|
    rmsprop|centered=True ftrl|lamda1=0.1 adamax| nadam| signum|momentum=0.9 ftml| lamb| dcasgd|
    sgd|clip_gradient=0.5 sgd|multi_precision=True lars|momentum=0.9
""".split()
METRICS = """
    acc| top_k_accuracy|top_k=2 mae| mse| rmse| ce| nll_loss| f1| mcc| pearsonr| pcc| loss|
    perplexity|ignore_label=None composite|
""".split()
LOSSES = "L2Loss L1Loss SoftmaxCrossEntropyLoss HuberLoss HingeLoss LogisticLoss KLDivLoss".split()
SAFE = "+ - * + - * /".split()
WRONG = "None|'x'|-1|(2, 3)|[]|2**40|object()".split("|")


def space(mx: Any) -> dict[str, Any]:
    """The names that a program begins with."""
    return {
        "mx": mx, "nd": mx.nd, "np": np, "sym": mx.sym, "autograd": mx.autograd,
        "gluon": mx.gluon, "filled": filled,
    }  # fmt: skip


def filled(seed: int, shape: tuple[int, ...], dtype: str, kind: int = 0) -> Any:
    """Numbers that are exact in every dtype: whole, halves, or of either sign and zero."""
    draw = np.random.RandomState(seed)
    found = draw.randint(0 if dtype.startswith("u") else -3, 4, shape)
    if kind == 1 and dtype.startswith("float"):
        return (found + draw.randint(0, 8, shape) / 8).astype(dtype)
    return found.astype(dtype)


class Writer:
    """Writes lines over the names of a program that runs meanwhile."""

    def __init__(self, seed: int, names: dict[str, Any], run: Callable[[str], bool]) -> None:
        self.rng, self.names, self.run = random.Random(seed), names, run
        self.count, self.lines = 0, list[str]()
        self.pool = Pool(self.rng, names)
        self.known: dict[str, Any] = {}  # what arrays would be like that symbols stand for

    def write(self, length: int) -> list[str]:
        """The lines of a program."""
        self.add("mx.random.seed(5)")
        if self.rng.random() < 0.06:
            self.add("mx.util.set_np_shape(True)")
        for _ in range(3):
            self.add(self.leaf())
        while len(self.lines) < length:
            for line in self.rng.choice(KINDS)(self):
                self.add(line)
        self.add("autograd.set_recording(False)")
        self.add("autograd.set_training(False)")
        self.add("mx.util.set_np_shape(False)")
        return self.lines

    def add(self, line: str) -> bool:
        """Run a line, and keep it whether or not it was refused."""
        self.lines.append(line)
        return self.run(line)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def every(self, kind: str) -> list[str]:
        """The names of one kind."""
        return [n for n in self.names if n[0] == kind and n[1:].isdigit()]

    # -- arrays ---------------------------------------------------------------------------------

    def leaf(self) -> str:
        rank = self.rng.choice((1, 1, 2, 2, 2, 3, 4))
        shape = tuple(self.rng.choice(SIZES[:7] if rank > 2 else SIZES) for _ in range(rank))
        if self.chance(0.06):
            shape = self.rng.choice(LARGE)
        if self.chance(0.5) and (known := self.pool.every()):
            shape = self.pool.shape(self.rng.choice(known))
        dtype, seed = self.rng.choice(DTYPES), self.rng.randrange(99)
        if self.names["mx"].util.is_np_shape() and self.chance(0.4):
            shape = self.rng.choice([(), (0,), (0, 2), (2, 0, 1)])
        made = f"filled({seed}, {shape}, {dtype!r}, {self.rng.randrange(2)})"
        return f"{self.fresh('a')} = nd.array({made}, dtype={dtype!r})"

    def made(self) -> Iterator[str]:
        text = expression(self.pool, "nd")
        if self.chance(0.04):
            x = self.pool.some()
            text = text.replace(x, self.rng.choice(WRONG), 1)
        if self.chance(0.08):
            text = text[:-1] + f", out={self.pool.some()})" if text[-1] == ")" else text
        yield f"{self.fresh('a')} = {text}"

    def operated(self) -> Iterator[str]:
        """Operators of Python, with arrays or numbers at either side."""
        p = self.pool
        x = p.some()
        other = self.rng.choice([p.number(), p.wide(x), p.like(x), p.wide(x)])
        sign = self.rng.choice("+ - * / % ** < <= == != > >=".split())
        if sign == "**":
            other = self.rng.choice(["2", "1", "3"])
        text = f"{x} {sign} {other}" if self.chance(0.7) or sign == "**" else f"{other} {sign} {x}"
        yield f"{self.fresh('a')} = {text}"

    def method(self) -> Iterator[str]:
        p = self.pool
        x = p.some()
        y = p.like(x)
        text = self.rng.choice([
            f"{x}.sum()", f"{x}.T", f"{x}.copy()", f"{x}.reshape((-1,))", f"{x}.reshape((0, -1))",
            f"{x}.astype({self.rng.choice(DTYPES)!r})", f"{x}.expand_dims(0)", f"{x}.squeeze()",
            f"{x}.flatten()", f"{x}.mean(axis={p.axis(x)})", f"{x}.max()", f"{x}.detach()",
            f"{x}.clip(-1, 2)", f"{x}.transpose()", f"{x}.swapaxes(0, {p.axis(x)})", f"-{x}",
            f"abs({x})", f"{x}.slice_axis(axis=0, begin=0, end=1)", f"{x}.reshape_like({y})",
            f"{x}.broadcast_like({p.wide(x)})", f"{x}.as_in_context(mx.cpu())", f"{x}.zeros_like()",
            f"{x}.tile((2,))", f"{x}.one_hot(3)", f"{x}.argmax(axis={p.axis(x)})", f"{x}.norm()",
            f"{x}.reshape(({', '.join(map(str, p.shape(x)[::-1]))},))", f"{x}.sign()",
            f"nd.array({x}.asnumpy(), dtype={x}.dtype)", f"nd.array({x})",
            f"{x}.tostype('default')",
            f"nd.zeros_like({x})", f"nd.full({p.shape(x)}, {p.number()}, dtype={x}.dtype)",
            f"nd.arange(0, {self.rng.randint(1, 9)}, {self.rng.choice((1, 0.5, 2))})",
            f"nd.concatenate([{x}, {y}], axis=0)", f"nd.maximum({x}, {p.number()})",
            f"nd.{self.rng.choice(['add', 'subtract', 'multiply', 'divide', 'modulo', 'power'])}"
            f"({x}, {self.rng.choice([y, p.number()])})",
        ])  # fmt: skip
        yield f"{self.fresh('a')} = {text}"

    def key(self, x: str) -> str:
        """An index of an array."""
        shape = self.pool.shape(x) or (1,)
        parts = []
        for n in shape[: self.rng.randint(1, len(shape))]:
            b, e = self.rng.choice(["", "0", "1", "-1"]), self.rng.choice(["", str(n), "2", "-1"])
            index = [self.rng.randrange(n) for _ in range(2)] if n else [0]
            one = str(index[0] - n * self.chance(0.4))
            parts.append(self.rng.choice(
                [one, f"{b}:{e}", f"{b}:{e}", ":", f"{b}:{e}:2", "::-1", str(index)]
            ))  # fmt: skip
        if self.chance(0.06):
            parts[0] = self.rng.choice(["99", "None", "...", "'x'", "1.5"])
        if len(shape) > 1 and self.chance(0.1):
            return f"nd.array({[0] * 2}, dtype='int32')"
        return ", ".join(parts)

    def viewed(self) -> Iterator[str]:
        x = self.pool.some()
        key = self.key(x)
        apart = any(part in key for part in (",", "::", ":2"))  # in MXNet a copy
        yield f"{self.fresh('a')} = {x}[{key}]{'.copy()' * apart}"

    def written(self) -> Iterator[str]:
        """In-place: of the whole, of a part, by an operator's `out`."""
        p = self.pool
        x = p.some()
        same = p.like(x)
        key, other = self.key(x), self.rng.choice([p.number(), p.wide(x), same])
        yield self.rng.choice([
            f"{x}[:] = {other}",
            f"{x}[{key}] = {p.number()}",
            f"{x}[{key}] = {same}[{key}]",
            f"{x}[{key}] = {x}[{key}] * 2",
            f"{x}[{key}] += {p.number()}",
            f"{x} += {other}",
            f"{x} -= {other}",
            f"{x} *= {other}",
            f"{x} /= {self.rng.choice(['2', '4', '0.5', same])}",
            f"{same}.copyto({x})",
            f"nd.broadcast_add({x}, {same}, out={x})",
            f"nd.elemwise_mul({x}, {same}, out={same})",
            f"nd.sum({x}, axis=0, out={p.some()})",
            f"nd.sgd_update({x}, {same}, lr=0.5, out={x})",
            f"nd.relu({x}, out={same})",
            f"{x}[{key}] = abs(filled(3, {p.shape(x)}, 'float32'))[{key}]",
            f"{x}[:] = abs(filled(4, {p.shape(x)}, 'float32'))",
        ])  # fmt: skip

    def again(self) -> Iterator[str]:
        """A loop of statements: what is known from before."""
        x = self.pool.some()
        y, z = self.pool.like(x), self.pool.wide(x)
        body = self.rng.choice([
            f"{x}[:] = {x} * 0.5 + {z}", f"{x} += {y}", f"{x} = {x} - {z}",
            f"{x} = nd.relu({x}) + {y}",
            f"{x}[0:1] = {y}[0:1] + {x}[0:1]", f"{x} = nd.abs({x}) * 0.5; {x}[:] = {x} + {y}",
            f"{x} = {x}.T", f"{x} = nd.exp(-nd.abs({x}))",
            f"{x} = ({x} > {y}) * {x}", f"{x} = nd.concat({x}, {y}, dim=0)[0:{x}.shape[0]] - {y}",
        ])  # fmt: skip
        yield f"for _ in range({self.rng.choice((2, 3, 12))}): {body}"

    def scalar(self) -> Iterator[str]:
        x = self.pool.some()
        yield f"r{self.count} = {self.rng.choice(['len', 'str', 'bool'])}({x})"
        yield f"r{self.count}b = {x}.{self.rng.choice(['size', 'ndim', 'shape', 'dtype', 'stype'])}"
        yield f"r{self.count}c = {x}.asscalar()"

    # -- gradients ------------------------------------------------------------------------------

    def recorded(self) -> Iterator[str]:
        """Variables, what is computed of them, and their gradients."""
        wanted = {self.pool.some(lambda v: np.dtype(v.dtype).kind == "f") for _ in range(2)}
        requests = {x: self.rng.choice(["write", "write", "write", "add", "null"]) for x in wanted}
        for x in sorted(wanted):
            yield f"{x}.attach_grad(grad_req={requests[x]!r})"
        mode = self.rng.choice(["", "", "train_mode=False"])
        scope = self.fresh("c")
        yield f"{scope} = autograd.record({mode}); _ = {scope}.__enter__()"
        first = self.count
        for _ in range(self.rng.randint(1, 5)):
            kinds = [Writer.made] * 4 + [Writer.operated] * 3 + [Writer.method, Writer.viewed]
            kinds += [Writer.written] * self.chance(0.3) + [Writer.paused] * self.chance(0.2)
            yield from self.rng.choice(kinds)(self)
        yield f"{scope}.__exit__(None, None, None)"
        heads = [n for n in self.every("a") if int(n[1:]) > first] or self.every("a")
        given = sorted(x for x in wanted if requests[x] != "null")
        yield from self.followed(self.rng.choice(heads[-3:]), given, heads)

    def paused(self) -> Iterator[str]:
        x = self.pool.some()
        yield f"with autograd.pause(): {self.fresh('a')} = {x} * 2"

    def followed(self, head: str, wanted: list[str], heads: list[str]) -> Iterator[str]:
        """Backward, by one of its forms."""
        other = self.rng.choice(heads)
        form = self.rng.randrange(5)
        if form == 0:
            yield f"{head}.backward(nd.ones_like({head}) * 2)"
        elif form == 1 and wanted:
            yield f"{self.fresh('a')} = autograd.grad({head}, [{wanted[0]}], retain_graph=True)[0]"
        elif form == 2 and head != other:
            yield f"autograd.backward([{head}, {other}])"
        elif form == 3:
            yield f"{head}.backward(retain_graph=True)"
            yield f"{head}.backward()"
        else:
            yield f"{head}.backward()"
        for x in wanted:
            yield f"g{self.count}{x} = {x}.grad.copy()"

    # -- symbols --------------------------------------------------------------------------------

    def symbols(self) -> Iterator[str]:
        """A symbol over variables, bound to copies of arrays, run forward and backward."""
        arrays = sorted({self.pool.some() for _ in range(3)})
        self.known = {}
        for x in arrays:
            s = self.fresh("s")
            yield f"{s} = mx.sym.Variable({s!r})"
            self.known[s] = self.names[x]
        given = dict(zip(self.known, arrays, strict=True))
        last = s
        for _ in range(self.rng.randint(1, 6)):
            if (line := self.next_symbol()) is not None:
                yield line
                last = line.split(" ")[0]
        yield from self.bound(last, given)

    def next_symbol(self) -> str | None:
        """The next expression of symbols; None where arrays refuse it."""
        text, name = expression(Pool(self.rng, self.known), "sym"), self.fresh("s")
        try:
            made = eval(text, {"sym": self.names["nd"]}, dict(self.known))
            made.wait_to_read()
        except Exception:
            if not self.chance(0.1):
                return None
            made = next(iter(self.known.values()))
        if isinstance(made, list):
            return None
        self.known[name] = made
        return f"{name} = {text}"

    def bound(self, last: str, given: dict[str, str]) -> Iterator[str]:
        e = self.fresh("e")
        request = self.rng.choice(["write", "write", "add", "null"])
        args = ", ".join(f"{s!r}: {x}.copy()" for s, x in given.items())
        grads = ", ".join(f"{s!r}: nd.ones_like({x})" for s, x in given.items())
        have = f"set({last}.list_arguments())"
        yield (
            f"{e} = {last}.bind(mx.cpu(), {{k: v for k, v in {{{args}}}.items() if k in {have}}}, "
            f"args_grad={{k: v for k, v in {{{grads}}}.items() if k in {have}}}, "
            f"grad_req={request!r})"
        )
        train = self.chance(0.7)
        a = self.fresh("a")
        yield f"{a} = {e}.forward(is_train={train})[0].copy()"
        if train and request != "null":
            yield f"{e}.backward([nd.ones_like(o) for o in {e}.outputs])"
            for s in given:
                yield f"g{e}{s} = {e}.grad_dict[{s!r}].copy()"

    # -- training -------------------------------------------------------------------------------

    def updated(self) -> Iterator[str]:
        """Steps of an optimizer on a weight; in float16 MXNet's states have few digits."""
        name, _, options = self.rng.choice(OPTIMIZERS).partition("|")
        w = self.pool.some(lambda v: v.dtype in (np.float32, np.float64))
        o = self.fresh("o")
        options = f"learning_rate={self.rng.choice((0.5, 0.125))}, {options}"
        yield f"{o} = mx.optimizer.get_updater(mx.optimizer.create({name!r}, {options}))"
        for k in range(self.rng.randint(1, 3)):
            yield f"{o}({k % 2}, {self.pool.like(w)} * 0.5, {w})"

    def measured(self) -> Iterator[str]:
        name, _, options = self.rng.choice(METRICS).partition("|")
        m, seed = self.fresh("m"), self.rng.randrange(99)
        made = f"mx.metric.create({name!r}{', ' * bool(options)}{options})"
        if name == "composite":
            made = "mx.metric.create(['acc', 'mse'])"
        yield f"{m} = {made}"
        for _ in range(self.rng.randint(1, 3)):
            n, k = self.rng.randint(2, 5), 2 if name in ("f1", "mcc") else self.rng.randint(2, 3)
            pred = f"nd.softmax(nd.array(filled({seed}, ({n}, {k}), 'float32', 1)))"
            label = f"nd.array(np.abs(filled({seed + 1}, ({n},), 'float32')) % {k})"
            if name in ("mae", "mse", "rmse", "pearsonr", "loss") and self.chance(0.7):
                pred = self.pool.some()
                label = self.pool.like(pred)
            yield f"{m}.update([{label}], [{pred}])"
        yield f"r{m} = {m}.get()"

    def block(self) -> Iterator[str]:
        """A network of Gluon, trained by a step or two."""
        n, x = self.fresh("n"), self.pool.some(lambda v: v.dtype == np.float32)
        yield f"{n} = gluon.nn.HybridSequential(prefix='{n}_')"
        for _ in range(self.rng.randint(1, 4)):
            yield f"{n}.add(gluon.nn.{self.layer(len(self.pool.shape(x)))})"
        yield f"{n}.initialize(mx.init.Constant(0.25))"
        if self.chance(0.5):
            yield f"{n}.hybridize({self.rng.choice(['', 'static_alloc=True'])})"
        y = self.fresh("a")
        yield f"{y} = {n}({x})"
        yield f"for k, p in enumerate({n}.collect_params().values()): " + (
            "p.set_data(nd.array(np.abs(filled(k, p.shape, 'float32', 1)) / 4))"
        )
        yield f"{y} = {n}({x})"
        yield from self.trained(n, x, y)

    def layer(self, rank: int) -> str:
        some = [
            f"Dense({self.rng.randint(1, 4)}, flatten={self.chance(0.7)})",
            f"Dense(2, activation={self.rng.choice(ACTIVE)!r})", "LayerNorm()", "Dropout(0.0)",
            f"Activation({self.rng.choice(ACTIVE)!r})", "Flatten()", "BatchNorm()", "ELU()",
            "LeakyReLU(0.1)", "PReLU()", "GELU()", "Swish()", "InstanceNorm()",
            "HybridLambda(lambda F, x: F.relu(x) - x)",
        ]  # fmt: skip
        if rank == 4 or self.chance(0.05):
            some += ["Conv2D(2, 1)", "Conv2D(3, (2, 1), padding=1, activation='relu')"] * 3
            some += ["MaxPool2D(2)", "AvgPool2D(2, padding=1)", "GlobalAvgPool2D()"] * 2
            some += ["Conv2DTranspose(2, 2, strides=2)", "GroupNorm(num_groups=1)"]
        return self.rng.choice(some)

    def trained(self, n: str, x: str, y: str) -> Iterator[str]:
        t, name = self.fresh("t"), self.rng.choice(OPTIMIZERS)
        name, _, options = name.partition("|")
        given = f"dict(learning_rate=0.125, {options})"
        yield f"{t} = gluon.Trainer({n}.collect_params(), {name!r}, {given}, kvstore=None)"
        loss = self.rng.choice(LOSSES)
        for _ in range(self.rng.randint(1, 2)):
            label = f"nd.ones_like({y})" if "Cross" not in loss else f"nd.zeros({y}.shape[0])"
            scope = self.fresh("c")
            yield f"{scope} = autograd.record(); _ = {scope}.__enter__()"
            z = self.fresh("a")
            yield f"{z} = gluon.loss.{loss}()({n}({x}), {label})"
            yield f"{scope}.__exit__(None, None, None)"
            yield f"{z}.backward()"
            yield f"{t}.step({self.rng.choice((1, 4))})"
        yield f"q{n} = [p.data().copy() for p in {n}.collect_params().values()]"


ACTIVE = ["relu", "sigmoid", "tanh", "softrelu"]
KINDS: list[Callable[[Writer], Iterator[str]]] = (
    [Writer.made] * 10 + [Writer.operated] * 5 + [Writer.method] * 4 + [Writer.viewed] * 4
    + [Writer.written] * 6 + [Writer.again] * 2 + [Writer.scalar, Writer.measured, Writer.updated]
    + [Writer.recorded] * 5 + [Writer.symbols] * 3 + [Writer.block] * 2
    + [lambda w: iter((w.leaf(),))] * 4 + TRAINING + STORAGE
)  # fmt: skip
