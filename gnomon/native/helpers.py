"""What all native functions share: references, ends of lists, and the arguments that Python gives.

What is short stands in every unit, as text; the rest are functions without Python, which take
objects by their addresses. Native code calls them as `kit.popped`, say.
"""

from __future__ import annotations

from gnomon.native.memory import CFunction
from gnomon.native.words import Words, native, scratch
from gnomon.runtime.statements import fields

NONE = Words(id(None))
COUNTED = fields.count_offset() is not None
COUNT, TYPE = (fields.count_offset() or 0) // 8, fields.type_offset() // 8

increase = CFunction("void Py_IncRef(void *)")
decrease = CFunction("void Py_DecRef(void *)")
list_size = CFunction("long PyList_Size(void *)")
list_item = CFunction("void * PyList_GetItem(void *, long)")
set_slice = CFunction("int PyList_SetSlice(void *, long, long, void *)")
tuple_size = CFunction("long PyTuple_Size(void *)")
tuple_item = CFunction("void * PyTuple_GetItem(void *, long)")
set_tuple_item = CFunction("int PyTuple_SetItem(void *, long, void *)")
vectorcall = CFunction("void * PyObject_Vectorcall(void *, void *, long, void *)")
compare = CFunction("int PyUnicode_Compare(void *, void *)")
fetch = CFunction("void PyErr_Fetch(void *, void *, void *)")
normalize = CFunction("void PyErr_NormalizeException(void *, void *, void *)")
set_traceback = CFunction("int PyException_SetTraceback(void *, void *)")
no_memory = CFunction("void * PyErr_NoMemory()")
present_frame = CFunction("void * PyEval_GetFrame()")
frame_before = CFunction("void * PyFrame_GetBack(void *)")
allocate = CFunction("void * PyMem_Malloc(long)")
free = CFunction("void PyMem_Free(void *)")


@native
def less(x: Words) -> None:
    """Release a reference to an object."""
    if COUNTED and x[COUNT] > 1:
        x[COUNT] = x[COUNT] - 1
    else:
        decrease(x)


@native
def popped(items: Words) -> int:
    """The last of a list, taken out, or None."""
    last = list_size(items) - 1
    if last < 0:
        increase(NONE)
        return NONE.address
    found = list_item(items, last)
    if found != 0:
        increase(found)
        set_slice(items, last, last + 1, None)
    return found


@native
def filled(parts: Words) -> None:
    """Has None in the places of a tuple that were not set."""
    for k in range(tuple_size(parts)):
        if tuple_item(parts, k) == 0:
            increase(NONE)
            set_tuple_item(parts, k, NONE)


@native
def caught() -> int:
    """The error that is raised, with its traceback, and no longer raised."""
    error = scratch(3)  # class, error, traceback
    fetch(error, error + 1, error + 2)
    normalize(error, error + 1, error + 2)
    decrease(error[0])
    if error[2] != 0:
        set_traceback(error[1], error[2])
        decrease(error[2])
    return error[1]


@native
def frame_at(depth: int) -> int:
    """The frame so many calls before the present one, or 0, maybe with an error."""
    frame = Words(present_frame())
    if frame.address == 0:  # which tells no error
        return no_memory()
    increase(frame)
    for _ in range(depth):
        before = frame_before(frame)
        decrease(frame)
        if before == 0:
            return 0
        frame = Words(before)
    return frame.address


@native
def ordered(args: Words, count: int, names: int, places: Words, table: Words) -> bool:
    """Put arguments in the order of their parameters; whether they fit.

    `names`, 0 for none, are those of the arguments behind `count`. The table has the number of
    parameters, then of each its name, and what stands for it where it is left out, or 0.
    """
    most = table[0]
    if count > most:
        return False
    for k in range(most):
        places[k] = args[k] if k < count else 0
    if names != 0:
        for k in range(tuple_size(names)):
            place = _place(table, tuple_item(names, k))
            if place < 0 or places[place] != 0:
                return False
            places[place] = args[count + k]
    for k in range(most):
        if places[k] == 0:
            places[k] = table[2 + 2 * k]
        if places[k] == 0:
            return False
    return True


@native
def _place(table: Words, name: int) -> int:
    """Where a parameter of that name is; -1 where there is none."""
    for k in range(table[0]):
        known = table[1 + 2 * k]
        if known == name or compare(known, name) == 0:
            return k
    return -1


@native
def spread(function: Words, first: int, args: Words, count: int, names: int) -> int:
    """Call a function in Python with an argument, or none where that is 0, and with an array's.

    `names`, 0 for none, are those of the array's arguments behind `count`.
    """
    if first == 0:
        return vectorcall(function, args, count, names)
    every = count if names == 0 else count + tuple_size(names)
    memory = allocate(8 * (every + 1))  # a stack does not hold a million arguments
    if memory == 0:
        return no_memory()
    vector = Words(memory)
    vector[0] = first
    for k in range(every):
        vector[k + 1] = args[k]
    answer = vectorcall(function, vector, count + 1, names)
    free(memory)
    return answer


FUNCTIONS = (less, popped, filled, caught, frame_at, ordered, spread)

_COUNTED = f"""%at = getelementptr i64, ptr %x, i64 {COUNT}
  %count = load i64, ptr %at
  %more = add i64 %count, 1
  store i64 %more, ptr %at"""
#: in every unit: how references are taken and released, and classes compared
TEXT = f"""declare void @Py_IncRef(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare void @kit.less(ptr)
define internal void @kit.take(ptr %x) alwaysinline nounwind {{
  {_COUNTED if COUNTED else "call void @Py_IncRef(ptr %x)"}
  ret void
}}
define internal i1 @kit.is(ptr %x, ptr %class) alwaysinline nounwind {{
  %at = getelementptr i64, ptr %x, i64 {TYPE}
  %type = load ptr, ptr %at
  %same = icmp eq ptr %type, %class
  br i1 %same, label %yes, label %ask
ask:
  %below = call i32 @PyType_IsSubtype(ptr %type, ptr %class)
  %is = icmp ne i32 %below, 0
  ret i1 %is
yes:
  ret i1 true
}}
define internal void @kit.drop(ptr %x) alwaysinline nounwind {{
  %nothing = icmp eq ptr %x, null
  br i1 %nothing, label %done, label %some
some:
  call void @kit.less(ptr %x)
  br label %done
done:
  ret void
}}
"""
