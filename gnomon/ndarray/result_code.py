"""Native code that gives a result its memory, and asks whether it may be computed at once.

For others to build on, who have a `@record` that begins with these words (see `result.py`):

    0  who knows the engine
    1  the processor's shelves, the record to make chunks by (see `chunk_code`)
    3  what allocates in Python
"""

from __future__ import annotations

from gnomon.engine.strike_code import FIRE, FREE, KNOWN, SLOTS
from gnomon.ndarray.chunk_code import MAKE

_PARTS = """
; whether the engine takes what it does not see: it holds nothing back, observes nobody
define internal i1 @engine() {
  %who = call ptr @known(i64 0)
  %engine = call ptr @slot(ptr %who, i64 <Process.engine>)
  %none = icmp eq ptr %engine, @None
  br i1 %none, label %no, label %look
look:
  %unobserved = call i1 @is(ptr %engine, i64 <Books._observer>, ptr @None)
  %no.bulk = call i1 @is(ptr %engine, i64 <Books._bulk>, ptr @None)
  %no.late = call i1 @is(ptr %engine, i64 <Books._late>, ptr @None)
  %no.brief = call i1 @is(ptr %engine, i64 <Books._briefly>, ptr @False)
  %one = and i1 %unobserved, %no.bulk
  %two = and i1 %no.late, %no.brief
  %all = and i1 %one, %two
  ret i1 %all
no:
  ret i1 false
}

; new memory for a result: off a shelf, or as Python finds it; null for an error
define internal ptr @memory(ptr %ctx, ptr %layout) {
  %nbytes = call ptr @slot(ptr %layout, i64 <Layout.nbytes>)
  %size = call i64 @PyLong_AsLongLong(ptr %nbytes)
  %type = call ptr @slot(ptr %ctx, i64 <Context.device_typeid>)
  %device = call i64 @PyLong_AsLongLong(ptr %type)
  %here = icmp ne i64 %device, <GPU>
  %little = icmp sle i64 %size, <SMALL>
  %small = and i1 %here, %little
  br i1 %small, label %shelf, label %python
shelf:
  %rounded = add i64 %size, 63
  %which = lshr i64 %rounded, 6
  %shelves = call ptr @known(i64 1)
  %one = call ptr @PyList_GetItem(ptr %shelves, i64 %which)
  %recipe = call ptr @known(i64 2)
  %made = call ptr @made(ptr %recipe, ptr %one, ptr %nbytes, ptr %ctx)
  %none = icmp eq ptr %made, @None
  br i1 %none, label %python, label %done
python:
  %allocate = call ptr @known(i64 3)
  %found = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %allocate, ptr %nbytes, ptr %ctx, ptr null)
  ret ptr %found
done:
  ret ptr %made
}
"""

RESULT = FREE + FIRE + SLOTS + KNOWN + MAKE + _PARTS
