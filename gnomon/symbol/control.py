"""`mx.sym.contrib` beside the operators: loops and choices whose bodies are graphs, and helpers.

A body is called once, on variables; what it composes becomes a graph of its own. Nodes made while
it is called bear its name in `__subgraph_name__`: what is read from other nodes, and variables from
outside, become inputs of the operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from gnomon.attribute import AttrScope
from gnomon.base import ParamError, check_functions, complaint
from gnomon.graph.body import Body
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.ground.record import record
from gnomon.ops import registry
from gnomon.ops.control import two_of
from gnomon.symbol import compose
from gnomon.symbol.functions import find
from gnomon.symbol.symbol import Symbol, output_name

MARK = "__subgraph_name__"
_uses: Counter[str] = Counter()  # of names of bodies


@record(frozen=False, slots=False)
class Traced:
    """A body as a graph; what each of its variables stands for outside, in their order."""

    body: Body
    reads: list[Entry]


@record(frozen=False, slots=False)
class Scope:
    """Where a body is called: variables in place of entries from outside."""

    name: str
    inner: dict[Node, Entry] = field(default_factory=dict)

    def variable(self, entry: Entry) -> Symbol:
        """A new variable that stands for `entry`."""
        with self.attributes():
            made = variable(f"{entry.node.name}-{entry.index}", **AttrScope.current.get(None))
        self.inner[made.node] = entry
        return Symbol([made])

    def attributes(self) -> AttrScope:
        """The scope of what is composed in the body."""
        return AttrScope(**{MARK: self.name})

    def traced(self, outputs: Sequence[Symbol]) -> Traced:
        """What the body gave, as a graph."""
        outer: dict[Entry, Entry] = {}
        made: dict[Node, Node] = {}

        def moved(entry: Entry) -> Entry:
            if entry.node in made:
                return Entry(made[entry.node], entry.index)
            if entry.node.op is None and (self.is_marked(entry.node) or entry.node in self.inner):
                return entry
            if entry not in outer:
                outer[entry] = variable(output_name(entry))
                self.inner[outer[entry].node] = entry
            return outer[entry]

        heads = [self.copied(s._entries[0]) for s in outputs]
        for node in self.within(heads):
            made[node] = Node(node.op, node.name, map(moved, node.inputs), node.attrs)
        body = Body(map(moved, heads))
        return Traced(body, [self.inner.get(n, Entry(n, 0)) for n in body.variables])

    def is_marked(self, node: Node) -> bool:
        """Whether a node was made while the body was called."""
        return node.attrs.get(MARK) == self.name

    def is_inside(self, node: Node) -> bool:
        """Whether the body made a node that computes something."""
        return node.op is not None and self.is_marked(node)

    def within(self, heads: Iterable[Entry]) -> list[Node]:
        """The nodes of the body, operands first."""
        return [n for n in Graph(heads).topo if self.is_inside(n)]

    def copied(self, entry: Entry) -> Entry:
        """An output of the body: a copy of what it did not make itself."""
        if self.is_inside(entry.node):
            return entry
        with self.attributes():
            found: Entry = find("", "identity")(Symbol([entry]))._entries[0]
        return found


def flat(where: str, argument: str, nested: Any) -> list[Entry]:
    """The entries of a symbol, or of nested lists of symbols of one output.

    Raises:
        TypeError: something else is among them.
    """
    if isinstance(nested, (list, tuple)):
        return [e for part in nested for e in flat(where, argument, part)]
    if not isinstance(nested, Symbol):
        raise TypeError(complaint(where, argument, "symbols, or lists of them", repr(nested)))
    return list(nested._entries)


def shaped(nested: Any, symbols: Iterable[Symbol]) -> Any:
    """Symbols, nested as others are."""
    if isinstance(nested, (list, tuple)):
        return [shaped(part, symbols) for part in nested]
    taken = iter(symbols)
    found = [next(taken) for _ in nested._entries]
    return found[0] if len(found) == 1 else found


def form(nested: Any) -> Any:
    """How symbols are nested."""
    if isinstance(nested, (list, tuple)):
        return [form(part) for part in nested]
    return len(nested._entries)


def scope(name: str) -> Scope:
    """The scope of a new body."""
    around = AttrScope.current.get(None).get(MARK)
    name = name if around is None else f"{around}${name}"
    number = _uses[name]
    _uses[name] += 1
    return Scope(f"{name}{number}")


def singles(entries: Iterable[Entry]) -> list[Symbol]:
    """Symbols of one output each."""
    return [Symbol([e]) for e in entries]


def made(alias: str, inputs: list[Entry], bodies: Sequence[Traced], **params: Any) -> list[Symbol]:
    """The outputs of an operator of control flow."""
    count = len(inputs) + len(bodies)
    graphs = tuple(each.body for each in bodies)
    given = {**params, "num_args": count, "subgraphs": graphs}
    node = compose.make(registry.find(alias), alias, inputs, {}, given)
    return singles(node.visible())


def places(body: Traced, inner: Sequence[Symbol], where: str, what: str) -> list[int]:
    """Which variables of a body these are.

    Raises:
        ParamError: the body does not read one of them.
    """
    numbers = {n: k for k, n in enumerate(body.body.variables)}
    found = [numbers.get(s._entries[0].node) for s in inner]
    if None in found:
        got = f"{what} {found.index(None)} is not"
        raise ParamError(complaint(where, what, "all of them read in the body", got))
    return found  # type: ignore[return-value]


def foreach(
    body: Callable[..., tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach"
) -> tuple[Any, Any]:
    """`body(part, states)` for each part of `data` along its first axis, one after the other.

    `body` gives outputs and new states. The outputs of all steps are stacked, beside the last
    states; symbols may be lists of symbols everywhere. `body` is called once, to compose a graph;
    it reads all of data and states.

    >>> import gnomon as mx
    >>> step = lambda x, total: (x + total, x + total)
    >>> outputs, total = foreach(step, mx.sym.var("x"), mx.sym.var("start"))
    >>> x = mx.nd.array([[1], [2], [3]])
    >>> outputs.eval(x=x, start=mx.nd.array([10]))[0].asnumpy().ravel()
    array([11., 13., 16.], dtype=float32)

    Raises:
        TypeError: something else than symbols comes in or out.
        ParamError: `body` does not give states as it got them, or does not read some input.
    """
    where = "foreach"
    check_functions(where, body=body)
    parts, first = flat(where, "data", data), flat(where, "init_states", init_states)
    if not parts:
        raise ParamError(complaint(where, "data", "at least one symbol", data))
    place = scope(name)
    inner = [place.variable(e) for e in (*parts, *first)]
    with place.attributes():
        given = shaped(data, iter(inner)), shaped(init_states, iter(inner[len(parts) :]))
        outputs, states = two_of(where, "body", body(*given), "outputs and states")
    found, ends = flat(where, "body", outputs), flat(where, "body", states)
    if form(states) != form(init_states):
        expected = f"states nested as init_states, {form(init_states)}"
        raise ParamError(complaint(where, "body", expected, form(states)))
    traced = place.traced(singles([*found, *ends]))
    own = places(traced, inner, where, "data and states")
    rest = [k for k in range(len(traced.reads)) if k not in own]
    symbols = made(
        "_foreach",
        [traced.reads[k] for k in (*own, *rest)],
        [traced],
        num_outputs=len(found) + len(ends),
        num_out_data=len(found),
        in_data_locs=own[: len(parts)],
        in_state_locs=own[len(parts) :],
        remain_locs=rest,
    )
    return shaped(outputs, iter(symbols)), shaped(states, iter(symbols[len(found) :]))


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """`func(*loop_vars)` as long as `cond(*loop_vars)` holds, at most `max_iterations` times.

    `func` gives outputs (or None) and new variables. The outputs of all steps are stacked, with
    zeros behind them up to `max_iterations`, beside the last variables. Both functions are called
    once, to compose graphs.

    >>> import gnomon as mx
    >>> below, twice = (lambda x: x < 9), (lambda x: (x * 1, [x * 2]))
    >>> steps, (last,) = while_loop(below, twice, [mx.sym.var("x")], 5)
    >>> found = mx.sym.Group([steps, last]).eval(x=mx.nd.array([1]))
    >>> found[0].asnumpy().ravel(), found[1].asnumpy()
    (array([1., 2., 4., 8., 0.], dtype=float32), array([16.], dtype=float32))

    Raises:
        TypeError: something else than symbols comes in or out.
        ParamError: `func` gives another number of variables, or no part reads one of them; there is
            no `max_iterations` above 0.
    """
    where = "while_loop"
    check_functions(where, cond=cond, func=func)
    if max_iterations is None or int(max_iterations) < 1:
        raise ParamError(complaint(where, "max_iterations", "a number above 0", max_iterations))
    variables = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    starts = flat(where, "loop_vars", variables)
    if not starts or form(variables) != [1] * len(variables):
        raise ParamError(complaint(where, "loop_vars", "at least one symbol of one output", "none"))
    test, place = scope(f"{name}_cond"), scope(f"{name}_func")
    asked, inner = ([p.variable(e) for e in starts] for p in (test, place))
    with test.attributes():
        answer = flat(where, "cond", cond(*asked))
    if len(answer) != 1:
        raise ParamError(complaint(where, "cond", "one symbol", len(answer)))
    with place.attributes():
        outputs, new = two_of(where, "func", func(*inner), "outputs and variables")
    outputs = [] if outputs is None else outputs
    found, ends = flat(where, "func", outputs), flat(where, "func", new)
    if len(ends) != len(starts):
        raise ParamError(complaint(where, "func", f"{len(starts)} variables", len(ends)))
    bodies = test.traced(singles(answer)), place.traced(singles([*found, *ends]))
    own = places(bodies[1], inner, where, "loop_vars")
    inputs, locs = joined(bodies)
    symbols = made(
        "_while_loop",
        inputs,
        bodies,
        num_outputs=len(found) + len(ends),
        num_out_data=len(found),
        max_iterations=int(max_iterations),
        cond_input_locs=locs[0],
        func_input_locs=locs[1],
        func_var_locs=own,
    )
    return shaped(outputs, iter(symbols)), shaped(loop_vars, iter(symbols[len(found) :]))


def joined(bodies: Sequence[Traced]) -> tuple[list[Entry], list[list[int]]]:
    """What bodies read together, each once, and where what each of them reads is among it."""
    inputs = list(dict.fromkeys(e for each in bodies for e in each.reads))
    return inputs, [[inputs.index(e) for e in each.reads] for each in bodies]


def cond(
    pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond"
) -> Any:
    """What `then_func` gives where `pred`, of one element, is not 0, else what `else_func` gives.

    Both functions are called once, to compose graphs; only the one that is chosen is computed.

    >>> import gnomon as mx
    >>> x = mx.sym.var("x")
    >>> net = cond(x > 2, lambda: x * 2, lambda: x)
    >>> net.eval(x=mx.nd.array([3]))[0].asnumpy(), net.eval(x=mx.nd.array([1]))[0].asnumpy()
    (array([6.], dtype=float32), array([1.], dtype=float32))

    Raises:
        TypeError: something else than symbols.
        ParamError: `pred` has several outputs, or the functions give unlike numbers of symbols.
    """
    where = "cond"
    check_functions(where, then_func=then_func, else_func=else_func)
    found = []
    for part, function in (("pred", lambda: pred), ("then", then_func), ("else", else_func)):
        place = scope(f"{name}_{part}")
        with place.attributes():
            outputs = function()
        found.append((outputs, place.traced(singles(flat(where, part, outputs)))))
    counts = [each.body.num_outputs for _, each in found]
    if counts[0] != 1 or counts[1] != counts[2]:
        expected = "1 predicate, and as many symbols from either function"
        raise ParamError(complaint(where, "then_func, else_func", expected, counts))
    bodies = [each for _, each in found]
    inputs, locs = joined(bodies)
    symbols = made(
        "_cond",
        inputs,
        bodies,
        num_outputs=counts[1],
        cond_input_locs=locs[0],
        then_input_locs=locs[1],
        else_input_locs=locs[2],
    )
    return shaped(found[1][0], iter(symbols))
