"""What a fuzzed program sees: guarded memory, stores that are checked, calls that may be refused.

Every array lies inside a block with guards around it. `put` knows from the oracle what all blocks
must hold after a statement: a value that is wrong, or a byte that changed elsewhere, is a finding,
and so is an error that is none of gnomon's own.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import linecache
import math
import operator
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.base import GnomonError
from gnomon.expr import unsupported
from gnomon.expr.diff import vjp
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import Buffer, Cast, Expr, Map, as_expr
from gnomon.expr.oracle import evaluate
from gnomon.expr.walk import postorder
from gnomon.plan.statement import SAVERS
from gnomon.shadow import Tensor

ABSENT = unsupported.absent.__name__  # what raises it where an expression has none
PACKAGE = f"{Path(shadow.__file__).parent.parent}{os.sep}"

GUARD = 64
LARGEST = 200_000  # elements of a node, or steps an element: beyond, a program takes too long
EXACT = frozenset(
    "add sub neg mul abs maximum minimum lt le gt ge eq ne where sign relu floor ceil trunc rint "
    "identity right square logical_and logical_or logical_not clip".split()
)
# Python's own complaints about how a function is called
ORDINARY = (TypeError, ValueError, IndexError)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "saveto": lambda dest, value: dest.__setitem__(slice(None), value),
    "plusto": operator.iadd,
    "minusto": operator.isub,
    "multo": operator.imul,
    "divto": operator.itruediv,
}


class Finding(Exception):
    """Something that must not happen."""


class World:
    """The memory of one program."""

    def __init__(self) -> None:
        self.blocks: list[np.ndarray[Any, Any]] = []
        self.refused = self.stored = self.compared = 0

    # -- memory ---------------------------------------------------------------------------------

    def leaf(self, shape: tuple[int, ...], dtype: str, layout: str, seed: int) -> Tensor:
        """A tensor of small whole numbers (now and then NaN or infinity) in guarded memory."""
        if int(np.prod(shape)) > LARGEST:
            raise IndexError("too large to be tried")
        kind, rng = dt.of(dtype), np.random.default_rng(seed)
        outer = {"padded": [n + 3 for n in shape], "strided": [2 * n + 1 for n in shape]}
        block = np.full(int(np.prod(outer.get(layout, shape))) + 2 * GUARD, 3, kind.numpy)
        inner = block[GUARD:-GUARD].reshape(outer.get(layout, list(shape)))
        if layout == "padded":
            inner = inner[*(slice(0, n) for n in shape), ...]
        elif layout == "strided":
            inner = inner[*(slice(0, 2 * n, 2) for n in shape), ...]
        elif layout == "reversed":
            inner = inner[*(slice(None, None, -1) for _ in shape), ...]
        elif layout == "transposed":
            inner = inner.reshape(shape[::-1]).T
        low = 0 if kind.kind in "ub" else -4
        inner[...] = rng.integers(low, 2 if kind.kind == "b" else 5, size=shape).astype(kind.numpy)
        if kind.kind == "f" and inner.size and seed % 5 == 0:
            inner[tuple(rng.integers(0, n) for n in shape)] = [np.nan, np.inf, -np.inf][seed % 3]
        self.blocks.append(block)
        return Tensor(inner)

    def alias(self, tensor: Tensor, view: Callable[[Any], Any]) -> Tensor:
        """Another look at the memory of a tensor."""
        return Tensor(view(tensor.numpy()))

    # -- stores ---------------------------------------------------------------------------------

    def put(self, dest: Any, saver: str, value: Any) -> None:
        """`dest saver value`, checked against the oracle; memory is untouched where it raises."""
        if isinstance(value, Expr) and too_much(value):
            return
        before = [block.copy() for block in self.blocks]
        try:
            wanted = self.wanted(dest, saver, value)
        except (*ORDINARY, GnomonError, AttributeError, KeyError):
            wanted = None  # what the oracle refuses, the assignment has to refuse, or not
        self.store(dest, saver, value)
        self.stored += 1
        self.check(dest, before, wanted)

    def wanted(self, dest: Any, saver: str, value: Any) -> list[Any] | None:
        """What the destinations must hold; None where rounding makes it unpredictable."""
        e = as_expr(value, dest.dtype, modular=saver in ("plusto", "minusto", "multo"))
        if not exact(e, saver) or not predictable(e):
            return None
        name, found, parts = SAVERS[saver], [], pieces(dest, e)
        arrays = [target.numpy() for target, _ in parts]
        if any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            return None  # stored one after the other
        for target, piece in parts:
            new = np.broadcast_to(evaluate(piece), target.shape)
            found.append(new if name is None else SCALAR[name].numpy(target.numpy(), new))
        return found

    def check(self, dest: Any, before: list[Any], wanted: list[Any] | None) -> None:
        """The blocks hold what they held, but for the destination, which holds what it must."""
        after = [block.copy() for block in self.blocks]
        targets = [target for target, _ in pieces(dest, dest)]
        got = [t.numpy().copy() for t in targets]
        self.restore(before)
        for t, content in zip(targets, got, strict=True):
            t.numpy()[...] = content
        if not all(map(same, self.blocks, after)):
            raise Finding("memory outside the destination has changed")
        if wanted is not None:
            self.compared += 1
            if not all(map(same, got, wanted)):
                raise Finding(f"wrong result\ngot {got!r}\nwanted {wanted!r}")

    def restore(self, contents: list[Any]) -> None:
        """Let the blocks hold what they held."""
        for block, old in zip(self.blocks, contents, strict=True):
            block[...] = old

    def store(self, dest: Any, saver: str, value: Any) -> None:
        """The statement as an operator or as a call, by turns."""
        into = _OPERATORS.get(saver) if isinstance(saver, str) else None
        if into is None or self.stored % 2:
            dest.assign(value, saver)
        else:
            into(dest, value)

    def again(self, dest: Any, saver: str, make: Callable[[], Any], count: int) -> None:
        """The same statement several times, its value made anew each time."""
        for _ in range(count):
            self.put(dest, saver, make())

    # -- calls ----------------------------------------------------------------------------------

    def operator(self, body: str) -> Any:
        """An operator of x and y, from source."""
        name = f"<operator {len(linecache.cache)}>"
        lines = ["def f(x, y):\n", f"    return {body}\n"]
        linecache.cache[name] = (len(body), None, lines, name)
        space = {"np": np, "math": math, "fn": shadow.fn, "k": 3, "array": np.zeros(3)}
        exec(compile("".join(lines), name, "exec", dont_inherit=True), space)
        return shadow.op(space["f"])

    def traced(self, function: Any, *args: Any) -> None:
        """A function of assignments does by `jit` what it does line by line."""
        before, own = [block.copy() for block in self.blocks], [a.numpy().copy() for a in args]
        for _ in range(3):
            function(*args)
        wanted = [block.copy() for block in self.blocks]
        self.restore(before)
        for arg, content in zip(args, own, strict=True):  # containers lie in no block
            arg.numpy()[...] = content
        fast = shadow.jit(function)
        for _ in range(3):
            fast(*args)
        self.stored += 3
        if not all(map(same, self.blocks, wanted)):
            raise Finding("jit stores something else")

    def jitted(self, lines: list[str], a: Any, b: Any, c: Any, x: Any, static: Any) -> None:
        """A function of lines, plainly and by `jit`: the same numbers where both go through."""
        text = "\n    ".join(["def f(a, b, x):", *lines])
        space = {"c": c, "r": shadow.Random("cpu", 5), "shadow": shadow}
        exec(compile(text, "<jitted>", "exec", dont_inherit=True), space)
        plain, fast = space["f"], shadow.jit(space["f"], static=static)
        before = [block.copy() for block in self.blocks]
        for turn in range(3):
            self.restore(before)
            try:
                fast(a, b, x)
            except Exception as error:
                if not own(error):
                    raise
                if not all(map(same, self.blocks, before)):
                    raise Finding("a function that failed while it was traced stored") from error
                return
            got = [block.copy() for block in self.blocks]
            self.restore(before)
            if turn == 2 and "r." not in text:
                plain(a, b, x.item() if isinstance(x, np.generic) else x)
                if not all(map(same, self.blocks, got)):
                    raise Finding("jit stores something else")

    def viewed(self, tensor: Tensor, view: Callable[[Any], Any], times: int) -> Any:
        """A part of a tensor, which must be NumPy's part of its array."""
        for _ in range(times):
            made, wanted = view(tensor), view(tensor.numpy())
            got = made.numpy() if isinstance(made, Tensor) else made
            if not same(np.asarray(got), np.asarray(wanted)) or np.shape(got) != np.shape(wanted):
                raise Finding(f"a view of something else\ngot {got!r}\nwanted {wanted!r}")
        return made

    def through(self, tensor: Tensor, seed: int, damage: int) -> None:
        """A tensor written and read again; damaged bytes are refused, or read as others."""
        stream = io.BytesIO()
        shadow.save_binary(stream, tensor)
        data, rng = bytearray(stream.getvalue()), np.random.default_rng(seed)
        if damage == 1:
            data = data[: rng.integers(len(data))]
        elif damage == 2:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        read = shadow.TensorContainer((1,) * tensor.ndim, tensor.dtype)
        shadow.load_binary(io.BytesIO(bytes(data)), read)
        if not damage and not same(read.numpy(), tensor.numpy()):
            raise Finding("another tensor was read than was written")

    def orphan(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        """A tensor that alone holds its array."""
        return Tensor(np.ones(shape, dt.of(dtype).numpy))

    def rows_of_freed(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        """The rows of a tensor whose memory has been given back."""
        whole = shadow.alloc_space(shape, dtype)
        rows = whole[:2]
        shadow.free_space(whole)
        return rows

    def copied(self, e: Expr) -> Expr:
        """A copy, through pickle."""
        try:
            made = pickle.loads(pickle.dumps(copy.copy(e)))
        except pickle.PicklingError:  # a function that no module holds
            return e
        if isinstance(made, Tensor):
            self.blocks.append(made.numpy())  # memory of its own, to be put back as all is
        return made

    def at_once(self, tensor: Tensor, run: Callable[[Any, Any], None], times: int) -> None:
        """The same statement on two threads, into tensors of their own."""
        mine = [shadow.TensorContainer(tensor.shape, tensor.dtype, 0) for _ in range(2)]

        def work(dest: Tensor) -> None:
            for _ in range(times):
                run(tensor, dest)

        other = threading.Thread(target=quietly, args=(work, mine[1]))
        other.start()
        try:
            work(mine[0])
        finally:
            other.join()
        if not same(mine[0].numpy(), mine[1].numpy()):
            raise Finding("two threads computed different numbers")

    def gradient(self, e: Expr, g: Expr, x: Expr) -> Expr:
        """What `x` receives."""
        (received,) = vjp([e], [g], [x])
        return x if received is None else received


def quietly(work: Callable[[Any], None], argument: Any) -> None:
    """Run on a thread of its own: what it is refused, the other is refused as well."""
    with contextlib.suppress(*ORDINARY, GnomonError):
        work(argument)


def own(error: BaseException) -> bool:
    """Whether the program's function raised an error itself."""
    return traceback.extract_tb(error.__traceback__)[-1].filename == "<jitted>"


def pieces(dest: Any, e: Expr) -> list[tuple[Tensor, Expr]]:
    """The tensors of a destination, with what each takes of a value."""
    return [(dest, e)] if isinstance(dest, Tensor) else dest.targets(e)


def attempt(world: World, run: Callable[[], None]) -> str:
    """Run a line; a finding in words, or nothing. Errors that are gnomon's own are refusals."""
    before = [block.copy() for block in world.blocks]
    try:
        run()
    except Finding as found:
        return f"{found}"
    except GnomonError as error:
        world.refused += 1
        return "" if str(error) else f"an error without words: {error!r}"
    except (NameError, AttributeError) as error:
        return "" if is_from_outside(error) else explained(error)
    except ORDINARY as error:
        world.refused += 1
        if not is_from_outside(error) and not in_words(error):
            return explained(error)
    except Exception as error:
        return explained(error)
    else:
        return ""
    if not all(map(same, world.blocks, before)):
        return "a refused statement has changed memory"
    return ""


def in_words(error: BaseException) -> bool:
    """Whether an error is written in the sentence of all errors."""
    sentences = "argument", "takes", "no truth value", "; there is ", "only tensors"
    return any(words in str(error) for words in sentences)


def is_from_outside(error: BaseException) -> bool:
    """Whether an error arose in the program's own line, or in another library's call."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, AttributeError) and frames[-1].name == ABSENT:
        frames = frames[-2:-1]  # whose attribute it is
    return not any(frame.filename.startswith(PACKAGE) for frame in frames)


def explained(error: BaseException) -> str:
    """An error, and the last places of its way."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    way = " > ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames)
    return f"{type(error).__name__}: {error} [{way}]"


def same(a: Any, b: Any) -> bool:
    """Whether arrays hold equal numbers; NaN equals NaN."""
    wide = (np.asarray(x, np.float32 if x.dtype.itemsize == 2 else None) for x in (a, b))
    return bool(np.array_equal(*wide, equal_nan=a.dtype.kind not in "iub"))


def exact(e: Expr, saver: str) -> bool:
    """Whether whole numbers go through `e` without rounding."""
    for node in postorder([e]):
        if node.dtype.kind == "f" and node.dtype.size < 4:
            return False
        if isinstance(node, Map) and node.fn.name not in EXACT:
            if node.fn.name != "div" or node.dtype.kind == "f":
                return False
        elif isinstance(node, Cast) and node.src.dtype.kind == "f" and node.dtype.size < 4:
            return False
    return not (e.dtype.kind == "f" and saver == "divto")


def predictable(e: Expr) -> bool:
    """Whether all numbers are small and whole enough to be exact on the way, sums included."""
    for node in postorder([e]):
        value = evaluate(node)
        finite = value[np.isfinite(value)] if node.dtype.kind == "f" else value[:0]
        if np.any(np.abs(finite) > 2.0**11) or np.any(finite * 4 != np.rint(finite * 4)):
            return False
    return True


def too_much(e: Expr) -> bool:
    """Whether a node of `e` is too large to be computed here."""
    nodes = postorder([e])
    if len(nodes) > 200:
        return True
    work = 1
    for node in nodes:
        size = 1
        for n in node.shape:
            size *= n
        if size > LARGEST:
            return True
        if not isinstance(node, Buffer | Map | Cast):
            work = max(work, size)
    return work * len(nodes) > LARGEST * 8
