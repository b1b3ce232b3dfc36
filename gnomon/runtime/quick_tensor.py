"""Native code for views and assignments that came before; goes with `quick_code.py`."""

from __future__ import annotations

ABSENT = -(1 << 63)  # start, stop or step is None
ROW = ABSENT + 1  # in the place of the step: a whole number, which takes an axis away

NUMBERS = {"absent": ABSENT, "row": ROW}

TENSOR = """
declare ptr @PyLong_FromLongLong(i64)

; a bound of a slice as a word: ABSENT for None; what is no plain int of 64 bits has none

define internal { i64, i1 } @bound(ptr %x) noinline {
  %absent = icmp eq ptr %x, @None
  br i1 %absent, label %none, label %given
none:
  ret { i64, i1 } { i64 <absent>, i1 true }
given:
  %type = call ptr @field(ptr %x, i64 <type>)
  %plain = icmp eq ptr %type, @int
  br i1 %plain, label %read, label %no
read:
  %value = call i64 @PyLong_AsLongLong(ptr %x)
  %low = icmp slt i64 %value, -4611686018427387904
  br i1 %low, label %no, label %some.value
some.value:
  %some = insertvalue { i64, i1 } { i64 0, i1 true }, i64 %value, 0
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %check, label %fine
check:
  %error = call ptr @PyErr_Occurred()
  %large = icmp ne ptr %error, null
  br i1 %large, label %no, label %fine
fine:
  ret { i64, i1 } %some
no:
  ret { i64, i1 } zeroinitializer
}

; `self[key]` as a new tensor over the same memory; null where it is not known

define internal ptr @view(ptr %self, ptr %key) noinline {
  %type = call ptr @field(ptr %key, i64 <type>)
  %sliced = icmp eq ptr %type, @slice
  br i1 %sliced, label %bounds, label %row
bounds:
  %start.at = call ptr @field(ptr %key, i64 <slice.start>)
  %stop.at = call ptr @field(ptr %key, i64 <slice.stop>)
  %step.at = call ptr @field(ptr %key, i64 <slice.step>)
  %start = call { i64, i1 } @bound(ptr %start.at)
  %stop = call { i64, i1 } @bound(ptr %stop.at)
  %step = call { i64, i1 } @bound(ptr %step.at)
  %start.fine = extractvalue { i64, i1 } %start, 1
  %stop.fine = extractvalue { i64, i1 } %stop, 1
  %step.fine = extractvalue { i64, i1 } %step, 1
  %both.fine = and i1 %start.fine, %stop.fine
  %slice.fine = and i1 %both.fine, %step.fine
  %start.word = extractvalue { i64, i1 } %start, 0
  %stop.word = extractvalue { i64, i1 } %stop, 0
  %step.word = extractvalue { i64, i1 } %step, 0
  br i1 %slice.fine, label %look, label %none
row:
  %whole = icmp eq ptr %type, @int
  br i1 %whole, label %number, label %none
number:
  %index = call { i64, i1 } @bound(ptr %key)
  %index.fine = extractvalue { i64, i1 } %index, 1
  %index.word = extractvalue { i64, i1 } %index, 0
  br i1 %index.fine, label %look, label %none
look:
  %b = phi i64 [%start.word, %bounds], [%index.word, %number]
  %c = phi i64 [%stop.word, %bounds], [0, %number]
  %d = phi i64 [%step.word, %bounds], [<row>, %number]
  %pattern = call i64 @key(ptr %self)
  %formless = icmp eq i64 %pattern, 0
  br i1 %formless, label %none, label %search
search:
  %entry = call ptr @find(i64 %pattern, i64 %b, i64 %c, i64 %d)
  %unknown = icmp eq ptr %entry, null
  br i1 %unknown, label %none, label %move
move:
  %shape = load ptr, ptr %entry
  %strides.at = getelementptr ptr, ptr %entry, i64 1
  %strides = load ptr, ptr %strides.at
  %made.pattern.at = getelementptr ptr, ptr %entry, i64 2
  %made.pattern = load ptr, ptr %made.pattern.at
  %bytes.at = getelementptr i64, ptr %entry, i64 3
  %bytes = load i64, ptr %bytes.at
  %made = call ptr @moved(ptr %self, ptr %shape, ptr %strides, ptr %made.pattern, i64 %bytes)
  ret ptr %made
none:
  ret ptr null
}

; a tensor of that form over the memory of `self`, so many bytes further; null where it has none

define internal ptr @moved(ptr %self, ptr %shape, ptr %strides, ptr %pattern, i64 %bytes) noinline {
  %owner = call ptr @field(ptr %self, i64 <Buffer.owner>)
  %ownerless = icmp eq ptr %owner, @None
  br i1 %ownerless, label %none, label %from
from:
  %old = call ptr @field(ptr %self, i64 <Buffer.address>)
  %old.word = call i64 @PyLong_AsLongLong(ptr %old)
  %known = icmp sgt i64 %old.word, 0
  br i1 %known, label %make, label %none
make:
  %new.word = add i64 %old.word, %bytes
  %address = call ptr @PyLong_FromLongLong(i64 %new.word)
  %no.address = icmp eq ptr %address, null
  br i1 %no.address, label %none, label %alloc
alloc:
  call void @Py_IncRef(ptr %shape)
  call void @Py_IncRef(ptr %strides)
  call void @Py_IncRef(ptr %pattern)
  call void @Py_IncRef(ptr %owner)
  %made = call ptr @PyType_GenericAlloc(ptr @Tensor, i64 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %drop, label %fill
fill:
  call void @set(ptr %made, i64 <Buffer.address>, ptr %address)
  call void @set(ptr %made, i64 <Expr.shape>, ptr %shape)
  call void @set(ptr %made, i64 <Buffer.strides>, ptr %strides)
  call void @set(ptr %made, i64 <Expr.pattern>, ptr %pattern)
  call void @put(ptr %made, i64 <Expr.exp_type>, ptr @rvalue)
  call void @put(ptr %made, i64 <Buffer._layout>, ptr @None)
  call void @set(ptr %made, i64 <Buffer.owner>, ptr %owner)
  %dtype = call ptr @field(ptr %self, i64 <Expr.dtype>)
  call void @put(ptr %made, i64 <Expr.dtype>, ptr %dtype)
  %device = call ptr @field(ptr %self, i64 <Buffer.device>)
  call void @put(ptr %made, i64 <Buffer.device>, ptr %device)
  %stream = call ptr @field(ptr %self, i64 <Tensor.stream_>)
  call void @put(ptr %made, i64 <Tensor.stream_>, ptr %stream)
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %shape)
  call void @Py_DecRef(ptr %strides)
  call void @Py_DecRef(ptr %pattern)
  call void @Py_DecRef(ptr %owner)
  call void @Py_DecRef(ptr %address)
  br label %none
none:
  ret ptr null
}

; whether `dest saver value` was carried out

define internal i1 @store(ptr %saver, ptr %dest, ptr %value) noinline {
  %dest.key = call i64 @key(ptr %dest)
  %value.key = call i64 @key(ptr %value)
  %named = ptrtoint ptr %saver to i64
  %entry = call ptr @find(i64 %named, i64 %value.key, i64 %dest.key, i64 0)
  %unknown = icmp eq ptr %entry, null
  br i1 %unknown, label %no, label %known
known:
  %recipe = load ptr, ptr %entry
  %launch.at = getelementptr ptr, ptr %entry, i64 1
  %launch = load ptr, ptr %launch.at
  call void @Py_IncRef(ptr %launch)
  %pattern = inttoptr i64 %dest.key to ptr
  call void @Py_IncRef(ptr %pattern)
  %expression = call ptr @operand(ptr %value, ptr %pattern, ptr @False)
  call void @Py_DecRef(ptr %pattern)
  %failed = icmp eq ptr %expression, null
  br i1 %failed, label %drop, label %run
drop:
  call void @Py_DecRef(ptr %launch)
  br label %no
run:
  %given = alloca ptr, i64 2
  store ptr %dest, ptr %given
  %second = getelementptr ptr, ptr %given, i64 1
  store ptr %expression, ptr %second
  %how = call i64 @start(ptr %recipe, ptr %given, i64 2)
  call void @Py_DecRef(ptr %expression)
  call void @Py_DecRef(ptr %launch)
  %done = icmp eq i64 %how, 1
  ret i1 %done
no:
  ret i1 false
}

; whether `value` is `dest` itself, or the same memory in the same form

define internal i1 @itself(ptr %dest, ptr %value) noinline {
  %same = icmp eq ptr %dest, %value
  br i1 %same, label %yes, label %kind
kind:
  %type = call ptr @field(ptr %value, i64 <type>)
  %tensor = icmp eq ptr %type, @Tensor
  br i1 %tensor, label %form, label %no
form:
  %a = call i64 @key(ptr %dest)
  %b = call i64 @key(ptr %value)
  %alike = icmp eq i64 %a, %b
  %known = icmp ne i64 %a, 0
  %told = icmp ne i64 %a, ptrtoint (ptr @NONE to i64)
  %sure = and i1 %known, %told
  %of.one.form = and i1 %alike, %sure
  br i1 %of.one.form, label %place, label %no
place:
  %a.object = call ptr @field(ptr %dest, i64 <Buffer.address>)
  %b.object = call ptr @field(ptr %value, i64 <Buffer.address>)
  %a.address = call i64 @PyLong_AsLongLong(ptr %a.object)
  %b.address = call i64 @PyLong_AsLongLong(ptr %b.object)
  %there = icmp eq i64 %a.address, %b.address
  %some = icmp sgt i64 %a.address, 0
  %both = and i1 %there, %some
  ret i1 %both
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @everything(ptr %slice) alwaysinline {
  %start = call ptr @field(ptr %slice, i64 <slice.start>)
  %stop = call ptr @field(ptr %slice, i64 <slice.stop>)
  %step = call ptr @field(ptr %slice, i64 <slice.step>)
  %no.start = icmp eq ptr %start, @None
  %no.stop = icmp eq ptr %stop, @None
  %no.step = icmp eq ptr %step, @None
  %no.bounds = and i1 %no.start, %no.stop
  %all = and i1 %no.bounds, %no.step
  ret i1 %all
}

define ptr @__getitem__(ptr %self, ptr %args, i64 %count) {
  %one = icmp eq i64 %count, 1
  br i1 %one, label %kind, label %slow
kind:
  %key = load ptr, ptr %args
  %type = call ptr @field(ptr %key, i64 <type>)
  %sliced = icmp eq ptr %type, @slice
  br i1 %sliced, label %bounds, label %try
bounds:
  %whole = call i1 @everything(ptr %key)
  br i1 %whole, label %all, label %try
all:
  call void @Py_IncRef(ptr %self)
  ret ptr %self
try:
  %made = call ptr @view(ptr %self, ptr %key)
  %unknown = icmp eq ptr %made, null
  br i1 %unknown, label %slow, label %look
look:
  %shape = call ptr @field(ptr %made, i64 <Expr.shape>)
  %element = icmp eq ptr %shape, @nothing
  br i1 %element, label %drop, label %done
done:
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %made)
  br label %slow
slow:
  %asked = call ptr @ask(ptr @python.__getitem__, ptr %self, ptr %args, i64 %count)
  ret ptr %asked
}

define ptr @__setitem__(ptr %self, ptr %args, i64 %count) {
  %two = icmp eq i64 %count, 2
  br i1 %two, label %try, label %slow
try:
  %key = load ptr, ptr %args
  %value.at = getelementptr ptr, ptr %args, i64 1
  %value = load ptr, ptr %value.at
  %type = call ptr @field(ptr %key, i64 <type>)
  %sliced = icmp eq ptr %type, @slice
  br i1 %sliced, label %bounds, label %part
bounds:
  %everything = call i1 @everything(ptr %key)
  br i1 %everything, label %all, label %part
all:
  call void @Py_IncRef(ptr %self)
  br label %assign
part:
  %made = call ptr @view(ptr %self, ptr %key)
  %unknown = icmp eq ptr %made, null
  br i1 %unknown, label %slow, label %assign
assign:
  %dest = phi ptr [%self, %all], [%made, %part]
  %again = call i1 @itself(ptr %dest, ptr %value)
  br i1 %again, label %finish, label %run
run:
  %stored = call i1 @store(ptr @saveto, ptr %dest, ptr %value)
  br label %finish
finish:
  %well = phi i1 [true, %assign], [%stored, %run]
  call void @Py_DecRef(ptr %dest)
  br i1 %well, label %done, label %slow
done:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
slow:
  %asked = call ptr @ask(ptr @python.__setitem__, ptr %self, ptr %args, i64 %count)
  ret ptr %asked
}
"""

_ASSIGNMENT = """
define ptr @{method}(ptr %self, ptr %args, i64 %count) {{
  %one = icmp eq i64 %count, 1
  br i1 %one, label %try, label %slow
try:
  %value = load ptr, ptr %args
  %done = call i1 @store(ptr @{saver}, ptr %self, ptr %value)
  br i1 %done, label %back, label %slow
back:
  call void @Py_IncRef(ptr %self)
  ret ptr %self
slow:
  %asked = call ptr @ask(ptr @python.{method}, ptr %self, ptr %args, i64 %count)
  ret ptr %asked
}}
"""


def assignment(method: str, saver: str) -> str:
    """An assignment by an operator."""
    return _ASSIGNMENT.format(method=method, saver=saver)
