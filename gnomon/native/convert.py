"""Numbers in registers and as objects, and values in the form that is expected."""

from __future__ import annotations

from gnomon.native.builder import Builder
from gnomon.native.ir import ANY, Value
from gnomon.native.kinds import BOOL, FLOAT, INT, NONE, PLAIN, Kind, KitError

_WIDENED = {"i32": "sext i32 {} to i64", "float": "fpext float {} to double"}
_NARROWED = {"i32": "trunc i64 {} to i32", "float": "fptrunc double {} to float"}


class Conversions(Builder):
    """Values in another form."""

    def unboxed(self, value: Value) -> Value:
        """A number or truth in a register, from the object that it is."""
        kind, text = value.kind, value.text
        if kind.llvm in PLAIN:
            return value
        if kind.cls is bool:
            return Value(self.value(f"icmp eq ptr {text}, @True"), BOOL)
        if kind.cls is int:
            made = Value(self.call("PyLong_AsLongLong", "i64", value), INT)
        elif kind.cls is float:
            made = Value(self.call("PyFloat_AsDouble", "double", value), FLOAT)
        else:
            raise KitError(f"a number is needed, not {kind}")
        if not value.trusted:
            self.check_number(made)
        return made

    def check_number(self, value: Value) -> None:
        """End with an error if a number stands for one."""
        if value.kind == BOOL:
            return
        test = "icmp eq i64" if value.kind == INT else "fcmp oeq double"
        odd = self.value(f"{test} {value.text}, {-1 if value.kind == INT else '-1.0'}")
        self.raise_pending(odd, rare=True)

    def raise_pending(self, odd: str, rare: bool) -> None:
        """End with the error that an odd answer may stand for, if one was raised."""
        maybe, fine = self.label(), self.label()
        self.branch(odd, maybe, fine, rare)
        self.at(maybe)
        self.check(self.value(f"icmp ne ptr {self.call('PyErr_Occurred', 'ptr')}, null"))
        self.go(fine)
        self.at(fine)

    def is_absent(self, found: str) -> str:
        """Whether a function in C found nothing; ends with the error if one was raised."""
        absent = self.value(f"icmp eq ptr {found}, null")
        self.raise_pending(absent, rare=False)
        return absent

    def boxed(self, value: Value) -> Value:
        """The object of a number or truth."""
        kind, text = value.kind, value.text
        if kind == BOOL:
            truth = self.value(f"select i1 {text}, ptr @True, ptr @False")
            return Value(truth, Kind("ptr", bool))
        if kind not in (INT, FLOAT):
            if not kind.is_object:
                raise KitError(f"an object is needed, not {kind}")
            return value
        if value.number is not None and -5 <= value.number <= 256:
            return Value(self.unit.literal(value.number), Kind("ptr", int))
        name = "PyLong_FromLongLong" if kind == INT else "PyFloat_FromDouble"
        return self.call_object(name, Kind("ptr", kind.cls), value, runs="")

    def fine(self, status: str, type: str = "i32") -> None:
        """End with an error if a status is below 0."""
        self.check(self.value(f"icmp slt {type} {status}, 0"))

    def call_status(self, name: str, *given: Value, runs: str = ANY) -> Value:
        """Call a function in C whose status is below 0 for an error; gives None."""
        self.fine(self.call(name, "i32", *given, runs=runs))
        return Value("@None", NONE)

    def wide(self, text: str, width: str) -> Value:
        """A number of memory, or of C, in a register."""
        how = _WIDENED.get(width, "")
        kind = FLOAT if width in ("float", "double") else INT
        return Value(self.value(how.format(text)) if how else text, kind)

    def narrow_to(self, value: Value, width: str, what: str) -> str:
        """A number as memory, or C, has it."""
        kind = FLOAT if width in ("float", "double") else INT
        text, how = self.fitted(value, kind, what).text, _NARROWED.get(width, "")
        return self.value(how.format(text)) if how else text

    def load_word(self, at: str, width: str) -> Value:
        """The number that lies at a place in memory."""
        return self.wide(self.value(f"load {width}, ptr {at}, align 4"), width)

    def store_word(self, at: str, width: str, value: Value, what: str) -> None:
        """Have a number lie at a place in memory."""
        self.emit(f"store {width} {self.narrow_to(value, width, what)}, ptr {at}, align 4")

    def pointer(self, address: Value, kind: Kind) -> Value:
        """What lies at an address."""
        return Value(self.value(f"inttoptr i64 {address.text} to ptr"), kind)

    def fitted(self, value: Value, kind: Kind, what: str) -> Value:
        """A value in the form of a kind; KitError where it is of another."""
        if kind.llvm in PLAIN:
            value = self.unboxed(value)
        elif kind.is_object:
            value = self.boxed(value)
        if kind.llvm != value.kind.llvm or kind.is_object != value.kind.is_object:
            raise KitError(f"{what}: {kind} is expected, not {value.kind}")
        wanted, cls = kind.cls, value.kind.cls
        if not kind.is_object or wanted is object or cls in (wanted, type(None)):
            return value
        if isinstance(cls, type) and isinstance(wanted, type) and issubclass(cls, wanted):
            return value
        raise KitError(f"{what}: {kind} is expected, not {value.kind}; say `cast`")
