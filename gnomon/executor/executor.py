"""`Executor`: a symbol bound to arrays, computed forwards and backwards.

States: programs are made when first needed, one for each mode (train or predict, with a backward
pass or without), and kept. All of them work in one arena, which knows whose forward pass left its
values there: `backward` computes the forward pass again where another one, or a backward pass, came
between; its own leaves them, though, where classes of users compute (`Layout.keeps_forward`). The
arrays are fixed at binding; what changes is their contents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon import config
from gnomon.base import GnomonError, Later, ParamError, ShapeError, complaint, nearest, shown
from gnomon.context import Context
from gnomon.executor import arrays, inputs
from gnomon.executor.arena import Arena
from gnomon.executor.network import Bound, Known, contexts_of, network
from gnomon.executor.programs.layout import Mode
from gnomon.executor.run import Run
from gnomon.executor.train_step import Feed, Follower, Pushed, check_feeds
from gnomon.expr.node import set_address
from gnomon.graph import infer, verify
from gnomon.graph.node import Entry, Graph
from gnomon.graph.place import place
from gnomon.ground.collector import resting
from gnomon.ground.files import replacing
from gnomon.shape import prod

if TYPE_CHECKING:
    from gnomon.executor.report import html_report, listing, monitor, profile
else:
    html_report = Later("gnomon.executor.report.html_report")
    listing, monitor = (
        Later("gnomon.executor.report.listing"),
        Later("gnomon.executor.report.monitor"),
    )
    profile = Later("gnomon.executor.report.profile")


class Executor:
    """A symbol on arrays; made by `Symbol.bind` and `Symbol.simple_bind`.

    >>> import gnomon as mx
    >>> x = mx.sym.Variable("x")
    >>> e = (x * x).simple_bind(mx.cpu(), x=(2,))
    >>> e.forward(is_train=True, x=mx.nd.array([2, 3]))[0].asnumpy()
    array([4., 9.], dtype=float32)
    >>> e.backward(mx.nd.ones((2,)))
    >>> e.grad_dict["x"].asnumpy()
    array([4., 6.], dtype=float32)
    """

    @resting()
    def __init__(
        self,
        symbol: Any,
        ctx: Context,
        bound: Bound,
        groups: Mapping[str, Context],
        arena: Arena | None = None,
        known: Known | None = None,
        outputs: Sequence[Any] = (),
        losses: int | None = None,
    ) -> None:
        self._symbol, self._ctx, self._group2ctx = symbol, ctx, groups
        self.arg_arrays, self.grad_arrays, self.aux_arrays, self._grad_req = bound
        self.arena = arena or Arena(ctx)
        placed = place(symbol._graph, ctx, groups, contexts_of(symbol._graph, bound))
        self._held = inputs.taken(self.arg_arrays)  # inputs whose batch lay elsewhere once
        self._net, self.outputs, self._variables = network(
            symbol._graph, placed, bound, known, outputs, losses
        )
        self._differentiates = bool(self._net.grads)
        self._heads: dict[Entry, Any] = {}
        self._runs: dict[Mode, Run] = {}
        self._last: Run | None = None
        self._usually: dict[tuple[bool, bool], Run] = {}  # by whether it trains, and is fused
        self._round: Pushed | None = None  # what an update may join
        self._monitor: Callable[[str, Any], object] | None = None
        self._monitor_all = False

    # arrays by name -------------------------------------------------------------------------

    @property
    def arg_dict(self) -> dict[str, Any]:
        """The arguments by name."""
        return arrays.unique("arg_dict", self._symbol.list_arguments(), self.arg_arrays)

    @property
    def grad_dict(self) -> dict[str, Any]:
        """The gradients by name of their arguments; None where none is wanted, nor was given."""
        return arrays.unique("grad_dict", self._symbol.list_arguments(), self.grad_arrays)

    @property
    def aux_dict(self) -> dict[str, Any]:
        """The states by name."""
        names = self._symbol.list_auxiliary_states()
        return arrays.unique("aux_dict", names, self.aux_arrays)

    @property
    def output_dict(self) -> dict[str, Any]:
        """The outputs by name."""
        return arrays.unique("output_dict", self._symbol.list_outputs(), self.outputs)

    # computing ------------------------------------------------------------------------------

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[Any]:
        """Compute the outputs; arrays given by name are copied into the arguments first.

        Returns at once where the engine is asynchronous; the arrays are always the same ones.

        Raises:
            TypeError: an argument of another name.
            ShapeError: an array of another shape; nothing is written.
        """
        self.forward_on(self._given(kwargs) if kwargs else (), is_train)
        return list(self.outputs)

    def forward_on(self, feeds: Sequence[Feed], is_train: bool = False) -> None:
        """`forward` on `feeds`: pairs of an argument's array and one whose elements it gets.

        Raises:
            ShapeError: an array of another shape; nothing is written.
        """
        self._round = None
        run = self._usual(bool(is_train))
        if self._monitor is None:
            self._last = run
            run.forward(feeds)
        else:
            check_feeds(feeds)
            self._last = run = self._run(run.mode._replace(fuse=False))
            for dest, value in feeds:
                arrays.assign(dest, value)
            self._bring()
            monitor.forward(run, self._monitor, self._monitor_all)
        self.arena.content = run

    def forward_backward(self, feeds: Sequence[Feed] = (), out_grads: Any = None) -> None:
        """`forward(is_train=True)` and `backward(out_grads)`, as one native call where that is
        legal; `feeds` as for `forward_on`.

        Raises:
            GnomonError, ShapeError: as `forward_on` and `backward`.
        """
        whole = self._monitor is None and out_grads is None and self._differentiates
        run = self._usual(True) if whole else None
        if run is None or run.layout.heads:
            self.forward_on(feeds, is_train=True)
            self.backward(out_grads)
            return
        self._last, self.arena.content = run, run.left
        self._round = run.forward_backward(feeds)

    def follow(self, after: Follower, numbers: Any) -> bool:
        """Push native work in one call with the `forward_backward` right before; whether it was.

        False where anybody has asked for results since: then nothing was pushed.
        """
        before, self._round = self._round, None
        return before is not None and before.follow(after, numbers)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients, given those of the outputs: an array, a list, or a dict by name.

        Losses need none. The mode is that of the last `forward`.

        Raises:
            GnomonError: a gradient of an output is needed and not given.
            ShapeError: one of another shape; nothing is written.
        """
        if not self._differentiates:
            return
        self._round = None
        last = self._last or self._usual(bool(is_train))
        run = last
        if not last.mode.differentiate:
            run = self._run(last.mode._replace(differentiate=True))
            if self._last is not None:
                run.draw_as(last)
        if out_grads is not None or run.layout.heads:
            self._take_heads(run, out_grads)
        if self._held:
            self._bring()
        if self.arena.content is not run:
            self._forward_again(run)
        if self._monitor is None:
            run.backward()
        else:
            monitor.backward(run, self._monitor, self._monitor_all)
        self.arena.content = run.left

    def _bring(self) -> None:
        """Have batches copied that programs have read where they lay."""
        for held in self._held:
            held.bring()

    def _forward_again(self, run: Run) -> None:
        if not run.layout.repeatable:
            raise GnomonError(
                "backward: other work came after forward, and computing forward again would change "
                "states twice: call forward(is_train=True) right before backward"
            )
        run.forward_again()

    def lend(self) -> Arena:
        """The working memory, for another executor to share.

        It has room for this one, the larger of the two in most programs: a smaller one would begin
        with less, and the memory it has then is no part of the larger one's.
        """
        if not self._runs:
            self._run(self._mode(self._differentiates))
        return self.arena

    def _mode(self, train: bool) -> Mode:
        return Mode(train, train and self._differentiates, config.get("passes"))

    def _usual(self, train: bool) -> Run:
        """The program for the usual mode, under the settings of this thread."""
        kind = train, config.get("passes")
        run = self._usually.get(kind)
        if run is None:
            run = self._usually[kind] = self._run(self._mode(train))
        return run

    def _run(self, mode: Mode) -> Run:
        """The program for `mode`, made now if it is not."""
        run = self._runs.get(mode)
        if run is None:
            run = self._runs[mode] = Run(self._net, mode, self.arena, self._variables, self._held)
            for entry in run.layout.heads:
                self._make_head(entry)
        return run

    @property
    def held(self) -> int:
        """Bytes that libraries keep for its programs."""
        return sum(run.held for run in self._runs.values())

    def _make_head(self, entry: Entry) -> None:
        """Memory for the gradient of an output that some gradient reads."""
        if entry in self._heads:
            return
        leaf = self._net.heads[entry]
        home = arrays.zeros(leaf.shape, self._ctx, leaf.dtype)
        array = self._heads[entry] = inputs.hidden(home, once=True)
        set_address(leaf, arrays.buffer(array).address, array)
        self._variables[id(leaf)] = arrays.var(array)

    def _given(self, given: Mapping[str, Any]) -> list[Feed]:
        """The arguments that are given by name, and what they get."""
        table = self.arg_dict
        for name in given:
            if name not in table:
                expected = f"one of {', '.join(table)}{nearest(name, table)}"
                raise TypeError(complaint("forward", name, expected, "an array"))
        for name, value in given.items():
            arrays.check("forward", name, table[name], value)
        return [(table[name], value) for name, value in given.items()]

    def _take_heads(self, run: Run, given: Any) -> None:
        heads = list(self._net.heads)
        names = self._symbol.list_outputs()
        values = listed(names, given, hidden_heads(self._net.graph))
        for k, entry in enumerate(heads):
            if entry in run.layout.heads and values[k] is None:
                text = "no gradient given, and the operator is no loss"
                raise GnomonError(f"backward: output {names[k]!r}: {text}: pass it as out_grads")
        taken = [(names[k], self._heads.get(e), values[k]) for k, e in enumerate(heads)]
        for name, head, value in taken:
            if head is not None and value is not None:
                arrays.check("backward", f"out_grads[{name}]", head, value)
        for _, head, value in taken:
            if head is not None and value is not None:
                arrays.assign(head, value)

    # other shapes, other values -------------------------------------------------------------

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> Executor:
        """An executor for inputs of other shapes, with the same parameters and working memory.

        Arrays that get smaller, outputs too, look at the memory of this executor's;
        `allow_up_sizing` allows new ones. Arguments whose shapes follow and are not given may
        change with `partial_shaping`.

        Raises:
            ParamError: an argument of another name.
            ShapeError: shapes that contradict, or change without permission.
        """
        graph, names = self._symbol._graph, self._symbol.list_arguments()
        known = self._inferred(kwargs)
        shapes, aux_shapes = (
            [known[Entry(n, 0)] for n in p] for p in (graph.arguments, graph.auxiliary)
        )
        rules = (allow_up_sizing, partial_shaping, kwargs)
        args = [
            self._resized(*row, *rules) for row in zip(names, self.arg_arrays, shapes, strict=True)
        ]
        grads = [
            None if request == "null" else self._resized(n, g, s, *rules)
            for n, g, s, request in zip(
                names, self.grad_arrays, shapes, self._grad_req, strict=True
            )
        ]
        sizes = [known[e] for e in graph.outputs]
        outputs = [
            arrays.head(x, size) if infer.complete(size) and prod(size) <= x.size else None
            for x, size in zip(self.outputs, sizes, strict=True)
        ]
        states = zip(self._symbol.list_auxiliary_states(), self.aux_arrays, aux_shapes, strict=True)
        aux = [self._resized(*row, *rules) for row in states]
        bound = Bound(args, grads, aux, self._grad_req)
        given = self._symbol, self._ctx, bound, self._group2ctx, self.lend()
        return type(self)(*given, outputs=outputs)

    def _inferred(self, given: Mapping[str, Any]) -> dict[Entry, Any]:
        """All shapes that follow from those of some arguments; values may decide those of others.

        Raises:
            ParamError: an argument of another name.
            ShapeError: they do not say all.
        """
        graph = self._symbol._graph
        found = infer.given_by_name(graph, "reshape", given)
        sizes = {n: infer.given_shape("reshape", n.name, s) for n, s in found.items()}
        known: dict[Entry, Any] = infer.shapes(graph, sizes)
        verify.check_shapes(graph, known, "reshape", infer.by_values(graph, known))
        return known

    def _resized(
        self,
        name: str,
        array: Any,
        shape: tuple[int, ...],
        allow_up_sizing: bool,
        partial_shaping: bool,
        given: Mapping[str, Any],
    ) -> Any:
        """`array` for `shape`: itself, its first elements, or a new one."""
        if array.shape == shape:
            return array
        if not (partial_shaping or name in given):
            expected = f"shape {array.shape}, or partial_shaping=True"
            raise ShapeError(complaint("reshape", name, expected, f"shape {shape} by inference"))
        if prod(shape) <= array.size:
            return arrays.head(array, shape)
        if not allow_up_sizing:
            expected = f"at most {array.size} elements, or allow_up_sizing=True"
            raise ShapeError(complaint("reshape", name, expected, f"shape {shape}"))
        return arrays.zeros(shape, array.context, arrays.dtype_of(array), array.stype)

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy arrays by name into arguments and states.

        Raises:
            ParamError: a name that is none of them, unless `allow_extra_params`.
            ShapeError: an array of another shape. Nothing is written in either case.
        """
        pairs = []
        for what, table, given in (
            ("arg_params", self.arg_dict, arg_params),
            ("aux_params", self.aux_dict, aux_params or {}),
        ):
            for name, value in given.items():
                if name in table:
                    arrays.check("copy_params_from", f"{what}[{name}]", table[name], value)
                    pairs.append((table[name], value))
                elif not allow_extra_params:
                    expected = f"one of {', '.join(table) or 'none'}{nearest(name, table)}"
                    raise ParamError(complaint("copy_params_from", what, expected, repr(name)))
        for dest, value in pairs:
            arrays.assign(dest, value)

    # looking inside -------------------------------------------------------------------------

    def set_monitor_callback(self, callback: Any, monitor_all: bool = False) -> None:
        """Have `callback(name, array)` told of every output of every operator, as it is made.

        With `monitor_all` of every input too. Operators are not fused then. None ends it.

        Raises:
            TypeError: `callback` cannot be called.
        """
        if callback is not None and not callable(callback):
            expected = "a function of name and array"
            raise TypeError(complaint("set_monitor_callback", "callback", expected, repr(callback)))
        self._monitor, self._monitor_all = callback, monitor_all

    def memory_plan(self, is_train: bool | None = None) -> listing.MemoryPlan:
        """The life and place of each value, for training (the default where gradients are wanted)
        or for prediction; `print` shows it as a table and a picture."""
        train = self._differentiates if is_train is None else is_train
        run = self._run(self._mode(train))
        return listing.memory_plan(run.layout)

    def report(self, path: Any, is_train: bool | None = None) -> None:
        """Write a page (HTML, of its own) about the program for training, the default where
        gradients are wanted, or for prediction: the graph after fusion, the memory plan, and each
        task with its loops and rates.

        The program runs a few times on what is bound, and leaves all arrays as they were. One of a
        GPU does not run: the page tells what its tasks move, and no times.

        Raises:
            GnomonError: the file cannot be written; what stood there is untouched.
        """
        train = self._differentiates if is_train is None else is_train
        run = self._run(self._mode(train)._replace(alone=True))  # loops are shown by its forms
        name = "forward and backward" if run.mode.differentiate else "forward"
        self._bring()
        told = run.layout.device.host
        rows = (profile.profile_tasks if told else profile.planned_tasks)(run, name)
        text = html_report.html_report(
            str(self._symbol.name or "network"),
            run.layout,
            rows,
            profile.limits() if told else None,
        )
        with replacing("Executor.report", path) as stream:
            stream.write(text.encode())

    def debug_str(self) -> str:
        """The operators in order, and the memory they work in."""
        run = self._run(self._mode(self._differentiates))
        return listing.debug_str(self._net.graph, run.layout)

    def get_optimized_symbol(self) -> Any:
        """The symbol: what passes change lies below symbols."""
        return self._symbol


def listed(names: Sequence[str], given: Any, hidden: int) -> list[Any]:
    """The gradient given of each output, None where there is none; `hidden` more may follow.

    Raises:
        TypeError: neither array, nor list, nor dict.
        ParamError: too many, or a name that is no output.
    """
    if given is None:
        return [None] * len(names)
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                expected = f"one of {', '.join(names)}{nearest(name, names)}"
                raise ParamError(complaint("backward", "out_grads", expected, repr(name)))
        return [given.get(n) for n in names]
    values = list(given) if isinstance(given, (list, tuple)) else [given]
    if not all(v is None or arrays.is_array(v) for v in values):
        raise TypeError(complaint("backward", "out_grads", "NDArrays", shown(given)))
    most = len(names) + hidden
    if len(values) > most:
        raise ParamError(complaint("backward", "out_grads", f"at most {most}", len(values)))
    return (values + [None] * len(names))[: len(names)]


def hidden_heads(graph: Graph) -> int:
    """How many gradients may follow those of the outputs: of hidden ones, which do not count."""
    nodes = {e.node for e in graph.outputs if e.node.op is not None}
    return sum(n.op.num_heads - n.op.num_visible_outputs for n in nodes)
