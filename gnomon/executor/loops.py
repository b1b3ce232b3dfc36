"""Runners of control flow: bodies as executors, each step on the results of the one before.

An operator's inputs lie at fixed places, where its bodies read them. The first step of a loop has
an executor; further ones are the programs of two others, replayed at other addresses (`replay.py`),
or where that is not possible have executors of their own: a backward pass reads what the forward
pass of its step left. `Steps` keeps them in the operator's state for the next run. Outputs and
gradients are arrays of the steps, and are stored as requested at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gnomon.base import GnomonError, complaint
from gnomon.context import Context, cpu
from gnomon.executor import arrays
from gnomon.executor.executor import Executor
from gnomon.executor.network import Bound, shaped_by_values
from gnomon.executor.replay import Replay, Slots, Step, replay
from gnomon.executor.stepwise import StepwiseExecutor
from gnomon.graph.infer import complete
from gnomon.graph.node import Graph
from gnomon.ndarray.core.layout import dense
from gnomon.ndarray.lazy.on_data import over
from gnomon.ops.host import store

Arrays = list[Any]
Place = tuple[int, int]  # a body, and the number of a step

FEWEST = 4  # steps of a loop that is worth a replay


class Network:
    """A body as executors take symbols."""

    def __init__(self, body: Graph) -> None:
        self._graph = body

    def list_arguments(self) -> list[str]:
        """A name for each argument, for errors."""
        return [node.name for node in self._graph.arguments]

    def list_outputs(self) -> list[str]:
        """A name for each output, for errors."""
        return [repr(e) for e in self._graph.outputs]


class Steps:
    """Executors on one set of inputs, made as they are needed.

    `inputs` go by number. `shared` are the gradients of those that all steps read, added up; `own`
    are those of what a step alone reads. `count` steps were made last, of which `last` is left.
    """

    def __init__(self, key: Any, inputs: Arrays, ctx: Context, differentiates: bool) -> None:
        self.key, self.inputs, self.ctx = key, inputs, ctx
        self.differentiates = differentiates
        self.made: dict[Place, Executor] = {}
        self.shared: dict[int, Any] = {}
        self.own: dict[Place, Mapping[int, Any]] = {}
        self.arena: Any = None  # in which all work, where no gradients are wanted
        self.outputs: Arrays = []
        self.count, self.last = 0, list[Any]()
        self.rolls: dict[tuple[int, bool], Roll | None] = {}  # by body, and whether it trains
        self.roll: Roll | None = None  # that of the last run
        self.heads: Arrays = []  # gradients of stacked outputs, where replays read them
        self.answer: Any = None  # what a replayed condition says

    def zeros(self, shape: Sequence[int], like: Any) -> Any:
        """A new array in the dtype of another one."""
        return arrays.zeros(tuple(shape), self.ctx, arrays.dtype_of(like))

    def gradient(self, k: int) -> Any:
        """Where the gradient of an input is added up; None where it has none."""
        x = self.inputs[k]
        if not self.differentiates or arrays.dtype_of(x).kind != "f":
            return None
        if k not in self.shared:
            self.shared[k] = self.zeros(x.shape, x)
        return self.shared[k]

    def executor(
        self,
        place: Place,
        body: Any,
        numbers: Sequence[int],
        given: Mapping[int, Any],
        outputs: Arrays,
        own: Mapping[int, Any],
    ) -> Executor:
        """The executor of a step, which is kept."""
        arena = None if self.differentiates else self.arena
        bound, network = self.bound(body, numbers, given, own), Network(body)
        read = {n.name: x for n, x in zip(body.arguments, bound.args, strict=True)}
        kind = StepwiseExecutor if shaped_by_values(body, read) else Executor
        made = kind(network, self.ctx, bound, {}, arena, outputs=outputs)
        self.arena, self.made[place], self.own[place] = made.arena, made, own
        return made

    def bound(
        self,
        body: Any,
        numbers: Sequence[int],
        given: Mapping[int, Any],
        own: Mapping[int, Any],
    ) -> Bound:
        """A body's inputs by number, those `given` in place of the usual ones, and gradients."""
        at = dict(zip(body.variables, numbers, strict=True))
        args = [at[n] for n in body.arguments]
        read = {k: given.get(k, self.inputs[k]) for k in numbers}
        grads = [own[k] if k in given else self.gradient(k) for k in args]
        asked = ["write" if k in given else "add" for k in args]
        return Bound(
            [read[k] for k in args],
            grads,
            [read[at[n]] for n in body.auxiliary],
            ["null" if g is None else r for g, r in zip(grads, asked, strict=True)],
        )


class Roll(NamedTuple):
    """Steps of one body from 1 on: their memory, and what runs them."""

    slots: Slots
    replay: Replay


class Runner(ABC):
    """What all share: inputs as arrays, and results stored as requested."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.fed = list(op.fed())

    def steps(self, ctx: Any, in_data: Any, aux: Any, differentiates: bool) -> Steps:
        """The executors for inputs at these places: those of before, or new ones."""
        blobs = [*in_data, *aux]
        tensors = [b.tensor for b in blobs]
        key = tuple((t.address, t.shape, t.strides) for t in tensors)
        known: Steps | None = ctx.state.get(ctx.is_train)
        if known is not None and known.key == key and known.differentiates >= differentiates:
            return known
        inputs: Arrays = [None] * len(blobs)
        for k, tensor in zip(self.op.order, tensors, strict=True):
            inputs[k] = over(tensor, cpu())
        found = ctx.state[ctx.is_train] = Steps(key, inputs, cpu(), differentiates)
        return found

    def forward(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        """Compute the outputs, and store them."""
        steps = self.steps(ctx, in_data, aux, ctx.is_train)
        self.compute(steps, ctx.is_train)
        for blob, request, value in zip(out_data, req, steps.outputs, strict=True):
            store(blob.tensor.numpy(), request, value.asnumpy())

    def backward(
        self, ctx: Any, out_grad: Any, in_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        """Compute the gradients of the inputs, and store them."""
        steps = self.steps(ctx, in_data, aux, differentiates=True)
        if not steps.outputs:  # those of the forward pass have no backward pass
            self.compute(steps, ctx.is_train)
        for grad in steps.shared.values():
            grad[:] = 0
        heads = [
            steps.zeros(x.shape, x) if b is None else over(b.tensor, steps.ctx).copy()
            for b, x in zip(out_grad, steps.outputs, strict=True)
        ]
        found = {**steps.shared, **self.differentiate(steps, heads)}
        for blob, request, k in zip(in_grad, req, self.op.order, strict=False):
            if blob is not None:
                store(blob.tensor.numpy(), request, found[k].asnumpy() if k in found else 0)

    @abstractmethod
    def compute(self, steps: Steps, train: bool) -> None:
        """Compute `steps.outputs`."""

    @abstractmethod
    def differentiate(self, steps: Steps, heads: Arrays) -> dict[int, Any]:
        """Gradients of inputs by number; those that steps have in common are `steps.shared`."""

    def made(
        self,
        steps: Steps,
        which: int,
        given: Mapping[int, Any],
        part: slice = slice(None),
        row: tuple[int, ...] = (),
    ) -> Arrays:
        """New arrays for a part of a body's outputs; with `row`, so many in a row for each."""
        body, numbers = self.fed[which]
        read = [given.get(k, steps.inputs[k]) for k in numbers]
        shapes = body.infer("shapes", [x.shape for x in read])[1]
        types = body.infer("types", [arrays.dtype_of(x) for x in read])[1]
        if None in types or not all(map(complete, shapes)):
            expected = "outputs of the body that follow from its inputs"
            raise GnomonError(complaint(self.op.name, "outputs", expected, shapes))
        pairs = zip(shapes[part], types[part], strict=True)
        return [arrays.zeros((*row, *shape), steps.ctx, dtype) for shape, dtype in pairs]

    def holds(self, steps: Steps, place: Place, given: Mapping[int, Any]) -> bool:
        """What a condition says of inputs; `given` are in place of the usual ones."""
        found = steps.made.get(place)
        if found is None:
            body, numbers = self.fed[0]
            none = dict.fromkeys(given)
            found = steps.executor(place, body, numbers, given, self.made(steps, 0, given), none)
        (answer,) = found.forward()
        if answer.size != 1:
            expected = "an array of one element"
            raise GnomonError(complaint(self.op.name, "cond", expected, f"shape {answer.shape}"))
        return bool(answer.asscalar())


def row(array: Any, k: int, scalar: tuple[int, ...] = ()) -> Any:
    """Part `k` of a dense array along its first axis, where it lies in memory.

    A single element has the shape `scalar`.
    """
    layout = dense(array.shape[1:] or scalar, arrays.dtype_of(array))
    return array._at(array._chunk, layout, array._offset + k * layout.nbytes)


class Loop(Runner):
    """Steps of one body, whose last outputs are what the next one begins with.

    `data` are the numbers of inputs that steps take a part each of, `moving` of those that change.
    """

    which: int
    data: Sequence[int] = ()
    moving: Sequence[int] = ()

    @abstractmethod
    def most(self, steps: Steps) -> int:
        """How many steps there are at most."""

    def goes_on(self, steps: Steps, t: int, moving: Arrays) -> bool:
        """Whether there is step `t`."""
        return True

    def given(self, steps: Steps, t: int, moving: Arrays) -> dict[int, Any]:
        """What a step alone reads, by the number of the input."""
        parts = {k: row(steps.inputs[k], t, (1,)) for k in self.data}
        return {**parts, **dict(zip(self.moving, moving, strict=True))}

    def step(self, steps: Steps, t: int, moving: Arrays) -> Executor:
        """The executor of step `t`."""
        found = steps.made.get((self.which, t))
        if found is not None:
            return found
        given = self.given(steps, t, moving)
        own: dict[int, Any] = {}
        for k, x in given.items():
            whole = steps.gradient(k)
            if whole is None or k in self.data:
                own[k] = whole if whole is None else row(whole, t, (1,))
            else:
                own[k] = steps.zeros(x.shape, x)
        body, numbers = self.fed[self.which]
        count = self.op.num_out_data
        ends = self.made(steps, self.which, given, slice(count, None))
        outputs = [*(row(x, t) for x in steps.outputs[:count]), *ends]
        return steps.executor((self.which, t), body, numbers, given, outputs, own)

    def compute(self, steps: Steps, train: bool) -> None:
        count, most = self.op.num_out_data, self.most(steps)
        for k in self.data:
            steps.inputs[k] = solid(steps.inputs[k])
        moving = [steps.inputs[k] for k in self.moving]
        if not steps.outputs:
            first = self.given(steps, 0, moving)
            steps.outputs = self.made(steps, self.which, first, slice(count), (most,))
        t, steps.roll = 0, None
        while t < most and self.goes_on(steps, t, moving):
            moving, t = self.advance(steps, t, moving, train), t + 1
        for x in steps.outputs[:count] if t < most else ():
            x[t:] = 0
        steps.count, steps.outputs[count:] = t, moving

    def differentiate(self, steps: Steps, heads: Arrays) -> dict[int, Any]:
        count = self.op.num_out_data
        moving = dict(zip(self.moving, heads[count:], strict=True))
        left = range(steps.count)
        if steps.roll is not None:
            moving, left = self.replayed(steps, steps.roll, heads, moving), range(1)
        for t in reversed(left):
            place = self.which, t
            steps.made[place].backward([*(row(h, t) for h in heads[:count]), *moving.values()])
            found = ((k, steps.own[place][k]) for k in self.moving)
            moving = {k: steps.zeros(moving[k].shape, moving[k]) if g is None else g
                      for k, g in found}  # fmt: skip
        return moving

    # steps by replay ------------------------------------------------------------------------

    def advance(self, steps: Steps, t: int, moving: Arrays, train: bool) -> Arrays:
        """Compute step `t`; what the next one begins with."""
        steps.roll = roll = self.roll(steps, train) if t else None
        if roll is None:
            executor = self.step(steps, t, moving)
            executor.forward(is_train=train)
            return executor.outputs[self.op.num_out_data :]
        own = range(len(self.moving))
        if t == 1:
            for k, value in zip(own, moving, strict=True):
                start = roll.slots.array(0, k)
                start[:] = value
                start.wait_to_read()
            for x in steps.outputs:
                x.wait_to_read()
            roll.replay.begin()
        roll.replay.forward(t)
        return [roll.slots.array(t, k) for k in own]

    def replayed(
        self, steps: Steps, roll: Roll, heads: Arrays, moving: Mapping[int, Any]
    ) -> dict[int, Any]:
        """Compute the gradients of all steps but the first; those of what step 1 began with."""
        own = range(len(self.moving), 2 * len(self.moving))
        for dest, value in zip(steps.heads, heads, strict=False):
            dest[:] = value
        last = [roll.slots.array(steps.count, k) for k in own]
        for dest, value in zip(last, moving.values(), strict=True):
            dest[:] = value
        for x in (*steps.heads, *last, *steps.shared.values()):
            x.wait_to_read()
        for t in reversed(range(1, steps.count)):
            roll.replay.backward(t)
        return {k: roll.slots.array(1, n) for k, n in zip(self.moving, own, strict=True)}

    def roll(self, steps: Steps, train: bool) -> Roll | None:
        """What replays the steps behind the first; None where that is not possible."""
        key = self.which, train
        if key not in steps.rolls:
            few = self.most(steps) < FEWEST or (steps.differentiates and not train)
            apart = few or isinstance(steps.made[self.which, 0], StepwiseExecutor)
            steps.rolls[key] = None if apart else self._rolled(steps, train)
        return steps.rolls[key]

    def _rolled(self, steps: Steps, train: bool) -> Roll | None:
        """Two neighbours, bound in slots like all others, and what tells them apart."""
        first, most = steps.made[self.which, 0], self.most(steps)
        states = [(x.shape, arrays.dtype_of(x)) for x in first.outputs[self.op.num_out_data :]]
        arena = first.arena.nbytes if steps.differentiates else 0
        slots = Slots([*states, *states], most + 1, arena, steps.ctx)
        if steps.differentiates and not steps.heads:
            steps.heads = [steps.zeros(x.shape, x) for x in steps.outputs[: self.op.num_out_data]]
        pair = [self._neighbour(steps, slots, t) for t in (1, 2)]
        made = replay(pair[0], pair[1], first._mode(train), 1)
        return None if made is None else Roll(slots, made)

    def _neighbour(self, steps: Steps, slots: Slots, t: int) -> Executor:
        """An executor of step `t` in its slot."""
        count, size = self.op.num_out_data, len(self.moving)
        given = self.given(steps, t, [slots.array(t - 1, k) for k in range(size)])
        own: dict[int, Any] = {}
        for n, k in enumerate(self.moving):
            own[k] = None if steps.gradient(k) is None else slots.array(t, size + n)
        for k in self.data:
            whole = steps.gradient(k)
            own[k] = whole if whole is None else row(whole, t, (1,))
        body, numbers = self.fed[self.which]
        outputs = [row(x, t) for x in steps.outputs[:count]]
        outputs += [slots.array(t, k) for k in range(size)]
        heads = [row(h, t) for h in steps.heads]
        heads += [slots.array(t + 1, size + k) for k in range(size)]
        bound = steps.bound(body, numbers, given, own)
        arena = slots.arena(t) if steps.differentiates else steps.arena
        return Step(Network(body), steps.ctx, bound, heads, arena=arena, outputs=outputs)


def solid(array: Any) -> Any:
    """The array, or a dense copy."""
    is_dense = array._layout == dense(array.shape, arrays.dtype_of(array))
    return array if is_dense else array.copy()


class ForEachRunner(Loop):
    """A step for each part of data."""

    def __init__(self, op: Any) -> None:
        super().__init__(op)
        count = len(op.in_data_locs)
        self.which, self.data = 0, range(count)
        self.moving = range(count, count + len(op.in_state_locs))

    def most(self, steps: Steps) -> int:
        return int(steps.inputs[0].shape[0])


class WhileRunner(Loop):
    """Steps as long as a condition holds."""

    def __init__(self, op: Any) -> None:
        super().__init__(op)
        self.which, self.moving = 1, op.variables

    def most(self, steps: Steps) -> int:
        return int(self.op.max_iterations)

    def goes_on(self, steps: Steps, t: int, moving: Arrays) -> bool:
        roll = self.asked(steps, steps.roll.slots) if t > 1 and steps.roll is not None else None
        if roll is None:
            return self.holds(steps, (0, t), dict(zip(self.moving, moving, strict=True)))
        roll.replay.forward(t)
        return bool(steps.answer.asscalar())

    def asked(self, steps: Steps, slots: Slots) -> Roll | None:
        """What replays the condition from step 2 on, which reads the slots of the steps before."""
        key = 0, False
        if key not in steps.rolls:
            body, numbers = self.fed[0]
            pair, none = list[Executor](), dict.fromkeys(self.moving)
            for t in (2, 3):
                parts = [slots.array(t - 1, k) for k in range(len(self.moving))]
                given = dict(zip(self.moving, parts, strict=True))
                if steps.answer is None:
                    (steps.answer,) = self.made(steps, 0, given)
                bound = steps.bound(body, numbers, given, none)
                bound = bound._replace(requests=["null"] * len(bound.args))
                arena = pair[0].arena if pair else None  # one for all: no slot has another
                network, answer = Network(body), [steps.answer]
                pair.append(Executor(network, steps.ctx, bound, {}, arena, outputs=answer))
            made = replay(pair[0], pair[1], pair[0]._mode(False), 2)
            steps.rolls[key] = None if made is None else Roll(slots, made)
        found = steps.rolls[key]
        return found if found is not None and found.slots is slots else None


class CondRunner(Runner):
    """One of two bodies."""

    def compute(self, steps: Steps, train: bool) -> None:
        which = 1 if self.holds(steps, (0, 0), {}) else 2
        place, steps.count = (which, 0), which
        executor = steps.made.get(place)
        if executor is None:
            body, numbers = self.fed[which]
            outputs = self.made(steps, which, {})
            executor = steps.executor(place, body, numbers, {}, outputs, {})
        executor.forward(is_train=train)
        steps.outputs = list(executor.outputs)

    def differentiate(self, steps: Steps, heads: Arrays) -> dict[int, Any]:
        steps.made[steps.count, 0].backward(heads)
        return {}


#: What runs each operator of control flow.
RUNNERS: dict[str, type[Runner]] = {
    "_foreach": ForEachRunner,
    "_while_loop": WhileRunner,
    "_cond": CondRunner,
}
