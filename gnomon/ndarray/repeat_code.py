"""Native code that applies an operator again, as before to arrays of these layouts.

`repeat(recipes, arrays)` looks the tuple of the arrays' layouts up in a dictionary of recipes,
gives the results memory, has the kernel run and returns them: one array, or a list of several.
Arrays that are pending are computed first. For anything unusual it gives None, with nothing done:
an array of another class, on the tape, or not there yet, layouts that are new, an engine that
observes or holds back.

Memory is taken first, since an allocation may run the collector, and so any code; then everything
is decided, and nobody else has seen the results. Python's own lock is held all the while. Slots are
read and written where they lie (see `repeat.py`); only functions of Python's stable interface are
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
; whether an array has memory, where it waited it has been computed for that
define internal i1 @placed(ptr %array) {
  %settled = call i1 @is(ptr %array, i64 <Array._window>, ptr @None)
  br i1 %settled, label %yes, label %ask
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

; the layouts of arrays in memory, in a tuple; null where one is not usual, or for an error
define internal ptr @layouts(ptr %arrays, i64 %n) {
entry:
  %class = call ptr @known(i64 4)
  %made = call ptr @PyTuple_New(i64 %n)
  %none = icmp eq ptr %made, null
  br i1 %none, label %done, label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %note]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %done
look:
  %array = call ptr @PyTuple_GetItem(ptr %arrays, i64 %i)
  %ours = call i1 @is(ptr %array, i64 <type>, ptr %class)
  br i1 %ours, label %tape, label %unusual
tape:
  %untaped = call i1 @is(ptr %array, i64 <Array._tape>, ptr @None)
  br i1 %untaped, label %memory, label %unusual
memory:
  %placed = call i1 @placed(ptr %array)
  br i1 %placed, label %note, label %unusual
note:
  %layout = call ptr @slot(ptr %array, i64 <Array._layout>)
  call void @Py_IncRef(ptr %layout)
  %r = call i32 @PyTuple_SetItem(ptr %made, i64 %i, ptr %layout)
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

; whether all arrays are there, in the layouts they had; their addresses come among the integers
define internal i1 @gathered(ptr %arrays, ptr %layouts, i64 %n, ptr %integers) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %note]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %yes
look:
  %array = call ptr @PyTuple_GetItem(ptr %arrays, i64 %i)
  %settled = call i1 @is(ptr %array, i64 <Array._window>, ptr @None)
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %some = icmp ne ptr %chunk, null
  %placed = and i1 %settled, %some
  %layout = call ptr @PyTuple_GetItem(ptr %layouts, i64 %i)
  %as.before = call i1 @is(ptr %array, i64 <Array._layout>, ptr %layout)
  %there = and i1 %placed, %as.before
  br i1 %there, label %writer, label %no
writer:
  %free = call i1 @free(ptr %chunk)
  br i1 %free, label %note, label %no
note:
  %address = call ptr @slot(ptr %array, i64 <Array._address>)
  %number = call i64 @PyLong_AsLongLong(ptr %address)
  %at = getelementptr i64, ptr %integers, i64 %i
  store i64 %number, ptr %at
  %i.next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; the results of a recipe for these arrays, in a list; null where one is not there, or for an error
define internal ptr @applied(ptr %recipe, ptr %arrays, ptr %key, i64 %n, ptr %ctx) {
  %address = call ptr @slot(ptr %recipe, i64 <Recipe.address>)
  %strike = call ptr @PyLong_AsVoidPtr(ptr %address)
  %given = call ptr @slot(ptr %recipe, i64 <Recipe.given>)
  %layouts = call ptr @PyTuple_GetItem(ptr %given, i64 0)
  %expected = load i64, ptr %strike
  %integers = alloca i64, i64 %expected
  %own = getelementptr i64, ptr %integers, i64 %n
  %made = call ptr @results(ptr %ctx, ptr %layouts, ptr %own)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %decide
decide:
  %quiet = call i1 @engine()
  %there = call i1 @gathered(ptr %arrays, ptr %key, i64 %n, ptr %integers)
  %go = and i1 %quiet, %there
  br i1 %go, label %run, label %drop
run:
  call void @fire(ptr %strike, ptr %integers)
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %made)
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
define ptr @repeat(ptr %self, ptr %args, i64 %count) {
  %recipes = load ptr, ptr %args
  %arrays.at = getelementptr ptr, ptr %args, i64 1
  %arrays = load ptr, ptr %arrays.at
  %n = call i64 @PyTuple_Size(ptr %arrays)
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %look, label %refused
look:
  %key = call ptr @layouts(ptr %arrays, i64 %n)
  %unusual = icmp eq ptr %key, null
  br i1 %unusual, label %refused, label %known
known:
  %recipe = call ptr @PyDict_GetItem(ptr %recipes, ptr %key)
  %first = call ptr @PyTuple_GetItem(ptr %arrays, i64 0)
  %chunk = call ptr @slot(ptr %first, i64 <Array._chunk>)
  %new = icmp eq ptr %recipe, null
  %gone = icmp eq ptr %chunk, null
  %neither = or i1 %new, %gone
  br i1 %neither, label %drop, label %apply
apply:
  %ctx = call ptr @slot(ptr %chunk, i64 <Chunk.ctx>)
  call void @Py_IncRef(ptr %recipe)
  call void @Py_IncRef(ptr %ctx)
  %made = call ptr @applied(ptr %recipe, ptr %arrays, ptr %key, i64 %n, ptr %ctx)
  call void @Py_DecRef(ptr %ctx)
  call void @Py_DecRef(ptr %recipe)
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
