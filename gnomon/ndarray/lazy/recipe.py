"""Recipes: what one operator does to operands of given shapes, strides and dtypes, made once.

A recipe is kept with its operator under the layouts of the operands, so that a second call costs a
look-up: inference is done, the kernel compiled, and its steps take the operands' addresses as they
come (see `runtime/kernels/template.py`). Operands that an output overlaps keep their distance in
memory, since that decides what may be done in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from gnomon import engine
from gnomon.context import Context
from gnomon.dtype import DType, float32, float64, int64
from gnomon.engine import Var
from gnomon.engine.fast_path import FastPath, PreparedFastPath, fits
from gnomon.expr.composite import Call
from gnomon.expr.ext import philox
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.walk import postorder
from gnomon.ground.record import Frozen, put, record
from gnomon.native.words import whole
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.lazy.landing import fast_path
from gnomon.ndarray.lazy.numbers import Number, matched, words_of
from gnomon.runtime.execution.program import Done
from gnomon.runtime.execution.stream import Task
from gnomon.runtime.kernels.template import Copy, Template
from gnomon.runtime.kernels.workspace import BRIEF_MEMORY, LOCK_MEMORY
from gnomon.runtime.statements.launch_code import DOUBLE, FLOAT
from gnomon.runtime.statements.prepare import Store, prepare
from gnomon.shape import prod

Shape = tuple[int, ...]

_QUICK = 40e-6  # seconds: a run that short may be made under the engine's lock
_PLAIN = {float32: FLOAT, float64: DOUBLE}  # numbers that native code writes
NBYTES = 6 << 10  # of a recipe, without what libraries keep for it
PASSING = 2  # first runs that go by the family: what a member has for itself pays after some 20
_FEWEST, _TRIALS = 3, 40  # runs that are timed; a busy machine makes some of them long


class Dest(NamedTuple):
    """Where a value goes: an operand's number, and how it is stored there."""

    operand: int
    saver: str


class Draws:
    """Gives an operator its random numbers as expressions, and notes how many it took."""

    def __init__(self, states: Callable[[], Buffer]) -> None:
        self.counts: list[int] = []
        self._states = states

    def uniform(self, shape: Shape, dtype: DType) -> Expr:
        """Numbers in [0, 1)."""
        return self._draw(shape, "uniform", dtype)

    def normal(self, shape: Shape, dtype: DType) -> Expr:
        """Normal numbers."""
        return self._draw(shape, "normal", dtype)

    def _draw(self, shape: Shape, kind: str, dtype: DType) -> Expr:
        self.counts.append(prod(shape))
        return philox(self._states(), shape, kind, dtype)


#: gives the value of each destination, None where there is none, of the operands' buffers
Express = Callable[[Sequence[Buffer], Draws], Sequence[Expr | None]]


@record(slots=False)
class Work:
    """What a recipe is made of: operands, the values, and where they go."""

    name: str
    layouts: Sequence[Layout]
    express: Express
    dests: Sequence[Dest]
    anchors: Sequence[tuple[int, int]]  # for each operand: whose memory it lies in, and how far
    draws_any: bool  # whether it may take random numbers
    probes: Sequence[Express] = ()  # `express` with each set of stand-ins for its numbers
    given: int = 0  # how many numbers come with each run

    @property
    def first(self) -> int:
        """The number of the first operand that is a result."""
        return self.dests[0].operand if self.dests else 0

    def draws(self) -> list[int]:
        """How many random numbers each draw takes."""
        if not self.draws_any:
            return []
        noted = Draws(lambda: Buffer((2,), int64))
        self.express(self.leaves(), noted)
        return noted.counts

    def numbers(self) -> list[Number]:
        """What is given to each run beside addresses; NotShared where that cannot be said."""
        if not self.probes:
            return []
        leaves = self.leaves()
        draws = Draws(lambda: Buffer((2,), int64))
        sides = [[v for v in probe(leaves, draws) if v is not None] for probe in self.probes]
        found = matched(sides[0], sides[1], self.given)
        if found is None or any(isinstance(node, Call) for node in postorder(sides[0])):
            raise NotShared
        return found

    def leaves(self) -> list[Buffer]:
        """What stands for the operands where no memory is needed."""
        return [Buffer(x.shape, x.dtype, x.strides) for x in self.layouts]

    def steps(self, addresses: Sequence[int], probe: int | None = None, device: str = "cpu") -> Any:
        """The steps for operands at `addresses`; the states of the draws follow the operands."""
        count = len(self.layouts)
        places = [addresses[owner] + offset for owner, offset in self.anchors]
        buffers = [
            Buffer(x.shape, x.dtype, x.strides, place, None, device)
            for x, place in zip(self.layouts, places, strict=True)
        ]
        states = iter([Buffer((2,), int64, None, a, None, device) for a in addresses[count:]])
        express = self.express if probe is None else self.probes[probe]
        values = express(buffers, Draws(lambda: next(states)))
        return prepare(self.stores(buffers, values), self.name)

    def stores(self, buffers: Sequence[Buffer], values: Sequence[Expr | None]) -> list[Store]:
        """The values of `express` as statements."""
        return [
            Store(buffers[dest.operand], dest.saver, value)  # type: ignore[arg-type]
            for dest, value in zip(self.dests, values, strict=True)
            if value is not None
        ]


class Elsewhere(Protocol):
    """A device whose memory is its own: it makes recipes of another kind, each for itself."""

    def recipe_for(self, work: Work, given: Any = None) -> Any:
        """As the function of this name."""


class NotShared(Exception):
    """The numbers of a work cannot be told from the rest of it."""


class Alike(NotShared):
    """The stand-ins of a number are one word in its dtype: both are True as a bool."""


@whole
class Recipe(Frozen):
    """A `Work` ready to be done: `run(addresses)` of operands and draws, then the numbers' words.

    `fast_path` does the same in one native call, if that is short, by the record at `address`; the
    first runs of a family's member go by the family's. `brief`, once it is known to be quick, does
    it where no other code runs at that time.
    """

    __slots__ = (
        "_best",
        "_first",
        "_make",
        "_passed",
        "_passing",
        "_prepared",
        "_template",
        "_trials",
        "address",
        "brief",
        "draws",
        "fast_path",
        "given",
        "numbers",
    )  # fmt: skip

    _best: float  # seconds
    _first: int  # the number of the first operand that is a result
    _make: Callable[[], Template]
    _passed: int  # how often it ran so, or was about to
    _passing: FastPath | None
    _prepared: list[PreparedFastPath]  # one, or those of threads that came together, for good
    _template: Template | None
    _trials: int
    address: int | None
    brief: Callable[[Sequence[int], Done, Any], None] | None
    draws: list[int]
    given: Any  # what the caller wants to know again
    numbers: list[Number]
    fast_path: FastPath | None

    def __init__(
        self,
        first: int,
        make: Callable[[], Template],
        draws: list[int],
        numbers: list[Number],
        given: Any = None,
        passing: FastPath | None = None,
    ) -> None:
        """`first` is the number of the first operand that is a result, `make` gives the template.

        Where the first runs go by `passing`, this is made for those behind them.
        """
        put(self, "_first", first)
        put(self, "draws", draws)
        put(self, "numbers", numbers)
        put(self, "_make", make)
        put(self, "_template", None)
        put(self, "_passing", passing)
        put(self, "_passed", 0)
        put(self, "given", given)
        put(self, "brief", None)
        put(self, "_trials", 0)
        put(self, "_best", 1.0)
        put(self, "_prepared", [])
        put(self, "fast_path", None)
        put(self, "address", None)
        if passing is None:
            self._prepare()

    @property
    def template(self) -> Template:
        """What does the work where it is no fast path's."""
        found = self._template
        if found is None:
            found = self._make()
            put(self, "_template", found)
        return found

    @property
    def kept_bytes(self) -> int:
        """About what it keeps."""
        template = self._template
        return NBYTES + (0 if template is None else template.held)

    @property
    def passes(self) -> bool:
        """Whether it may not come often, so that nothing is to be learnt from it."""
        return self._passing is not None

    def way(self) -> FastPath | None:
        """What does the next run in one native call, where the work is short."""
        passing = self._passing
        if passing is None:
            return self.fast_path
        if self._passed < PASSING:
            put(self, "_passed", self._passed + 1)
            return passing
        self._prepare()
        put(self, "_passing", None)
        return self.fast_path

    def _prepare(self) -> None:
        """Have a fast path, where the work is short."""
        prepared = _prepared(self.template, self.numbers, self._first)
        if prepared is not None:
            self._prepared.append(prepared)
            put(self, "fast_path", prepared.call)
            put(self, "address", prepared.address)

    def run(self, addresses: Sequence[int], done: Done) -> None:
        """Do the work, unless it is done; the first runs are timed, to know whether it is quick."""
        if self._trials >= _TRIALS or done:
            self.template.run(addresses, done)
            return
        begin = perf_counter()
        self.template.run(addresses, done)
        put(self, "_best", min(self._best, perf_counter() - begin))
        put(self, "_trials", self._trials + 1)
        if self._trials == _FEWEST and self.fast_path is None:
            self._prepare()  # it may have been thought to be long
        if self._trials >= _FEWEST and self._best < _QUICK:
            put(self, "_trials", _TRIALS)
            if self.fast_path is None:
                put(self, "brief", _briefly(self.template.reserve()))


def recipe_for(work: Work, given: Any = None) -> Recipe:
    """A recipe that does a work.

    Raises:
        NotShared: its numbers do more than to stand in its expressions.
    """
    template, draws, numbers = template_for(work)
    return Recipe(work.first, lambda: template, draws, numbers, given)


def template_for(
    work: Work, made: Callable[..., Any] = Template
) -> tuple[Any, list[int], list[Number]]:
    """The template of a work, what its draws take, and the numbers that come with each run.

    `made` is the template's class, or as good.

    Raises:
        NotShared: as `recipe_for`.
    """
    draws, numbers = work.draws(), list(dict.fromkeys(work.numbers()))
    pairs = [words_of(number) for number in numbers]
    if any(first == second for first, second in pairs):
        raise Alike
    # kernels take numbers as words of their arguments, but those that simplifying leaves out
    return made(work.steps, len(work.layouts) + len(draws), pairs), draws, numbers


def _prepared(template: Template, numbers: Sequence[Number], first: int) -> PreparedFastPath | None:
    """The steps of a template as a fast path; None where they are not short."""
    if template.is_long:
        return None
    copy = template.reserve()
    if not fits(copy.step):
        template.give_back(copy)
        return None
    if copy.needs.nbytes:
        copy.work_in(LOCK_MEMORY.of(copy.needs.nbytes))
    begins = [block.address for block in copy.blocks]
    places = [(begins[block] + 8 * word, *given) for block, word, *given in template.places]
    plain = [(n.place, _PLAIN.get(n.dtype, 0)) for n in numbers]
    count = template.count + len(numbers)
    return PreparedFastPath(copy.step, places, count, first, fast_path, plain)


def _briefly(copy: Copy) -> Callable[[Sequence[int], Done, Any], None]:
    """A function of operands and `Done` that runs a copy which no other run uses."""
    if copy.needs.nbytes:
        copy.work_in(BRIEF_MEMORY.of(copy.needs.nbytes))
    slots, call = copy.slots, copy.call

    def brief(addresses: Sequence[int], done: Done, run_ctx: Any) -> None:
        for words, place, operand, offset in slots:
            words[place] = addresses[operand] + offset
        call(done)

    return brief


def dispatch(
    recipe: Recipe,
    name: str,
    addresses: list[int],
    read: list[Var],
    written: list[Var],
    ctx: Context,
    keep: Any,
    done: Done | None = None,
) -> None:
    """Have the engine run a recipe; variables may be named twice, and `keep` owns the memory.

    The caller has pushed the pending readers of what is written. `done` is empty until
    the work is done.
    """
    pushed = engine.get()
    way = recipe.way()
    if way is not None and pushed.try_fast_path(way, read, written, addresses, []):
        return
    done = [] if done is None else done
    if recipe.brief is not None:
        brief = _Brief(recipe.brief, addresses, done)
        if pushed.run_brief(brief, read, written, None, name):  # it asks nothing of its context
            return
    mutate = dict.fromkeys(written)
    const = dict.fromkeys([var for var in read if var not in mutate])
    task = Run(recipe, addresses, done, keep)
    pushed.push_checked(task, ctx, tuple(const), tuple(mutate), name)


class _Brief(partial[None]):
    """A brief run of a recipe, of its operands and `Done`."""

    resumable = True

    @property
    def done(self) -> Done:
        """Filled when the work is done."""
        done: Done = self.args[1]
        return done


class Run:
    """One run of a recipe: what the engine calls; called again, it goes on where it was."""

    __slots__ = ("addresses", "done", "keep", "recipe")

    resumable = True

    def __init__(self, recipe: Recipe, addresses: Sequence[int], done: Done, keep: Any) -> None:
        self.recipe, self.addresses, self.done, self.keep = recipe, addresses, done, keep

    def __call__(self, run_ctx: Any) -> None:
        self.recipe.run(self.addresses, self.done)

    @property
    def is_long(self) -> bool:
        """Whether it is worth to be run behind the program."""
        return self.recipe.template.is_long

    def task(self) -> Task:
        """It as a task of the stream."""
        return self.recipe.template.task(self.addresses, self.keep)
