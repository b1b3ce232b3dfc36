"""Several groups of statements on arrays as one operation of the engine.

An optimizer changes all weights of a network in one go, and a store copies all of them: as
operators one by one, the calls would take longer than the work. A batch is compiled once for
operands of some layouts; the operands' addresses come with each push, so no array is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from gnomon import engine
from gnomon.expr.node import Buffer
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import ways
from gnomon.ndarray.core.layout import Layout
from gnomon.runtime.execution.program import Done, Program, Step
from gnomon.runtime.execution.stream import Task
from gnomon.runtime.kernels.rebind import Rebinder
from gnomon.runtime.kernels.template import Template
from gnomon.runtime.statements.prepare import Store, prepare
from gnomon.shape import prod


class Group(NamedTuple):
    """Statements on `operands`; their values are all taken before any of them is stored.

    What one function says of operands of the same layouts differs by their addresses alone, so one
    such group is prepared for all of them.
    """

    operands: Sequence[Buffer]
    statements: Callable[[Sequence[Buffer]], Sequence[Store]]


Groups = Callable[[Sequence[Buffer]], Iterable[Group]]


class Batch:
    """Statements on operands of the given layouts, and on `more` words of other memory.

    >>> from gnomon import nd
    >>> x, y = nd.array([1.0, 2.0]), nd.zeros((2,))
    >>> def twice(operands):
    ...     source, target = operands
    ...     return [Store(target, "saveto", source * 2)]
    >>> groups = lambda buffers: [Group(flat(buffers), twice)]
    >>> double = Batch("double", [x._layout, y._layout], groups)
    >>> double.push([x, y], written=[1])
    >>> y.asnumpy()
    array([2., 4.], dtype=float32)
    """

    __slots__ = ("_groups", "_layouts", "_more", "_template", "elsewhere", "name")

    def __init__(
        self, name: str, layouts: Sequence[Layout], groups: Groups, more: Sequence[Layout] = ()
    ) -> None:
        self.name = name
        self._groups, self._layouts, self._more = groups, layouts, more
        self._template: Template | None = None
        self.elsewhere: dict[Any, Any] = {}  # templates of devices with memory of their own

    def _by_processor(self) -> Template:
        """The statements as code of the processor, which is compiled when it is first needed."""
        self._template = Template(self.steps, self.count)
        return self._template

    @property
    def count(self) -> int:
        """How many operands there are, with those of other memory."""
        return len(self._layouts) + len(self._more)

    @property
    def offsets(self) -> list[int]:
        """Where each of the operands in other memory begins behind the first; the end at last."""
        return list(accumulate((x.nbytes for x in self._more), initial=0))

    def steps(self, addresses: Sequence[int], device: str = "cpu") -> list[Step]:
        """The statements on operands at these addresses, as steps."""
        buffers = [
            Buffer(x.shape, x.dtype, x.strides, address, None, device)
            for x, address in zip([*self._layouts, *self._more], addresses, strict=True)
        ]
        rebinder = Rebinder()
        return [
            step
            for operands, statements in self._groups(buffers)
            for step in rebinder.steps(
                (statements, *[(b.shape, b.dtype, b.strides) for b in operands]),
                operands,
                lambda said=statements, given=operands: prepare(said(given), self.name),
                self.name,
            )
        ]

    def push(
        self,
        arrays: Sequence[Array],
        written: Sequence[int],
        more: Sequence[int] = (),
        keep: Any = None,
        priority: int = 0,
        overtakes: bool = False,
    ) -> None:
        """Have the engine run the statements on `arrays`, of which those numbered are written.

        `more` are addresses of further memory, one right behind the other, which no other code may
        write; `keep` owns it. An array that is written may share no element with another. With
        `overtakes`, a worker runs it as soon as the arrays are ready, before what else the
        processor's stream has to do.
        """
        place = arrays[0].context
        way = ways.get(place.device_typeid)
        if way is not None:
            way.run(self, arrays, written, more[0] if more else 0, keep)
            return
        chunks = [x._chunk for x in arrays]  # first: see `array.py`
        addresses = [x._address for x in arrays]
        addresses += more
        mutate = dict.fromkeys([chunks[k] for k in written])
        const = dict.fromkeys([chunk for chunk in chunks if chunk not in mutate])
        template = self._template or self._by_processor()
        task = _Run(template, addresses, (chunks, keep))
        push = engine.get().push_sync if overtakes else engine.get().push_inline
        push(task, place, tuple(const), tuple(mutate), priority, self.name)

    def fixed(self, addresses: Sequence[int]) -> Step:
        """The statements on operands that stay where they are, as a step of the caller's own."""
        copy = (self._template or self._by_processor()).own()
        copy.place(addresses)
        step = Program(copy.steps, self.name)  # the template makes others like these steps
        step.keep = step.keep, copy.memory
        return step


class _Run:
    """One run of a batch: what the engine calls; called again, it goes on where it was."""

    __slots__ = ("addresses", "done", "keep", "template")

    resumable = True

    def __init__(self, template: Template, addresses: Sequence[int], keep: Any) -> None:
        self.template = template
        self.done: Done = []
        self.addresses = addresses
        self.keep = keep

    def __call__(self, _: Any) -> None:
        self.template.run(self.addresses, self.done)

    @property
    def is_long(self) -> bool:
        """Whether it is worth to be run behind the program."""
        return self.template.is_long

    def task(self) -> Task:
        """It as a task of the stream."""
        return self.template.task(self.addresses, self.keep)


def flat(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Buffers of one shape as vectors where they have no gaps: all shapes are then one kernel."""
    shape = buffers[0].shape
    if not all(b.contiguous and b.shape == shape for b in buffers):
        return list(buffers)
    size = prod(shape)
    return [Buffer((size,), b.dtype, None, b.address, b.owner, b.device) for b in buffers]


def overlapping(written: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether an array of `written` shares memory with another, of `written` or of `others`."""
    chunks = [x._chunk for x in (*written, *others)]
    if len({id(c) for c in chunks}) == len(chunks):
        return False
    spans = [x._span() for x in (*written, *others)]
    return any(
        spans[k][0] < spans[j][1] and spans[j][0] < spans[k][1]
        for k in range(len(written))
        for j in range(k + 1, len(spans))
    )
