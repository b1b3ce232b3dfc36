"""Native code for the usual wait: an array is asked for that is one operator's result, or is there.

`wait(array)` is the method `wait_to_read`. An array in memory that nobody writes is there. One that
waits in its thread's window for a single operator, whose kernel was struck before, gets memory, has
the kernel run and the window emptied, as `fused.lone` and `Window._forget` do by Python's means.
Anything else is left to the method in Python, with nothing done: a chain, a result at home in
memory it had before, a window that somebody computes, an operand that is being written, an engine
that observes or holds back.

Python's own lock is held all the while, so no other thread sees anything of it half done. Memory is
taken first, since an allocation may run the collector, and so any code; then everything is decided
before anything is changed. What is let go of is dropped last, for the same reason. Slots are read
and written where they lie (see `settle.py`); only functions of Python's stable interface are
called. The record, in words, behind those of `result_code`:

    4  the class of windows
    5  the method in Python
    6  the empty stage
    7  the numbers 0, 1
"""

from __future__ import annotations

from gnomon.ndarray.result_code import RESULT
from gnomon.runtime.launch_code import DOUBLE, FLOAT

_DECLARED = """
@False = external global i64
@None = external global i64
@True = external global i64
declare void @PyDict_Clear(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare i64 @PyObject_Size(ptr)
declare i64 @PyThread_get_thread_ident()
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare double @llvm.fabs.f64(double)
"""

_PARTS = f"""
; whether two lists have so many elements more and less
define internal i1 @longer(ptr %x, ptr %y, i64 %more) {{
  %n = call i64 @PyList_Size(ptr %x)
  %m = call i64 @PyList_Size(ptr %y)
  %sum = add i64 %m, %more
  %as.said = icmp eq i64 %n, %sum
  ret i1 %as.said
}}

; whether a window is open, holds nothing but `array`, and belongs to this thread: then nobody else
; is about to do anything with it
define internal i1 @ours(ptr %window, ptr %array) {{
  %pending = call i1 @is(ptr %array, i64 <Array._window>, ptr %window)
  %open = call i1 @is(ptr %window, i64 <Window.closed>, ptr @False)
  %idle = call i1 @is(ptr %window, i64 <Window.busy>, ptr @False)
  %lazy = call i1 @is(ptr %window, i64 <Window.eager>, ptr @False)
  %one = and i1 %pending, %open
  %two = and i1 %idle, %lazy
  %usual = and i1 %one, %two
  br i1 %usual, label %lists, label %no
lists:
  %results = call ptr @slot(ptr %window, i64 <Window.results>)
  %count = call i64 @PyList_Size(ptr %results)
  %single = icmp eq i64 %count, 1
  br i1 %single, label %result, label %no
result:
  %first = call ptr @PyList_GetItem(ptr %results, i64 0)
  %it = icmp eq ptr %first, %array
  %homes = call ptr @slot(ptr %window, i64 <Window.homes>)
  %at.home = call i64 @PyObject_Size(ptr %homes)
  %nowhere = icmp eq i64 %at.home, 0
  %new = and i1 %it, %nowhere
  br i1 %new, label %thread, label %no
thread:
  %own = call ptr @slot(ptr %window, i64 <Window.own>)
  %ident = call ptr @slot(ptr %own, i64 <Own.ident>)
  %theirs = call i64 @PyLong_AsLongLong(ptr %ident)
  %mine = call i64 @PyThread_get_thread_ident()
  %same = icmp eq i64 %theirs, %mine
  ret i1 %same
no:
  ret i1 false
}}

; the integers of a strike: addresses of what is read, of the result, then numbers as their dtypes
; hold them; whether all of them are plain, and all that is read is free
define internal i1 @gathered(ptr %window, ptr %address, ptr %strike, ptr %integers) {{
entry:
  %read = call ptr @slot(ptr %window, i64 <Window.read>)
  %addresses = call ptr @slot(ptr %window, i64 <Window.addresses>)
  %n = call i64 @PyList_Size(ptr %read)
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %leaf.free]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %leaf, label %result
leaf:
  %chunk = call ptr @PyList_GetItem(ptr %read, i64 %i)
  %free = call i1 @free(ptr %chunk)
  br i1 %free, label %leaf.free, label %no
leaf.free:
  %place = call ptr @PyList_GetItem(ptr %addresses, i64 %i)
  %value = call i64 @PyLong_AsLongLong(ptr %place)
  %at = getelementptr i64, ptr %integers, i64 %i
  store i64 %value, ptr %at
  %i.next = add i64 %i, 1
  br label %head
result:
  %own = call i64 @PyLong_AsLongLong(ptr %address)
  %own.at = getelementptr i64, ptr %integers, i64 %n
  store i64 %own, ptr %own.at
  %first = add i64 %n, 1
  %given = call ptr @slot(ptr %window, i64 <Window.numbers>)
  %given.count = call i64 @PyList_Size(ptr %given)
  %numbers.at = getelementptr i64, ptr %strike, i64 6
  %numbers = load i64, ptr %numbers.at
  %table.at = getelementptr ptr, ptr %strike, i64 7
  %table = load ptr, ptr %table.at
  br label %number.head
number.head:
  %k = phi i64 [0, %result], [%k.next, %written]
  %k.more = icmp slt i64 %k, %numbers
  br i1 %k.more, label %number, label %yes
number:
  %row = getelementptr [2 x i64], ptr %table, i64 %k
  %which = load i64, ptr %row
  %kind.at = getelementptr i64, ptr %row, i64 1
  %kind = load i64, ptr %kind.at
  %there = icmp slt i64 %which, %given.count
  br i1 %there, label %read.number, label %no
read.number:
  %object = call ptr @PyList_GetItem(ptr %given, i64 %which)
  %double = call double @PyFloat_AsDouble(ptr %object)
  %wide = bitcast double %double to i64
  switch i64 %kind, label %no [i64 {DOUBLE}, label %written i64 {FLOAT}, label %narrow]
narrow:
  %large = call double @llvm.fabs.f64(double %double)
  %small = fcmp olt double %large, 3.0e38  ; what lies beyond, and NaN, takes a closer look
  %float = fptrunc double %double to float
  %half = bitcast float %float to i32
  %word = sext i32 %half to i64
  br i1 %small, label %written, label %no
written:
  %bits = phi i64 [%wide, %read.number], [%word, %narrow]
  %to = add i64 %first, %k
  %to.at = getelementptr i64, ptr %integers, i64 %to
  store i64 %bits, ptr %to.at
  %k.next = add i64 %k, 1
  br label %number.head
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal void @emptied(ptr %list) {{
  %n = call i64 @PyList_Size(ptr %list)
  %r = call i32 @PyList_SetSlice(ptr %list, i64 0, i64 %n, ptr null)
  ret void
}}

; takes the window off the promises of what it read
define internal void @unpromised(ptr %window, ptr %chunk) {{
entry:
  %promised = call ptr @slot(ptr %chunk, i64 <Var.promised>)
  %n = call i64 @PyList_Size(ptr %promised)
  br label %head
head:
  %end = phi i64 [%n, %entry], [%i, %look]
  %i = sub i64 %end, 1
  %more = icmp sge i64 %i, 0
  br i1 %more, label %look, label %done
look:
  %promise = call ptr @PyList_GetItem(ptr %promised, i64 %i)
  %it = icmp eq ptr %promise, %window
  br i1 %it, label %cut, label %head
cut:
  %r = call i32 @PyList_SetSlice(ptr %promised, i64 %i, i64 %end, ptr null)
  br label %done
done:
  ret void
}}

; lets go of all memory, and has the window begin anew
define internal void @forgotten(ptr %window) {{
entry:
  %read = call ptr @slot(ptr %window, i64 <Window.read>)
  %n = call i64 @PyList_Size(ptr %read)
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %chunk]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %chunk, label %lists
chunk:
  %one = call ptr @PyList_GetItem(ptr %read, i64 %i)
  call void @unpromised(ptr %window, ptr %one)
  %i.next = add i64 %i, 1
  br label %head
lists:
  %results = call ptr @slot(ptr %window, i64 <Window.results>)
  call void @emptied(ptr %results)
  %addresses = call ptr @slot(ptr %window, i64 <Window.addresses>)
  call void @emptied(ptr %addresses)
  %numbers = call ptr @slot(ptr %window, i64 <Window.numbers>)
  call void @emptied(ptr %numbers)
  %places = call ptr @slot(ptr %window, i64 <Window.places>)
  call void @PyDict_Clear(ptr %places)
  %empty = call ptr @known(i64 6)
  call void @set(ptr %window, i64 <Window.stage>, ptr %empty)
  %zero = call ptr @known(i64 7)
  call void @set(ptr %window, i64 <Window.held>, ptr %zero)
  %own = call ptr @slot(ptr %window, i64 <Window.own>)
  %eager = call ptr @slot(ptr %own, i64 <Own.eager>)
  call void @set(ptr %window, i64 <Window.eager>, ptr %eager)
  call void @emptied(ptr %read)  ; memory may go with that, and who owned it have a finaliser
  ret void
}}
"""

WAIT = (
    _DECLARED
    + RESULT
    + _PARTS
    + """
define internal i1 @struck(ptr %array, ptr %window, ptr %stage, ptr %sole, ptr %chunk) {
  %ours = call i1 @ours(ptr %window, ptr %array)
  %as.before = call i1 @is(ptr %window, i64 <Window.stage>, ptr %stage)
  %free = call i1 @engine()
  %both = and i1 %ours, %as.before
  %go = and i1 %both, %free
  br i1 %go, label %lengths, label %no
lengths:
  %recipe = call ptr @slot(ptr %sole, i64 <Recipe.address>)
  %strike = call ptr @PyLong_AsVoidPtr(ptr %recipe)
  %expected = load i64, ptr %strike
  %integers = alloca i64, i64 %expected
  %numbers.at = getelementptr i64, ptr %strike, i64 6
  %numbers = load i64, ptr %numbers.at
  %beside = add i64 %numbers, 1
  %leaves = sub i64 %expected, %beside
  %read = call ptr @slot(ptr %window, i64 <Window.read>)
  %n = call i64 @PyList_Size(ptr %read)
  %all = icmp eq i64 %n, %leaves  ; an interrupt may have left more
  %addresses = call ptr @slot(ptr %window, i64 <Window.addresses>)
  %paired = call i1 @longer(ptr %read, ptr %addresses, i64 0)
  %fits = and i1 %all, %paired
  br i1 %fits, label %values, label %no
values:
  %address = call ptr @slot(ptr %chunk, i64 <Chunk.address>)
  %plain = call i1 @gathered(ptr %window, ptr %address, ptr %strike, ptr %integers)
  br i1 %plain, label %run, label %no
run:
  call void @fire(ptr %strike, ptr %integers)
  %one = call ptr @known(i64 8)
  call void @set(ptr %chunk, i64 <Var.version>, ptr %one)
  call void @set(ptr %array, i64 <Array._address>, ptr %address)
  call void @set(ptr %array, i64 <Array._chunk>, ptr %chunk)
  call void @set(ptr %array, i64 <Array._window>, ptr @None)
  call void @forgotten(ptr %window)
  ret i1 true
no:
  ret i1 false
}

define ptr @wait(ptr %array, ptr %unused) {
  %window = call ptr @slot(ptr %array, i64 <Array._window>)
  %there = icmp eq ptr %window, @None
  br i1 %there, label %settled, label %made.by
made.by:
  %unmade.array = icmp eq ptr %window, null
  br i1 %unmade.array, label %python, label %pending

settled:
  %own = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %missing = icmp eq ptr %own, null
  br i1 %missing, label %python, label %settled.look
settled.look:
  %written = call i1 @free(ptr %own)
  %quiet = call i1 @engine()
  %sure = and i1 %written, %quiet
  br i1 %sure, label %done, label %python

pending:
  %class = call ptr @known(i64 4)
  %window.class = call i1 @is(ptr %window, i64 <type>, ptr %class)
  br i1 %window.class, label %stage.look, label %python
stage.look:
  %stage = call ptr @slot(ptr %window, i64 <Window.stage>)
  %single = call i1 @is(ptr %stage, i64 <Stage.single>, ptr @True)
  %sole = call ptr @slot(ptr %stage, i64 <Stage.sole>)
  %unmade = icmp eq ptr %sole, @None
  %made.now = xor i1 %unmade, true
  %maybe = and i1 %single, %made.now
  br i1 %maybe, label %recipe, label %python
recipe:
  %no.strike = call i1 @is(ptr %sole, i64 <Recipe.address>, ptr @None)
  br i1 %no.strike, label %python, label %take
take:
  call void @Py_IncRef(ptr %window)
  call void @Py_IncRef(ptr %stage)
  call void @Py_IncRef(ptr %sole)
  %layout = call ptr @slot(ptr %stage, i64 <Stage.layout>)
  %ctx = call ptr @slot(ptr %window, i64 <Window.ctx>)
  %chunk = call ptr @memory(ptr %ctx, ptr %layout)
  %failed = icmp eq ptr %chunk, null
  br i1 %failed, label %drop, label %strike
strike:
  %struck = call i1 @struck(ptr %array, ptr %window, ptr %stage, ptr %sole, ptr %chunk)
  call void @Py_DecRef(ptr %chunk)
  br label %drop
drop:
  %well = phi i1 [false, %take], [%struck, %strike]
  call void @Py_DecRef(ptr %sole)
  call void @Py_DecRef(ptr %stage)
  call void @Py_DecRef(ptr %window)
  br i1 %failed, label %error, label %end
end:
  br i1 %well, label %done, label %python

done:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
error:
  ret ptr null
python:
  %method = call ptr @known(i64 5)
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %method, ptr %array, ptr null)
  ret ptr %answer
}
"""
)
