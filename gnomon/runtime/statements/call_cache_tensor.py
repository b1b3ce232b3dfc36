"""Views and assignments that came before, as native functions; goes with `call_cache_code.py`."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from gnomon.expr.node import RVALUE, Buffer
from gnomon.expr.pattern import NONE, Pattern
from gnomon.ground.record import put
from gnomon.native.words import (
    Words,
    keep_alive,
    native,
    new,
    scratch,
    there,
    variant,
    word_or,
)
from gnomon.runtime.statements import fields
from gnomon.runtime.statements.call_cache_code import (
    PYTHON,
    find,
    known_call,
    made_by,
    operand,
    word_of,
)
from gnomon.runtime.statements.launch_code import DONE, start
from gnomon.shape import Shape

ABSENT = -(1 << 63)  # start, stop or step is None
ROW = ABSENT + 1  # in the place of the step: a whole number, which takes an axis away
_NEITHER = ABSENT + 2  # a bound of another kind, which is never noted
LARGE = 1 << 62  # bounds lie below

_slice = fields.slice_offsets()
_START, _STOP, _STEP = _slice["start"], _slice["stop"], _slice["step"]
METHOD: Any = PYTHON  # in a variant: what is asked of what is not known,
SAVER: str = ""  # and how values are stored


class Handle(Buffer):
    """What native code knows of the tensors of users; `tensor` is their class."""

    __slots__ = ("stream_",)

    tensor: ClassVar[Any] = None
    stream_: Any


@native
def _bound(x: object) -> int:
    """A bound of a slice as a word."""
    if x is None:
        return ABSENT
    if type(x) is not int:
        return _NEITHER
    found = word_or(x, LARGE)
    return found if found > -LARGE and found < LARGE else _NEITHER


@native
def _part(key: object, offset: int) -> object:
    """A bound of a slice."""
    return there(Words(id(key) + offset)[0])


@native
def _is_all(key: object) -> bool:
    """Whether a key is `:`."""
    if type(key) is not slice or _part(key, _START) is not None:
        return False
    return _part(key, _STOP) is None and _part(key, _STEP) is None


@native
def _moved(
    self: Handle, shape: Shape, strides: Shape, pattern: Pattern, distance: int
) -> Handle | None:
    """A tensor of that form over the memory of another, so many bytes further; None without."""
    owner = self.owner
    address: int = self.address
    if owner is None or address <= 0:
        return None
    made = new(Handle.tensor)
    put(made, "address", address + distance)
    put(made, "shape", shape)
    put(made, "strides", strides)
    put(made, "pattern", pattern)
    put(made, "exp_type", RVALUE)
    put(made, "_layout", None)
    put(made, "owner", owner)
    put(made, "dtype", self.dtype)
    put(made, "device", self.device)
    put(made, "stream_", self.stream_)
    return made  # type: ignore[no-any-return]


@native
def _viewed(self: Handle, key: object) -> Handle | None:
    """`self[key]` as a new tensor over the same memory; None where it is not known."""
    last = 0
    step = ROW
    if type(key) is slice:
        first = _bound(_part(key, _START))
        last = _bound(_part(key, _STOP))
        step = _bound(_part(key, _STEP))
    elif type(key) is int:
        first = _bound(key)
    else:
        return None
    form = word_of(self)
    if form == 0:  # four zeros are what an empty place of the table holds
        return None
    entry = find(form, first, last, step)
    if entry.address == 0:
        return None
    shape = cast(Shape, there(entry[0]))
    strides = cast(Shape, there(entry[1]))
    return _moved(self, shape, strides, cast(Pattern, there(entry[2])), entry[3])


@native
def _is_stored(saver: str, dest: Buffer, value: object) -> bool:
    """Whether `dest saver value` was carried out."""
    form = word_of(dest)
    entry = find(id(saver), word_of(value), form, 0)
    if entry.address == 0:
        return False
    recipe = Words(entry[0])
    launch = there(entry[1])
    pattern = cast(Pattern, there(form))
    expression = operand(value, pattern.dtype, pattern.number, False)
    registers = scratch(recipe[0] + 2)
    registers[0] = id(dest)
    registers[1] = id(expression)
    done = start(recipe, registers, 2) == DONE
    keep_alive(launch)
    return done


@native
def _is_itself(dest: Handle, value: object) -> bool:
    """Whether a value is the destination itself, or the same memory in the same form."""
    if dest is value:
        return True
    if type(value) is not Handle.tensor:
        return False
    form = word_of(dest)
    if form == 0 or form == id(NONE) or form != word_of(value):
        return False
    address: int = dest.address
    other: int = cast(Handle, value).address
    return address == other and address > 0


@native
def _getitem(self: Handle, key: object) -> object:
    if _is_all(key):
        return self
    made = _viewed(self, key)
    return METHOD(self, key) if made is None or not made.shape else made


@native
def _setitem(self: Handle, key: object, value: object) -> None:
    dest = self if _is_all(key) else _viewed(self, key)
    if dest is None or not (_is_itself(dest, value) or _is_stored("saveto", dest, value)):
        METHOD(self, key, value)


@native
def _assigned(self: Handle, value: object) -> object:
    return self if _is_stored(SAVER, self, value) else METHOD(self, value)


@native
def recall(memory: object, function: object, given: tuple[Any, ...]) -> object:
    """What a function made of arguments like these; None if that is not known."""
    entry = known_call(function, given)
    if entry.address == 0:
        return None
    program = cast("tuple[Any, ...]", there(entry[1]))
    nodes = entry[2]
    if nodes > 0:
        return made_by(program, nodes, given)
    source = given[cast(int, program[3])]
    if not isinstance(source, Handle):
        return None
    shape = cast(Shape, program[0])
    return _moved(source, shape, cast(Shape, program[1]), cast(Pattern, program[2]), entry[3])


def assignments(savers: dict[str, str]) -> list[Any]:
    """Item access, and assignments by operators: the saver of each, by the method's name."""

    def method(function: Any, name: str, **more: str) -> Any:
        python = PYTHON[name]
        return variant(function, name, python.__doc__, METHOD=(PYTHON, name), **more)

    found = [method(_assigned, name, SAVER=saver) for name, saver in savers.items()]
    return [*found, method(_getitem, "__getitem__"), method(_setitem, "__setitem__")]
