"""Native code for what came before: operators, views and assignments without Python between them.

`a + b` of two patterns always gives a node of the same pattern, `t[i:j]` of a pattern a tensor of
the same sizes at the same distance, and an assignment of two patterns runs the same launch. So the
Python methods run once for each; what they gave is entered into a table (`quick.py`), and from then
on the code here makes the node, the tensor or the call. What is not in the table goes to the Python
method, whatever it is: nothing is decided here, and no error is raised.

The table: two words, the address of the epoch and the epoch it holds for; then entries of eight
words: four to look for, and four that are found. It is searched in two places, next to each other.

    function, pattern, pattern or kind of a number or 0, the same  -> pattern of the node, modular
    saver, pattern or kind of a number, pattern of the destination -> recipe, launch
    pattern, start, stop, step (or what marks a whole number)      -> shape, strides, pattern, bytes

The kind of a number is its type, and for whole ones how large they are: `TINY` fits every integer
type, `MIDDLE` those of 32 and 64 bits with a sign, so that none has to be checked when it comes.

Names in angle brackets are numbers: where objects hold their attributes (`fields.py`). The entries
keep nothing alive; `quick.py` does, until the table is emptied. That may happen whenever an object
is allocated, as the collector may run anything, or while a kernel lets other threads run: so the
code here holds what it found from the moment it did.
"""

from __future__ import annotations

from collections.abc import Sequence

BITS = 12  # of the number of places
TINY, MIDDLE = 1, 2
MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)

QUICK = """
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)

define internal void @put(ptr %object, i64 %offset, ptr %value) alwaysinline {
  call void @Py_IncRef(ptr %value)
  call void @set(ptr %object, i64 %offset, ptr %value)
  ret void
}

define internal void @set(ptr %object, i64 %offset, ptr %value) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  store ptr %value, ptr %at
  ret void
}

; what was entered for four words, or null

define internal ptr @find(i64 %a, i64 %b, i64 %c, i64 %d) noinline {
  %epoch.at = load ptr, ptr @Table
  %epoch = load i64, ptr %epoch.at
  %noted.at = getelementptr i64, ptr @Table, i64 1
  %noted = load i64, ptr %noted.at
  %current = icmp eq i64 %epoch, %noted
  br i1 %current, label %search, label %none
search:
  %a.mixed = mul i64 %a, <mix0>
  %b.mixed = mul i64 %b, <mix1>
  %c.mixed = mul i64 %c, <mix2>
  %d.mixed = mul i64 %d, <mix3>
  %ab = xor i64 %a.mixed, %b.mixed
  %cd = xor i64 %c.mixed, %d.mixed
  %all = xor i64 %ab, %cd
  %place = lshr i64 %all, <shift>
  %first = call ptr @matching(i64 %place, i64 %a, i64 %b, i64 %c, i64 %d)
  %there = icmp ne ptr %first, null
  br i1 %there, label %found, label %beside
beside:
  %next = xor i64 %place, 1
  %second = call ptr @matching(i64 %next, i64 %a, i64 %b, i64 %c, i64 %d)
  ret ptr %second
found:
  ret ptr %first
none:
  ret ptr null
}

define internal ptr @matching(i64 %place, i64 %a, i64 %b, i64 %c, i64 %d) alwaysinline {
  %scaled = shl i64 %place, 3
  %word = add i64 %scaled, 2
  %entry = getelementptr i64, ptr @Table, i64 %word
  %b.at = getelementptr i64, ptr %entry, i64 1
  %c.at = getelementptr i64, ptr %entry, i64 2
  %d.at = getelementptr i64, ptr %entry, i64 3
  %what = getelementptr i64, ptr %entry, i64 4
  %a.is = load i64, ptr %entry
  %b.is = load i64, ptr %b.at
  %c.is = load i64, ptr %c.at
  %d.is = load i64, ptr %d.at
  %a.same = icmp eq i64 %a.is, %a
  %b.same = icmp eq i64 %b.is, %b
  %c.same = icmp eq i64 %c.is, %c
  %d.same = icmp eq i64 %d.is, %d
  %ab = and i1 %a.same, %b.same
  %cd = and i1 %c.same, %d.same
  %all = and i1 %ab, %cd
  %result = select i1 %all, ptr %what, ptr null
  ret ptr %result
}

; an operand as a word to look for: its pattern, or the kind of a number; 0 for neither

define internal i64 @key(ptr %x) noinline {
  %type = call ptr @field(ptr %x, i64 <type>)
  %int = icmp eq ptr %type, @int
  br i1 %int, label %whole, label %float
whole:
  %value = call i64 @PyLong_AsLongLong(ptr %x)
  %tiny = icmp ult i64 %value, 128
  br i1 %tiny, label %small, label %larger
small:
  ret i64 <tiny>
larger:
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %clear, label %size
clear:
  %error = call ptr @PyErr_Occurred()
  %beyond = icmp ne ptr %error, null
  br i1 %beyond, label %huge, label %size
huge:
  call void @PyErr_Clear()
  br label %large
size:
  %moved = add i64 %value, 2147483648
  %middle = icmp ult i64 %moved, 4294967296
  br i1 %middle, label %fits, label %large
fits:
  ret i64 <middle>
large:
  ret i64 ptrtoint (ptr @int to i64)
float:
  %plain = icmp eq ptr %type, @float
  br i1 %plain, label %numpy, label %other
other:
  %of.numpy = call i1 @of_numpy(ptr %x)
  br i1 %of.numpy, label %numpy, label %ask
numpy:
  ret i64 ptrtoint (ptr @float to i64)
ask:
  %is = call i1 @is_a(ptr %x, ptr @Expr)
  br i1 %is, label %expression, label %no
expression:
  %pattern = call ptr @field(ptr %x, i64 <Expr.pattern>)
  %unknown = icmp eq ptr %pattern, @None
  %word = ptrtoint ptr %pattern to i64
  %as.pattern = select i1 %unknown, i64 0, i64 %word
  ret i64 %as.pattern
no:
  ret i64 0
}

define internal i1 @of_numpy(ptr %x) alwaysinline {
  %type = call ptr @field(ptr %x, i64 <type>)
  %double = icmp eq ptr %type, @numpy.float64
  %single = icmp eq ptr %type, @numpy.float32
  %either = or i1 %double, %single
  ret i1 %either
}

; a new reference to an operand of a node of that pattern; numbers become Scalars

define internal ptr @operand(ptr %x, ptr %pattern, ptr %modular) noinline {
  %type = call ptr @field(ptr %x, i64 <type>)
  %float = icmp eq ptr %type, @float
  %int = icmp eq ptr %type, @int
  %plain = or i1 %float, %int
  br i1 %plain, label %python, label %other
python:
  call void @Py_IncRef(ptr %x)
  br label %number
other:
  %of.numpy = call i1 @of_numpy(ptr %x)
  br i1 %of.numpy, label %numpy, label %expression
numpy:
  %double = call double @PyFloat_AsDouble(ptr %x)
  %converted = call ptr @PyFloat_FromDouble(double %double)
  br label %number
expression:
  call void @Py_IncRef(ptr %x)
  ret ptr %x
number:
  %value = phi ptr [%x, %python], [%converted, %numpy]
  %made = call ptr @PyType_GenericAlloc(ptr @Scalar, i64 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %out, label %fill
fill:
  call void @set(ptr %made, i64 <Scalar.value>, ptr %value)
  call void @put(ptr %made, i64 <Scalar.modular>, ptr %modular)
  call void @put(ptr %made, i64 <Expr.shape>, ptr @nothing)
  call void @put(ptr %made, i64 <Expr.exp_type>, ptr @mapper)
  %dtype = call ptr @field(ptr %pattern, i64 <Pattern.dtype>)
  call void @put(ptr %made, i64 <Expr.dtype>, ptr %dtype)
  %known = call ptr @field(ptr %pattern, i64 <Pattern.number>)
  call void @put(ptr %made, i64 <Expr.pattern>, ptr %known)
  ret ptr %made
out:
  call void @Py_DecRef(ptr %value)
  ret ptr null
}

; `function` over one to three operands, those behind them null; null where it is not known

define internal ptr @apply(ptr %function, ptr %a, ptr %b, ptr %c) noinline {
  %a.key = call i64 @key(ptr %a)
  %a.unknown = icmp eq i64 %a.key, 0
  br i1 %a.unknown, label %none, label %b.given
b.given:
  %one = icmp eq ptr %b, null
  br i1 %one, label %look, label %b.read
b.read:
  %b.key = call i64 @key(ptr %b)
  %b.unknown = icmp eq i64 %b.key, 0
  br i1 %b.unknown, label %none, label %c.given
c.given:
  %two = icmp eq ptr %c, null
  br i1 %two, label %look, label %c.read
c.read:
  %c.key = call i64 @key(ptr %c)
  %c.unknown = icmp eq i64 %c.key, 0
  br i1 %c.unknown, label %none, label %look
look:
  %count = phi i64 [1, %b.given], [2, %c.given], [3, %c.read]
  %b.word = phi i64 [0, %b.given], [%b.key, %c.given], [%b.key, %c.read]
  %c.word = phi i64 [0, %b.given], [0, %c.given], [%c.key, %c.read]
  %named = ptrtoint ptr %function to i64
  %entry = call ptr @find(i64 %named, i64 %a.key, i64 %b.word, i64 %c.word)
  %unknown = icmp eq ptr %entry, null
  br i1 %unknown, label %none, label %make
make:
  %pattern = load ptr, ptr %entry
  %modular.at = getelementptr i64, ptr %entry, i64 1
  %modular.word = load i64, ptr %modular.at
  %counts = icmp ne i64 %modular.word, 0
  %modular = select i1 %counts, ptr @True, ptr @False
  call void @Py_IncRef(ptr %pattern)
  %args = call ptr @PyTuple_New(i64 %count)
  %no.room = icmp eq ptr %args, null
  br i1 %no.room, label %release, label %a.put
a.put:
  %a.fine = call i1 @element(ptr %args, i64 0, ptr %a, ptr %pattern, ptr %modular)
  br i1 %a.fine, label %b.wanted, label %drop
b.wanted:
  %with.b = icmp sgt i64 %count, 1
  br i1 %with.b, label %b.put, label %node
b.put:
  %b.fine = call i1 @element(ptr %args, i64 1, ptr %b, ptr %pattern, ptr %modular)
  br i1 %b.fine, label %c.wanted, label %drop
c.wanted:
  %with.c = icmp sgt i64 %count, 2
  br i1 %with.c, label %c.put, label %node
c.put:
  %c.fine = call i1 @element(ptr %args, i64 2, ptr %c, ptr %pattern, ptr %modular)
  br i1 %c.fine, label %node, label %drop
node:
  %made = call ptr @PyType_GenericAlloc(ptr @Map, i64 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %drop, label %fill
fill:
  call void @put(ptr %made, i64 <Map.fn>, ptr %function)
  call void @set(ptr %made, i64 <Map.args>, ptr %args)
  call void @set(ptr %made, i64 <Expr.pattern>, ptr %pattern)
  %shape = call ptr @field(ptr %pattern, i64 <Pattern.shape>)
  call void @put(ptr %made, i64 <Expr.shape>, ptr %shape)
  %dtype = call ptr @field(ptr %pattern, i64 <Pattern.dtype>)
  call void @put(ptr %made, i64 <Expr.dtype>, ptr %dtype)
  %exp_type = call ptr @field(ptr %pattern, i64 <Pattern.exp_type>)
  call void @put(ptr %made, i64 <Expr.exp_type>, ptr %exp_type)
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %args)
  br label %release
release:
  call void @Py_DecRef(ptr %pattern)
  br label %none
none:
  ret ptr null
}

define internal i1 @element(
  ptr %args, i64 %index, ptr %x, ptr %pattern, ptr %modular
) alwaysinline {
  %value = call ptr @operand(ptr %x, ptr %pattern, ptr %modular)
  %fine = icmp ne ptr %value, null
  br i1 %fine, label %put, label %out
put:
  %status = call i32 @PyTuple_SetItem(ptr %args, i64 %index, ptr %value)
  %set = icmp eq i32 %status, 0
  ret i1 %set
out:
  ret i1 false
}

; the Python method, with all that the native one was given

define internal ptr @ask(ptr %method, ptr %self, ptr %args, i64 %count) noinline {
  call void @PyErr_Clear()
  %all = add i64 %count, 1
  %few = icmp ule i64 %count, 16
  br i1 %few, label %array, label %tuple
array:
  %given = alloca ptr, i64 17
  store ptr %self, ptr %given
  %rest = getelementptr ptr, ptr %given, i64 1
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 false)
  %result = call ptr @PyObject_Vectorcall(ptr %method, ptr %given, i64 %all, ptr null)
  ret ptr %result
tuple:
  %many = call ptr @PyTuple_New(i64 %all)
  %no.room = icmp eq ptr %many, null
  br i1 %no.room, label %failed, label %first
first:
  call void @Py_IncRef(ptr %self)
  %self.set = call i32 @PyTuple_SetItem(ptr %many, i64 0, ptr %self)
  br label %loop
loop:
  %k = phi i64 [0, %first], [%next, %each]
  %in = icmp slt i64 %k, %count
  br i1 %in, label %each, label %go
each:
  %at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %at
  call void @Py_IncRef(ptr %arg)
  %next = add i64 %k, 1
  %arg.set = call i32 @PyTuple_SetItem(ptr %many, i64 %next, ptr %arg)
  br label %loop
go:
  %answer = call ptr @PyObject_CallObject(ptr %method, ptr %many)
  call void @Py_DecRef(ptr %many)
  ret ptr %answer
failed:
  ret ptr null
}

define ptr @__call__(ptr %self, ptr %args, i64 %count) {
  %less = sub i64 %count, 1
  %few = icmp ult i64 %less, 3
  br i1 %few, label %first, label %slow
first:
  %a = load ptr, ptr %args
  %with.b = icmp sgt i64 %count, 1
  br i1 %with.b, label %second, label %try
second:
  %b.at = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %b.at
  %with.c = icmp sgt i64 %count, 2
  br i1 %with.c, label %third, label %try
third:
  %c.at = getelementptr ptr, ptr %args, i64 2
  %c = load ptr, ptr %c.at
  br label %try
try:
  %b.given = phi ptr [null, %first], [%b, %second], [%b, %third]
  %c.given = phi ptr [null, %first], [null, %second], [%c, %third]
  %made = call ptr @apply(ptr %self, ptr %a, ptr %b.given, ptr %c.given)
  %unknown = icmp eq ptr %made, null
  br i1 %unknown, label %slow, label %done
done:
  ret ptr %made
slow:
  %asked = call ptr @ask(ptr @python.__call__, ptr %self, ptr %args, i64 %count)
  ret ptr %asked
}
"""

_OPERATOR = """
define ptr @{method}(ptr %self, ptr %args, i64 %count) {{
  %right = icmp eq i64 %count, {others}
  br i1 %right, label %try, label %slow
try:
  {load}
  %made = call ptr @apply(ptr @{function}, {operands}, ptr null)
  %unknown = icmp eq ptr %made, null
  br i1 %unknown, label %slow, label %done
done:
  ret ptr %made
slow:
  %asked = call ptr @ask(ptr @python.{method}, ptr %self, ptr %args, i64 %count)
  ret ptr %asked
}}
"""
_OTHER = "%other = load ptr, ptr %args"
_ORDERS = {
    "own": (0, "", "ptr %self, ptr null"),
    "left": (1, _OTHER, "ptr %self, ptr %other"),
    "right": (1, _OTHER, "ptr %other, ptr %self"),
}


def operator(method: str, function: str, order: str) -> str:
    """A method that maps `function` over self alone, or with its operand on the other side."""
    others, load, operands = _ORDERS[order]
    return _OPERATOR.format(
        method=method, function=function, others=others, load=load, operands=operands
    )


def numbers() -> dict[str, int]:
    """What the text's names in angle brackets mean, besides where attributes lie."""
    mixes: Sequence[tuple[str, int]] = [(f"mix{k}", mix) for k, mix in enumerate(MIX)]
    return dict(mixes) | {"shift": 64 - BITS, "tiny": TINY, "middle": MIDDLE}
