"""Native code that applies an operator again, as before to arrays of these layouts.

`repeat(known, arrays, out, ctx)` has the kernel run that a dictionary has for these arrays, and
returns the results, in new memory: one array, or a list of several. `ctx` is the device where there
are no arrays. `out`, if it is not None, is an array that the only result goes to; then that is
returned. Arrays that are pending are computed first where there is no `out`. For anything unusual
it gives None, with nothing done: an array of another class, on the tape, or in use, layouts that
are new, an `out` that lies partly where an operand does, an engine that observes or holds back.

The dictionary's keys are tuples: of each array the layout, or None where it is `out` itself, then
the layout of `out`, or None. Its entries are tuples: the address of a strike's record (see
`engine/strike_code.py`), the results' layouts in a list, a list of the numbers that come behind the
addresses, and whoever owns the record.

Memory is taken first, since an allocation may run the collector, and so any code; then everything
is decided, and nobody else has seen the results. Python's own lock is held all the while. Slots are
read and written where they lie (see `again.py`); only functions of Python's stable interface are
called. The record, in words, behind those of `result_code`:

    4  the class of arrays
    5  the name of an array's memory
    6  the number 1
"""

from __future__ import annotations

from gnomon.ndarray.result_code import RESULT

_DECLARED = """
@False = external global i64
@None = external global i64
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i64 @PyObject_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
"""

_PARTS = """
; whether an array has memory; where it waited, and nothing is written to, it is computed for that
define internal i1 @placed(ptr %array, ptr %out) {
  %settled = call i1 @is(ptr %array, i64 <Array._window>, ptr @None)
  br i1 %settled, label %yes, label %pending
pending:
  %new = icmp eq ptr %out, @None
  br i1 %new, label %ask, label %no
ask:
  %name = call ptr @known(i64 5)
  %memory = call ptr @PyObject_GetAttr(ptr %array, ptr %name)
  %failed = icmp eq ptr %memory, null
  br i1 %failed, label %no, label %asked
asked:
  call void @Py_DecRef(ptr %memory)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; whether an array is of the usual class, off the tape, and in memory
define internal i1 @usual(ptr %array, ptr %out) {
  %class = call ptr @known(i64 4)
  %ours = call i1 @is(ptr %array, i64 <type>, ptr %class)
  br i1 %ours, label %tape, label %no
tape:
  %untaped = call i1 @is(ptr %array, i64 <Array._tape>, ptr @None)
  br i1 %untaped, label %memory, label %no
memory:
  %placed = call i1 @placed(ptr %array, ptr %out)
  ret i1 %placed
no:
  ret i1 false
}

; whether two arrays are the same elements in the same memory
define internal i1 @same(ptr %x, ptr %y) {
  %x.layout = call ptr @slot(ptr %x, i64 <Array._layout>)
  %layout = call i1 @is(ptr %y, i64 <Array._layout>, ptr %x.layout)
  %x.address = call ptr @slot(ptr %x, i64 <Array._address>)
  %x.place = call i64 @PyLong_AsLongLong(ptr %x.address)
  %y.address = call ptr @slot(ptr %y, i64 <Array._address>)
  %y.place = call i64 @PyLong_AsLongLong(ptr %y.address)
  %place = icmp eq i64 %x.place, %y.place
  %both = and i1 %layout, %place
  ret i1 %both
}

; the layout of an operand, or None where it is `out` itself; null where it is not usual
define internal ptr @part(ptr %array, ptr %out) {
  %usual = call i1 @usual(ptr %array, ptr %out)
  br i1 %usual, label %look, label %no
look:
  %layout = call ptr @slot(ptr %array, i64 <Array._layout>)
  %new = icmp eq ptr %out, @None
  br i1 %new, label %yes, label %compare
compare:
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %near = call i1 @is(ptr %out, i64 <Array._chunk>, ptr %chunk)
  br i1 %near, label %itself, label %yes
itself:
  %same = call i1 @same(ptr %array, ptr %out)
  br i1 %same, label %written, label %no
yes:
  ret ptr %layout
written:
  ret ptr @None
no:
  ret ptr null
}

; the key of arrays and `out`; null where one is not usual, or for an error
define internal ptr @key(ptr %arrays, i64 %n, ptr %out) {
entry:
  %length = add i64 %n, 1
  %made = call ptr @PyTuple_New(i64 %length)
  %none = icmp eq ptr %made, null
  br i1 %none, label %done, label %out.look
out.look:
  %new = icmp eq ptr %out, @None
  br i1 %new, label %out.note, label %out.array
out.array:
  %out.usual = call i1 @usual(ptr %out, ptr %out)
  br i1 %out.usual, label %out.layout, label %unusual
out.layout:
  %layout = call ptr @slot(ptr %out, i64 <Array._layout>)
  br label %out.note
out.note:
  %last = phi ptr [@None, %out.look], [%layout, %out.layout]
  call void @Py_IncRef(ptr %last)
  %r.last = call i32 @PyTuple_SetItem(ptr %made, i64 %n, ptr %last)
  br label %head
head:
  %i = phi i64 [0, %out.note], [%i.next, %note]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %done
look:
  %array = call ptr @PyTuple_GetItem(ptr %arrays, i64 %i)
  %part = call ptr @part(ptr %array, ptr %out)
  %no.part = icmp eq ptr %part, null
  br i1 %no.part, label %unusual, label %note
note:
  call void @Py_IncRef(ptr %part)
  %r = call i32 @PyTuple_SetItem(ptr %made, i64 %i, ptr %part)
  %i.next = add i64 %i, 1
  br label %head
unusual:
  call void @Py_DecRef(ptr %made)
  br label %done
done:
  %answer = phi ptr [null, %entry], [%made, %head], [null, %unusual]
  ret ptr %answer
}

; new arrays of these layouts, in a list, their addresses among the integers; null for an error
define internal ptr @results(ptr %ctx, ptr %layouts, ptr %integers) {
entry:
  %class = call ptr @known(i64 4)
  %version = call ptr @known(i64 6)
  %n = call i64 @PyList_Size(ptr %layouts)
  %made = call ptr @PyList_New(i64 0)
  %none = icmp eq ptr %made, null
  br i1 %none, label %error, label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %result]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %memory, label %done
memory:
  %layout = call ptr @PyList_GetItem(ptr %layouts, i64 %i)
  %chunk = call ptr @memory(ptr %ctx, ptr %layout)
  %no.memory = icmp eq ptr %chunk, null
  br i1 %no.memory, label %drop, label %written
written:
  call void @set(ptr %chunk, i64 <Var.version>, ptr %version)  ; by then it is written
  %address = call ptr @slot(ptr %chunk, i64 <Chunk.address>)
  %number = call i64 @PyLong_AsLongLong(ptr %address)
  %at = getelementptr i64, ptr %integers, i64 %i
  store i64 %number, ptr %at
  %array = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %drop.chunk, label %result
result:
  call void @set(ptr %array, i64 <Array._chunk>, ptr %chunk)
  call void @set(ptr %array, i64 <Array._address>, ptr %address)
  call void @set(ptr %array, i64 <Array._layout>, ptr %layout)
  call void @set(ptr %array, i64 <Array._tape>, ptr @None)
  call void @set(ptr %array, i64 <Array._window>, ptr @None)
  %r = call i32 @PyList_Append(ptr %made, ptr %array)
  call void @Py_DecRef(ptr %array)
  call void @Py_DecRef(ptr %chunk)
  %i.next = add i64 %i, 1
  br label %head
drop.chunk:
  call void @Py_DecRef(ptr %chunk)
  br label %drop
drop:
  call void @Py_DecRef(ptr %made)
  br label %error
error:
  ret ptr null
done:
  ret ptr %made
}

; whether the address of an array that is there comes among the integers
define internal i1 @noted(ptr %array, ptr %integers, i64 %i) {
  %settled = call i1 @is(ptr %array, i64 <Array._window>, ptr @None)
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %some = icmp ne ptr %chunk, null
  %placed = and i1 %settled, %some
  br i1 %placed, label %writer, label %no
writer:
  %free = call i1 @free(ptr %chunk)
  br i1 %free, label %note, label %no
note:
  %address = call ptr @slot(ptr %array, i64 <Array._address>)
  %number = call i64 @PyLong_AsLongLong(ptr %address)
  %at = getelementptr i64, ptr %integers, i64 %i
  store i64 %number, ptr %at
  ret i1 true
no:
  ret i1 false
}

; whether an array may be written to at once, and so is noted
define internal i1 @writable(ptr %out, ptr %layout, ptr %integers, i64 %i) {
  %as.before = call i1 @is(ptr %out, i64 <Array._layout>, ptr %layout)
  %noted = call i1 @noted(ptr %out, ptr %integers, i64 %i)
  %there = and i1 %as.before, %noted
  br i1 %there, label %look, label %no
look:
  %chunk = call ptr @slot(ptr %out, i64 <Array._chunk>)
  %unread = call i1 @unread(ptr %chunk)
  %own = call i1 @is(ptr %chunk, i64 <Chunk.shared>, ptr @False)
  %promised = call ptr @slot(ptr %chunk, i64 <Var.promised>)
  %promises = call i64 @PyList_Size(ptr %promised)
  %unpromised = icmp eq i64 %promises, 0
  %one = and i1 %unread, %own
  %all = and i1 %one, %unpromised
  ret i1 %all
no:
  ret i1 false
}

; whether all arrays are there as the key has them; their addresses come among the integers
define internal i1 @gathered(ptr %arrays, i64 %n, ptr %out, ptr %key, ptr %integers) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %free]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %yes
look:
  %array = call ptr @PyTuple_GetItem(ptr %arrays, i64 %i)
  %noted = call i1 @noted(ptr %array, ptr %integers, i64 %i)
  br i1 %noted, label %compare, label %no
compare:
  %part = call ptr @PyTuple_GetItem(ptr %key, i64 %i)
  %now = call ptr @part(ptr %array, ptr %out)
  %as.before = icmp eq ptr %part, %now
  br i1 %as.before, label %memory, label %no
memory:
  %new = icmp eq ptr %out, @None
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %own = call i1 @is(ptr %chunk, i64 <Chunk.shared>, ptr @False)
  %apart = or i1 %new, %own  ; shared memory may be that of `out` under another name
  br i1 %apart, label %free, label %no
free:
  %i.next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; puts the numbers in a list among the integers
define internal void @numbered(ptr %list, ptr %integers) {
entry:
  %n = call i64 @PyList_Size(ptr %list)
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %done
one:
  %object = call ptr @PyList_GetItem(ptr %list, i64 %i)
  %number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
  %at = getelementptr i64, ptr %integers, i64 %i
  store i64 %number, ptr %at
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}

; the number of the version of what was written is one more
define internal void @counted(ptr %out) {
  %chunk = call ptr @slot(ptr %out, i64 <Array._chunk>)
  %version = call ptr @slot(ptr %chunk, i64 <Var.version>)
  %old = call i64 @PyLong_AsLongLong(ptr %version)
  %more = add i64 %old, 1
  %new = call ptr @PyLong_FromLongLong(i64 %more)
  call void @set(ptr %chunk, i64 <Var.version>, ptr %new)
  call void @Py_DecRef(ptr %new)
  ret void
}

; an operator's results by an entry of the dictionary, in a list; null where it cannot be, or for an
; error
define internal ptr @applied(
  ptr %entry, ptr %arrays, i64 %n, ptr %out, ptr %key, ptr %ctx
) {
  %address = call ptr @PyTuple_GetItem(ptr %entry, i64 0)
  %strike = call ptr @PyLong_AsVoidPtr(ptr %address)
  %layouts = call ptr @PyTuple_GetItem(ptr %entry, i64 1)
  %expected = load i64, ptr %strike
  %integers = alloca i64, i64 %expected
  %own = getelementptr i64, ptr %integers, i64 %n
  %new = icmp eq ptr %out, @None
  br i1 %new, label %memory, label %given
memory:
  %results = call ptr @results(ptr %ctx, ptr %layouts, ptr %own)
  br label %made
given:
  %list = call ptr @PyList_New(i64 0)
  %no.list = icmp eq ptr %list, null
  br i1 %no.list, label %none, label %listed
listed:
  %r = call i32 @PyList_Append(ptr %list, ptr %out)
  %layout = call ptr @PyTuple_GetItem(ptr %key, i64 %n)
  %writable = call i1 @writable(ptr %out, ptr %layout, ptr %integers, i64 %n)
  br label %made
made:
  %answer = phi ptr [%results, %memory], [%list, %listed]
  %well = phi i1 [true, %memory], [%writable, %listed]
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %none, label %decide
decide:
  %quiet = call i1 @engine()
  %there = call i1 @gathered(ptr %arrays, i64 %n, ptr %out, ptr %key, ptr %integers)
  %both = and i1 %quiet, %there
  %go = and i1 %both, %well
  br i1 %go, label %run, label %drop
run:
  %count = call i64 @PyList_Size(ptr %answer)
  %behind = getelementptr i64, ptr %own, i64 %count
  %numbers = call ptr @PyTuple_GetItem(ptr %entry, i64 2)
  call void @numbered(ptr %numbers, ptr %behind)
  call void @fire(ptr %strike, ptr %integers)
  br i1 %new, label %done, label %count.up
count.up:
  call void @counted(ptr %out)
  br label %done
done:
  ret ptr %answer
drop:
  call void @Py_DecRef(ptr %answer)
  br label %none
none:
  ret ptr null
}

; the only one in a list, or the list
define internal ptr @alone(ptr %list) {
  %n = call i64 @PyList_Size(ptr %list)
  %several = icmp ne i64 %n, 1
  br i1 %several, label %all, label %one
one:
  %first = call ptr @PyList_GetItem(ptr %list, i64 0)
  call void @Py_IncRef(ptr %first)
  call void @Py_DecRef(ptr %list)
  ret ptr %first
all:
  ret ptr %list
}
"""

REPEAT = (
    _DECLARED
    + RESULT
    + _PARTS
    + """
; the device of the first array, or the one given; null where none is known that is needed
define internal ptr @device(ptr %arrays, i64 %n, ptr %out, ptr %given) {
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %look, label %none
look:
  %first = call ptr @PyTuple_GetItem(ptr %arrays, i64 0)
  %chunk = call ptr @slot(ptr %first, i64 <Array._chunk>)
  %gone = icmp eq ptr %chunk, null
  br i1 %gone, label %unknown, label %known
known:
  %ctx = call ptr @slot(ptr %chunk, i64 <Chunk.ctx>)
  ret ptr %ctx
none:
  %unnamed = icmp eq ptr %given, @None
  %new = icmp eq ptr %out, @None
  %nowhere = and i1 %unnamed, %new
  br i1 %nowhere, label %unknown, label %named
named:
  ret ptr %given
unknown:
  ret ptr null
}

define ptr @repeat(ptr %self, ptr %args, i64 %count) {
  %dictionary = load ptr, ptr %args
  %arrays.at = getelementptr ptr, ptr %args, i64 1
  %arrays = load ptr, ptr %arrays.at
  %out.at = getelementptr ptr, ptr %args, i64 2
  %out = load ptr, ptr %out.at
  %given.at = getelementptr ptr, ptr %args, i64 3
  %given = load ptr, ptr %given.at
  %n = call i64 @PyTuple_Size(ptr %arrays)
  %key = call ptr @key(ptr %arrays, i64 %n, ptr %out)
  %unusual = icmp eq ptr %key, null
  br i1 %unusual, label %refused, label %known
known:
  %entry = call ptr @PyDict_GetItem(ptr %dictionary, ptr %key)
  %ctx = call ptr @device(ptr %arrays, i64 %n, ptr %out, ptr %given)
  %new = icmp eq ptr %entry, null
  %nowhere = icmp eq ptr %ctx, null
  %neither = or i1 %new, %nowhere
  br i1 %neither, label %drop, label %apply
apply:
  call void @Py_IncRef(ptr %entry)
  call void @Py_IncRef(ptr %ctx)
  %made = call ptr @applied(
    ptr %entry, ptr %arrays, i64 %n, ptr %out, ptr %key, ptr %ctx)
  call void @Py_DecRef(ptr %ctx)
  call void @Py_DecRef(ptr %entry)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %drop, label %done
done:
  call void @Py_DecRef(ptr %key)
  %answer = call ptr @alone(ptr %made)
  ret ptr %answer
drop:
  call void @Py_DecRef(ptr %key)
  br label %refused
refused:
  %error = call ptr @PyErr_Occurred()
  %well = icmp eq ptr %error, null
  br i1 %well, label %nothing, label %raise
nothing:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
raise:
  ret ptr null
}
"""
)
