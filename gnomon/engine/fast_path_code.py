"""Native code that runs a short kernel when no job is in its way, and lands its results.

`fast_path(read, written, addresses, holders)` gets lists: variables that are read, variables that
are written, integers, and the objects that are to hold the first of what is written. It looks
whether all variables are free; if so it puts the integers into the kernel's argument block, runs
it, counts a version of each variable that was written, and gives each holder its memory. It answers
True, or False, with nothing done. Python's own lock is held all the while: no other thread, and no
signal's handler, sees anything of it half done, and none of the engine's locks is needed.

Slots of objects are read and written where they lie, which `fast_path.py` finds out by looking;
what holders let go of is dropped last, since that may run other code. Only functions of Python's
stable interface are called. The record, in words:

    0  integers that are expected
    1  places, their address             each: address of a word, number of the integer, offset
    3  function, block                   of the step
    5  number of the integer that is the address of the first holder's memory; the others follow
    6  numbers, their address            each: which one, how it is written (see `settle`)
"""

from __future__ import annotations

#: of the class of variables, and of that of holders; the names stand for byte offsets in the code
VARIABLE = ("writer", "queue", "failure", "readers", "version")
HOLDER = ("_address", "_chunk", "_pending_in")

#: reading and writing slots of objects; also for others to build on
SLOTS = """
define internal ptr @slot(ptr %x, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %x, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal void @set(ptr %x, i64 %offset, ptr %new) alwaysinline {
  %at = getelementptr i8, ptr %x, i64 %offset
  %old = load ptr, ptr %at
  call void @Py_IncRef(ptr %new)
  store ptr %new, ptr %at
  call void @drop(ptr %old)
  ret void
}

define internal void @drop(ptr %x) {
  %nothing = icmp eq ptr %x, null
  br i1 %nothing, label %done, label %some
some:
  call void @Py_DecRef(ptr %x)
  br label %done
done:
  ret void
}
"""

#: what stands in a word of the record, and comparing; for who has a `@record` (see `state_code`)
KNOWN = """
@record = external global i64

define internal ptr @known(i64 %word) alwaysinline {
  %at = getelementptr ptr, ptr @record, i64 %word
  %thing = load ptr, ptr %at
  ret ptr %thing
}

; whether a slot holds this very object
define internal i1 @is(ptr %x, i64 %offset, ptr %wanted) alwaysinline {
  %value = call ptr @slot(ptr %x, i64 %offset)
  %same = icmp eq ptr %value, %wanted
  ret i1 %same
}
"""

#: whether a variable is not written and has no failure; also for others to build on
FREE = """
define internal i1 @vacant(ptr %x) {
  %none = icmp eq ptr %x, @None
  br i1 %none, label %yes, label %count
count:
  %n = call i64 @PyObject_Size(ptr %x)
  %empty = icmp eq i64 %n, 0
  ret i1 %empty
yes:
  ret i1 true
}

define internal i1 @free(ptr %var) {
  %writer.at = getelementptr i8, ptr %var, i64 <writer>
  %writer = load ptr, ptr %writer.at
  %unwritten = icmp eq ptr %writer, @None
  %failure.at = getelementptr i8, ptr %var, i64 <failure>
  %failure = load ptr, ptr %failure.at
  %well = icmp eq ptr %failure, @None
  %both = and i1 %unwritten, %well
  br i1 %both, label %look, label %no
look:
  %queue.at = getelementptr i8, ptr %var, i64 <queue>
  %queue = load ptr, ptr %queue.at
  %alone = call i1 @vacant(ptr %queue)
  ret i1 %alone
no:
  ret i1 false
}

define internal i1 @unread(ptr %var) {
  %readers.at = getelementptr i8, ptr %var, i64 <readers>
  %readers = load ptr, ptr %readers.at
  %alone = call i1 @vacant(ptr %readers)
  ret i1 %alone
}

define internal void @put(ptr %slot, ptr %new) {
  %old = load ptr, ptr %slot
  call void @Py_IncRef(ptr %new)
  store ptr %new, ptr %slot
  %gone = icmp eq ptr %old, null
  br i1 %gone, label %done, label %drop
drop:
  call void @Py_DecRef(ptr %old)
  br label %done
done:
  ret void
}
"""

#: puts integers where a record says, and runs the step
FIRE = """
define internal void @fire(ptr %r, ptr %integers) {
entry:
  %count.at = getelementptr i64, ptr %r, i64 1
  %count = load i64, ptr %count.at
  %table.at = getelementptr ptr, ptr %r, i64 2
  %table = load ptr, ptr %table.at
  br label %head
head:
  %q = phi i64 [0, %entry], [%q.next, %place]
  %more = icmp slt i64 %q, %count
  br i1 %more, label %place, label %run
place:
  %row = getelementptr [3 x i64], ptr %table, i64 %q
  %word = load ptr, ptr %row
  %which.at = getelementptr i64, ptr %row, i64 1
  %which = load i64, ptr %which.at
  %offset.at = getelementptr i64, ptr %row, i64 2
  %offset = load i64, ptr %offset.at
  %value.at = getelementptr i64, ptr %integers, i64 %which
  %value = load i64, ptr %value.at
  %sum = add i64 %value, %offset
  store i64 %sum, ptr %word
  %q.next = add i64 %q, 1
  br label %head
run:
  %function.at = getelementptr i64, ptr %r, i64 3
  %function = load ptr, ptr %function.at
  %block.at = getelementptr i64, ptr %r, i64 4
  %block = load ptr, ptr %block.at
  call void %function(ptr %block)
  ret void
}
"""

FAST_PATH = (
    """
@True = external global i64
@False = external global i64
@None = external global i64
declare ptr @PyList_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyObject_Size(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
"""
    + FREE
    + FIRE
    + """
define ptr @fast_path(ptr %self, ptr %args, i64 %count) {
entry:
  %r = call ptr @PyLong_AsVoidPtr(ptr %self)
  %read = load ptr, ptr %args
  %written.at = getelementptr ptr, ptr %args, i64 1
  %written = load ptr, ptr %written.at
  %integers.at = getelementptr ptr, ptr %args, i64 2
  %integers = load ptr, ptr %integers.at
  %holders.at = getelementptr ptr, ptr %args, i64 3
  %holders = load ptr, ptr %holders.at
  %reads = call i64 @PyList_Size(ptr %read)
  %writes = call i64 @PyList_Size(ptr %written)
  %landings = call i64 @PyList_Size(ptr %holders)
  %left = alloca ptr, i64 %landings
  %first.at = getelementptr i64, ptr %r, i64 5
  %first = load i64, ptr %first.at
  %given = call i64 @PyList_Size(ptr %integers)
  %expected = load i64, ptr %r
  %fits = icmp eq i64 %given, %expected
  br i1 %fits, label %read.head, label %refused

read.head:
  %i = phi i64 [0, %entry], [%i.next, %read.free]
  %i.more = icmp slt i64 %i, %reads
  br i1 %i.more, label %read.look, label %write.head
read.look:
  %x = call ptr @PyList_GetItem(ptr %read, i64 %i)
  %x.free = call i1 @free(ptr %x)
  br i1 %x.free, label %read.free, label %refused
read.free:
  %i.next = add i64 %i, 1
  br label %read.head

write.head:
  %j = phi i64 [0, %read.head], [%j.next, %write.free]
  %j.more = icmp slt i64 %j, %writes
  br i1 %j.more, label %write.look, label %places
write.look:
  %y = call ptr @PyList_GetItem(ptr %written, i64 %j)
  %y.free = call i1 @free(ptr %y)
  br i1 %y.free, label %write.unread, label %refused
write.unread:
  %y.unread = call i1 @unread(ptr %y)
  br i1 %y.unread, label %write.free, label %refused
write.free:
  %j.next = add i64 %j, 1
  br label %write.head

places:
  %values = alloca i64, i64 %given
  br label %value.head
value.head:
  %q = phi i64 [0, %places], [%q.next, %value]
  %q.more = icmp slt i64 %q, %given
  br i1 %q.more, label %value, label %run
value:
  %integer = call ptr @PyList_GetItem(ptr %integers, i64 %q)
  %number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %integer)
  %value.at = getelementptr i64, ptr %values, i64 %q
  store i64 %number, ptr %value.at
  %q.next = add i64 %q, 1
  br label %value.head

run:
  call void @fire(ptr %r, ptr %values)
  br label %version.head
version.head:
  %v = phi i64 [0, %run], [%v.next, %version]
  %v.more = icmp slt i64 %v, %writes
  br i1 %v.more, label %version, label %land.head
version:
  %z = call ptr @PyList_GetItem(ptr %written, i64 %v)
  %version.at = getelementptr i8, ptr %z, i64 <version>
  %old = load ptr, ptr %version.at
  %old.value = call i64 @PyLong_AsUnsignedLongLongMask(ptr %old)
  %new.value = add i64 %old.value, 1
  %new = call ptr @PyLong_FromLongLong(i64 %new.value)
  store ptr %new, ptr %version.at
  call void @Py_DecRef(ptr %old)
  %v.next = add i64 %v, 1
  br label %version.head

land.head:
  %h = phi i64 [0, %version.head], [%h.next, %land]
  %h.more = icmp slt i64 %h, %landings
  br i1 %h.more, label %land, label %drop.head
land:
  %holder = call ptr @PyList_GetItem(ptr %holders, i64 %h)
  %own = add i64 %first, %h
  %address = call ptr @PyList_GetItem(ptr %integers, i64 %own)
  %address.slot = getelementptr i8, ptr %holder, i64 <_address>
  call void @put(ptr %address.slot, ptr %address)
  %memory = call ptr @PyList_GetItem(ptr %written, i64 %h)
  %memory.slot = getelementptr i8, ptr %holder, i64 <_chunk>
  call void @put(ptr %memory.slot, ptr %memory)
  %window.slot = getelementptr i8, ptr %holder, i64 <_pending_in>
  %window = load ptr, ptr %window.slot
  %window.kept = getelementptr ptr, ptr %left, i64 %h
  store ptr %window, ptr %window.kept
  call void @Py_IncRef(ptr @None)
  store ptr @None, ptr %window.slot
  %h.next = add i64 %h, 1
  br label %land.head

drop.head:
  %d = phi i64 [0, %land.head], [%d.next, %drop]
  %d.more = icmp slt i64 %d, %landings
  br i1 %d.more, label %drop, label %done
drop:
  %gone.at = getelementptr ptr, ptr %left, i64 %d
  %gone = load ptr, ptr %gone.at
  call void @Py_DecRef(ptr %gone)
  %d.next = add i64 %d, 1
  br label %drop.head

done:
  call void @Py_IncRef(ptr @True)
  ret ptr @True
refused:
  call void @Py_IncRef(ptr @False)
  ret ptr @False
}
"""
)
