"""Native code that makes a chunk on an idle block of a shelf, and that gives the block back.

`chunk(shelf, nbytes, ctx)` takes a block off the shelf (see `runtime/pool.py`) and gives the chunk
that owns it, or None where no block is idle: then nothing was done. One is made for every small
result, and Python takes twice as long. `forget(chunk)` is its finaliser. Slots are written where
they lie (see `chunk.py`); only functions of Python's stable interface are called. The record of
`chunk`, in words:

    0  the class of chunks
    1  the set that stands for no readers
    2  the number 0
"""

from __future__ import annotations

_DECLARED = """
@False = external global i64
@None = external global i64
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
"""

#: the chunk by a record, from what `chunk` is given; null for an error; also for others to build on
MAKE = """
define internal void @fill(ptr %x, i64 %offset, ptr %value) {
  %at = getelementptr i8, ptr %x, i64 %offset
  call void @Py_IncRef(ptr %value)
  store ptr %value, ptr %at
  ret void
}

define internal ptr @made(ptr %r, ptr %shelf, ptr %nbytes, ptr %ctx) {
  %idle.at = getelementptr i8, ptr %shelf, i64 <Shelf.idle>
  %idle = load ptr, ptr %idle.at
  %n = call i64 @PyList_Size(ptr %idle)
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %take, label %none

take:
  %last = sub i64 %n, 1
  %address = call ptr @PyList_GetItem(ptr %idle, i64 %last)
  call void @Py_IncRef(ptr %address)
  %cut = call i32 @PyList_SetSlice(ptr %idle, i64 %last, i64 %n, ptr null)
  %class = load ptr, ptr %r
  %made = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %error, label %count.up

count.up:
  %taken.at = getelementptr i8, ptr %shelf, i64 <Shelf.taken>
  %taken = load ptr, ptr %taken.at
  %number = call i64 @PyLong_AsLongLong(ptr %taken)
  %more = add i64 %number, 1
  %new = call ptr @PyLong_FromLongLong(i64 %more)
  store ptr %new, ptr %taken.at
  call void @Py_DecRef(ptr %taken)

  %address.slot = getelementptr i8, ptr %made, i64 <Chunk.address>
  store ptr %address, ptr %address.slot
  %give.at = getelementptr i8, ptr %shelf, i64 <Shelf.give>
  %give = load ptr, ptr %give.at
  call void @fill(ptr %made, i64 <Chunk.give>, ptr %give)
  call void @fill(ptr %made, i64 <Chunk.nbytes>, ptr %nbytes)
  call void @fill(ptr %made, i64 <Chunk.ctx>, ptr %ctx)
  %nobody.at = getelementptr ptr, ptr %r, i64 1
  %nobody = load ptr, ptr %nobody.at
  call void @fill(ptr %made, i64 <Var.readers>, ptr %nobody)
  %zero.at = getelementptr ptr, ptr %r, i64 2
  %zero = load ptr, ptr %zero.at
  call void @fill(ptr %made, i64 <Var.version>, ptr %zero)
  call void @fill(ptr %made, i64 <Var.writer>, ptr @None)
  call void @fill(ptr %made, i64 <Var.queue>, ptr @None)
  call void @fill(ptr %made, i64 <Var.failure>, ptr @None)
  call void @fill(ptr %made, i64 <Var.name>, ptr @None)
  call void @fill(ptr %made, i64 <Chunk.owner>, ptr @None)
  call void @fill(ptr %made, i64 <Var.deleted>, ptr @False)
  call void @fill(ptr %made, i64 <Chunk.shared>, ptr @False)
  %promised = call ptr @PyList_New(i64 0)
  %promised.slot = getelementptr i8, ptr %made, i64 <Var.promised>
  store ptr %promised, ptr %promised.slot
  ret ptr %made

error:
  call void @Py_DecRef(ptr %address)
  ret ptr null
none:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
"""

CHUNK = (
    _DECLARED
    + MAKE
    + """
define ptr @chunk(ptr %self, ptr %args, i64 %count) {
  %r = call ptr @PyLong_AsVoidPtr(ptr %self)
  %shelf = load ptr, ptr %args
  %nbytes.at = getelementptr ptr, ptr %args, i64 1
  %nbytes = load ptr, ptr %nbytes.at
  %ctx.at = getelementptr ptr, ptr %args, i64 2
  %ctx = load ptr, ptr %ctx.at
  %made = call ptr @made(ptr %r, ptr %shelf, ptr %nbytes, ptr %ctx)
  ret ptr %made
}

define ptr @forget(ptr %chunk, ptr %unused) {
  %give.at = getelementptr i8, ptr %chunk, i64 <Chunk.give>
  %give = load ptr, ptr %give.at
  %address.at = getelementptr i8, ptr %chunk, i64 <Chunk.address>
  %address = load ptr, ptr %address.at
  %no.give = icmp eq ptr %give, null
  %no.address = icmp eq ptr %address, null
  %unmade = or i1 %no.give, %no.address  ; an interrupt came while it was made
  br i1 %unmade, label %none, label %back
back:
  %done = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %give, ptr %address, ptr null)
  ret ptr %done
none:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
"""
)
