"""Native code that starts a step from Python objects: reads them, checks, places, runs.

`launch(registers)` follows a *recipe*, an array of 64-bit words. What it is called with are the
first registers; then the recipe says, instruction by instruction, which attribute or element of a
register comes next: another object for a register, or a value: an address, a number. Values are
checked against what the code was made for and written into the argument blocks; then the step
runs. All of that is one call from Python's side, so that a small statement costs what its kernel
does and 0.1 us; nothing of it can be interrupted half done.

The recipe, in words (see `launch.py`, which writes it):

    0  instructions, their address       each: source, type, offset, name, index, kind, base, delta
    2  pairs, their address              each: i, low, high, j, low, high
    4  places, their address             each: address of a word, value, offset
    6  address of an int32, its value    how many threads there are
    8  address of an int64, its value    how often tensors have changed their shapes
   10  function, block, status           of the step
   13  whether others may run meanwhile  (the GIL is let go)
   14  busy                              1 while it runs
   15  the name of what owns memory      held while others may run, who may resize a tensor

An instruction takes an attribute of a register, and of that element `index` (none where it is
negative). The attribute is what lies `offset` bytes behind an object of that `type` (see
`fields.py`), or without a type what Python finds by its `name`; without both, the register itself.
Kinds: 0 an object, for the next register; 1 an address: not 0, and `delta`
behind that of instruction `base`, where `base` is not negative; 2, 3, 4 a number as float32,
float64, int64; 5 the very object at `base`; 6 what is in register `base`, once more. A pair is two
pieces of memory that must lie apart. `launch` returns True when all is done, None when the step
failed, and False, with nothing done, where the recipe does not hold: somebody else is running it,
or other objects came. `start` is the same for other native code (`quick_code.py`): 1, 2 or 0. Only
functions of Python's stable interface are called.
"""

from __future__ import annotations

OBJECT, ADDRESS, FLOAT, DOUBLE, INTEGER, SAME, TWIN = range(7)
WORDS = 16
MOST = 512  # instructions: what the stack is asked for

START = """
@True = external global i64
@False = external global i64
@None = external global i64
declare void @PyErr_Clear()
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)

define internal ptr @field(ptr %object, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal i1 @is_a(ptr %object, ptr %type) alwaysinline {
  %own = call ptr @field(ptr %object, i64 <type>)
  %exactly = icmp eq ptr %own, %type
  br i1 %exactly, label %out, label %ask
ask:
  %answer = call i32 @PyType_IsSubtype(ptr %own, ptr %type)
  %derived = icmp ne i32 %answer, 0
  br label %out
out:
  %is = phi i1 [true, %0], [%derived, %ask]
  ret i1 %is
}

define internal i64 @start(ptr %r, ptr %given, i64 %count) noinline {
entry:
  %steps = load i64, ptr %r
  %code.at = getelementptr i64, ptr %r, i64 1
  %code = load ptr, ptr %code.at
  %room = add i64 %steps, %count
  %registers = alloca ptr, i64 %room
  %values = alloca i64, i64 %steps
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %registers, ptr %given, i64 %bytes, i1 false)
  br label %read

read:
  %k = phi i64 [0, %entry], [%k.next, %kept]
  %next = phi i64 [%count, %entry], [%next.now, %kept]
  %reading = icmp slt i64 %k, %steps
  br i1 %reading, label %fetch, label %apart
fetch:
  %step = getelementptr [8 x i64], ptr %code, i64 %k
  %source = load i64, ptr %step
  %type.at = getelementptr i64, ptr %step, i64 1
  %type = load ptr, ptr %type.at
  %offset.at = getelementptr i64, ptr %step, i64 2
  %offset = load i64, ptr %offset.at
  %name.at = getelementptr i64, ptr %step, i64 3
  %name = load ptr, ptr %name.at
  %index.at = getelementptr i64, ptr %step, i64 4
  %index = load i64, ptr %index.at
  %kind.at = getelementptr i64, ptr %step, i64 5
  %kind = load i64, ptr %kind.at
  %base.at = getelementptr i64, ptr %step, i64 6
  %base = load i64, ptr %base.at
  %delta.at = getelementptr i64, ptr %step, i64 7
  %delta = load i64, ptr %delta.at
  %from = getelementptr ptr, ptr %registers, i64 %source
  %object = load ptr, ptr %from
  %untyped = icmp eq ptr %type, null
  br i1 %untyped, label %by.name, label %typed
typed:
  %fitting = call i1 @is_a(ptr %object, ptr %type)
  br i1 %fitting, label %slot, label %refused
slot:
  %slot.value = call ptr @field(ptr %object, i64 %offset)
  %empty = icmp eq ptr %slot.value, null
  br i1 %empty, label %refused, label %filled
filled:
  call void @Py_IncRef(ptr %slot.value)
  br label %held
by.name:
  %plain = icmp eq ptr %name, null
  br i1 %plain, label %itself, label %attribute
itself:
  call void @Py_IncRef(ptr %object)
  br label %held
attribute:
  %found = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %lacking = icmp eq ptr %found, null
  br i1 %lacking, label %error, label %held
held:
  %whole = phi ptr [%object, %itself], [%found, %attribute], [%slot.value, %filled]
  %all = icmp slt i64 %index, 0
  br i1 %all, label %one, label %element
element:
  %part = call ptr @PyTuple_GetItem(ptr %whole, i64 %index)
  %beyond = icmp eq ptr %part, null
  br i1 %beyond, label %drop, label %taken
drop:
  call void @Py_DecRef(ptr %whole)
  br label %error
taken:
  call void @Py_IncRef(ptr %part)
  call void @Py_DecRef(ptr %whole)
  br label %one
one:
  %x = phi ptr [%whole, %held], [%part, %taken]
  switch i64 %kind, label %object.kind [
    i64 1, label %address.kind
    i64 2, label %float.kind
    i64 3, label %float.kind
    i64 4, label %integer.kind
    i64 5, label %same.kind
    i64 6, label %twin.kind
  ]

object.kind:
  %to = getelementptr ptr, ptr %registers, i64 %next
  store ptr %x, ptr %to
  %next.more = add i64 %next, 1
  br label %keep
address.kind:
  %a = call i64 @PyLong_AsLongLong(ptr %x)
  %a.good = icmp sgt i64 %a, 0
  br i1 %a.good, label %address.some, label %unfit
address.some:
  %free = icmp slt i64 %base, 0
  br i1 %free, label %keep, label %address.tied
address.tied:
  %other.at = getelementptr i64, ptr %values, i64 %base
  %other = load i64, ptr %other.at
  %expected = add i64 %other, %delta
  %tied = icmp eq i64 %a, %expected
  br i1 %tied, label %keep, label %unfit
float.kind:
  %d = call double @PyFloat_AsDouble(ptr %x)
  %suspect = fcmp oeq double %d, -1.0
  br i1 %suspect, label %float.suspect, label %float.good
float.suspect:
  %float.error = call ptr @PyErr_Occurred()
  %float.fine = icmp eq ptr %float.error, null
  br i1 %float.fine, label %float.good, label %unfit
float.good:
  %f = fptrunc double %d to float
  %f.bits = bitcast float %f to i32
  %f.word = sext i32 %f.bits to i64
  %d.word = bitcast double %d to i64
  %short = icmp eq i64 %kind, 2
  %d.value = select i1 %short, i64 %f.word, i64 %d.word
  br label %keep
integer.kind:
  %i = call i64 @PyLong_AsUnsignedLongLongMask(ptr %x)
  %i.suspect = icmp eq i64 %i, -1
  br i1 %i.suspect, label %integer.suspect, label %keep
integer.suspect:
  %i.error = call ptr @PyErr_Occurred()
  %i.fine = icmp eq ptr %i.error, null
  br i1 %i.fine, label %keep, label %unfit
same.kind:
  %wanted = inttoptr i64 %base to ptr
  %same = icmp eq ptr %x, %wanted
  br i1 %same, label %keep, label %unfit
twin.kind:
  %twin.at = getelementptr ptr, ptr %registers, i64 %base
  %twin = load ptr, ptr %twin.at
  %alike = icmp eq ptr %x, %twin
  br i1 %alike, label %keep, label %unfit
keep:
  %value = phi i64 [0, %object.kind], [%a, %address.some], [%a, %address.tied],
    [%d.value, %float.good], [%i, %integer.kind], [%i, %integer.suspect], [0, %same.kind],
    [0, %twin.kind]
  %next.now = phi i64 [%next.more, %object.kind], [%next, %address.some], [%next, %address.tied],
    [%next, %float.good], [%next, %integer.kind], [%next, %integer.suspect], [%next, %same.kind],
    [%next, %twin.kind]
  %value.at = getelementptr i64, ptr %values, i64 %k
  store i64 %value, ptr %value.at
  call void @Py_DecRef(ptr %x)
  br label %kept
kept:
  %k.next = add i64 %k, 1
  br label %read
unfit:
  call void @Py_DecRef(ptr %x)
  br label %error
error:
  call void @PyErr_Clear()
  br label %refused

apart:
  %pairs.at = getelementptr i64, ptr %r, i64 2
  %pairs = load i64, ptr %pairs.at
  %pair.at = getelementptr i64, ptr %r, i64 3
  %pair.table = load ptr, ptr %pair.at
  br label %pair
pair:
  %p = phi i64 [0, %apart], [%p.next, %pair.fine]
  %p.more = icmp slt i64 %p, %pairs
  br i1 %p.more, label %compare, label %settings
compare:
  %row = getelementptr [6 x i64], ptr %pair.table, i64 %p
  %u = load i64, ptr %row
  %u.low.at = getelementptr i64, ptr %row, i64 1
  %u.low = load i64, ptr %u.low.at
  %u.high.at = getelementptr i64, ptr %row, i64 2
  %u.high = load i64, ptr %u.high.at
  %v.at = getelementptr i64, ptr %row, i64 3
  %v = load i64, ptr %v.at
  %v.low.at = getelementptr i64, ptr %row, i64 4
  %v.low = load i64, ptr %v.low.at
  %v.high.at = getelementptr i64, ptr %row, i64 5
  %v.high = load i64, ptr %v.high.at
  %u.value.at = getelementptr i64, ptr %values, i64 %u
  %u.value = load i64, ptr %u.value.at
  %v.value.at = getelementptr i64, ptr %values, i64 %v
  %v.value = load i64, ptr %v.value.at
  %u.first = add i64 %u.value, %u.low
  %u.last = add i64 %u.value, %u.high
  %v.first = add i64 %v.value, %v.low
  %v.last = add i64 %v.value, %v.high
  %before = icmp sle i64 %u.last, %v.first
  %behind = icmp sle i64 %v.last, %u.first
  %clear = or i1 %before, %behind
  br i1 %clear, label %pair.fine, label %refused
pair.fine:
  %p.next = add i64 %p, 1
  br label %pair

settings:
  %threads.at = getelementptr i64, ptr %r, i64 6
  %threads = load ptr, ptr %threads.at
  %threads.now = load i32, ptr %threads
  %threads.wanted.at = getelementptr i64, ptr %r, i64 7
  %threads.wanted = load i32, ptr %threads.wanted.at
  %threads.same = icmp eq i32 %threads.now, %threads.wanted
  %epoch.at = getelementptr i64, ptr %r, i64 8
  %epoch = load ptr, ptr %epoch.at
  %epoch.now = load i64, ptr %epoch
  %epoch.wanted.at = getelementptr i64, ptr %r, i64 9
  %epoch.wanted = load i64, ptr %epoch.wanted.at
  %epoch.same = icmp eq i64 %epoch.now, %epoch.wanted
  %holds = and i1 %threads.same, %epoch.same
  br i1 %holds, label %claim, label %refused
claim:
  %busy = getelementptr i64, ptr %r, i64 14
  %claimed = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %claimed, 1
  br i1 %mine, label %places, label %refused

places:
  %places.at = getelementptr i64, ptr %r, i64 4
  %places.count = load i64, ptr %places.at
  %place.at = getelementptr i64, ptr %r, i64 5
  %place.table = load ptr, ptr %place.at
  br label %place
place:
  %q = phi i64 [0, %places], [%q.next, %put]
  %q.more = icmp slt i64 %q, %places.count
  br i1 %q.more, label %put, label %run
put:
  %entry.at = getelementptr [3 x i64], ptr %place.table, i64 %q
  %word = load ptr, ptr %entry.at
  %which.at = getelementptr i64, ptr %entry.at, i64 1
  %which = load i64, ptr %which.at
  %shift.at = getelementptr i64, ptr %entry.at, i64 2
  %shift = load i64, ptr %shift.at
  %put.from = getelementptr i64, ptr %values, i64 %which
  %put.value = load i64, ptr %put.from
  %put.sum = add i64 %put.value, %shift
  store i64 %put.sum, ptr %word
  %q.next = add i64 %q, 1
  br label %place

run:
  %function.at = getelementptr i64, ptr %r, i64 10
  %function = load ptr, ptr %function.at
  %block.at = getelementptr i64, ptr %r, i64 11
  %block = load ptr, ptr %block.at
  %open.at = getelementptr i64, ptr %r, i64 13
  %open = load i64, ptr %open.at
  %alone = icmp eq i64 %open, 0
  br i1 %alone, label %closed.run, label %open.run
open.run:
  %owners = alloca ptr, i64 %steps
  %owner.name.at = getelementptr i64, ptr %r, i64 15
  %owner.name = load ptr, ptr %owner.name.at
  br label %hold
hold:
  %h = phi i64 [0, %open.run], [%h.next, %hold.next]
  %owned = phi i64 [0, %open.run], [%owned.next, %hold.next]
  %h.more = icmp slt i64 %h, %steps
  br i1 %h.more, label %hold.kind, label %let.go
hold.kind:
  %h.step = getelementptr [8 x i64], ptr %code, i64 %h
  %h.kind.at = getelementptr i64, ptr %h.step, i64 5
  %h.kind = load i64, ptr %h.kind.at
  %h.memory = icmp eq i64 %h.kind, 1
  br i1 %h.memory, label %hold.one, label %hold.next
hold.one:
  %h.source = load i64, ptr %h.step
  %h.from = getelementptr ptr, ptr %registers, i64 %h.source
  %h.buffer = load ptr, ptr %h.from
  %h.owner = call ptr @PyObject_GetAttr(ptr %h.buffer, ptr %owner.name)
  %h.none = icmp eq ptr %h.owner, null
  br i1 %h.none, label %hold.error, label %hold.kept
hold.error:
  call void @PyErr_Clear()
  br label %hold.next
hold.kept:
  %h.to = getelementptr ptr, ptr %owners, i64 %owned
  store ptr %h.owner, ptr %h.to
  %owned.more = add i64 %owned, 1
  br label %hold.next
hold.next:
  %owned.next = phi i64 [%owned, %hold.kind], [%owned, %hold.error], [%owned.more, %hold.kept]
  %h.next = add i64 %h, 1
  br label %hold
let.go:
  %thread = call ptr @PyEval_SaveThread()
  call void %function(ptr %block)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %drop.owners
drop.owners:
  %o = phi i64 [0, %let.go], [%o.next, %drop.one]
  %o.more = icmp slt i64 %o, %owned
  br i1 %o.more, label %drop.one, label %ran
drop.one:
  %o.at = getelementptr ptr, ptr %owners, i64 %o
  %o.owner = load ptr, ptr %o.at
  call void @Py_DecRef(ptr %o.owner)
  %o.next = add i64 %o, 1
  br label %drop.owners
closed.run:
  call void %function(ptr %block)
  br label %ran
ran:
  %status.at = getelementptr i64, ptr %r, i64 12
  %status = load ptr, ptr %status.at
  %failed = load i32, ptr %status
  store atomic i64 0, ptr %busy release, align 8
  %well = icmp eq i32 %failed, 0
  %answer = select i1 %well, i64 1, i64 2
  ret i64 %answer
refused:
  ret i64 0
}
"""

LAUNCH = """
declare ptr @PyLong_AsVoidPtr(ptr)

define ptr @launch(ptr %self, ptr %given, i64 %count) {
  %r = call ptr @PyLong_AsVoidPtr(ptr %self)
  %done = call i64 @start(ptr %r, ptr %given, i64 %count)
  %well = icmp eq i64 %done, 1
  %failed = icmp eq i64 %done, 2
  %other = select i1 %failed, ptr @None, ptr @False
  %answer = select i1 %well, ptr @True, ptr %other
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}
"""
