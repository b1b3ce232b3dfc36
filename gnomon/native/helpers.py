"""What native functions share, as text: references, ends of lists, classes of arguments."""

from __future__ import annotations

from gnomon.native.method import for_good, native_code
from gnomon.runtime.once import once
from gnomon.runtime.statements import fields

NAMES = (
    "kit.caught", "kit.filled", "kit.fits", "kit.less", "kit.mistaken", "kit.popped", "kit.sorted",
    "kit.spread",
)  # fmt: skip

_COUNTED = """
define void @kit.less(ptr %x) nounwind {
  %at = getelementptr i8, ptr %x, i64 <count>
  %count = load i64, ptr %at
  %less = sub i64 %count, 1
  %end = icmp eq i64 %less, 0
  br i1 %end, label %last, label %rest
rest:
  store i64 %less, ptr %at
  ret void
last:
  tail call void @Py_DecRef(ptr %x)
  ret void
}
"""
_ASKED = """
define void @kit.less(ptr %x) nounwind {
  tail call void @Py_DecRef(ptr %x)
  ret void
}
"""
_ADDED = """%at = getelementptr i8, ptr %x, i64 <count>
  %count = load i64, ptr %at
  %more = add i64 %count, 1
  store i64 %more, ptr %at"""
_TAKEN = "call void @Py_IncRef(ptr %x)"
_HERE = """declare void @Py_IncRef(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare void @kit.less(ptr)
define internal void @kit.take(ptr %x) alwaysinline nounwind {
  <take>
  ret void
}
; whether an object is of a class
define internal i1 @kit.is(ptr %x, ptr %class) alwaysinline nounwind {
  %at = getelementptr i8, ptr %x, i64 <type>
  %type = load ptr, ptr %at
  %same = icmp eq ptr %type, %class
  br i1 %same, label %yes, label %ask
ask:
  %below = call i32 @PyType_IsSubtype(ptr %type, ptr %class)
  %is = icmp ne i32 %below, 0
  ret i1 %is
yes:
  ret i1 true
}
define internal void @kit.drop(ptr %x) alwaysinline nounwind {
  %nothing = icmp eq ptr %x, null
  br i1 %nothing, label %done, label %some
some:
  call void @kit.less(ptr %x)
  br label %done
done:
  ret void
}
"""
_TEXT = """
@None = external global i64
@TypeError = external global i64
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyErr_NoMemory()
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare i64 @PyList_Size(ptr)
declare void @PyMem_Free(ptr)
declare ptr @PyMem_Malloc(i64)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)

; the last of a list, taken out, or None
define ptr @kit.popped(ptr %list) nounwind {
  %n = call i64 @PyList_Size(ptr %list)
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %nothing, label %some
nothing:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
some:
  %last = sub i64 %n, 1
  %found = call ptr @PyList_GetItem(ptr %list, i64 %last)
  %none = icmp eq ptr %found, null
  br i1 %none, label %done, label %take
take:
  call void @Py_IncRef(ptr %found)
  %cut = call i32 @PyList_SetSlice(ptr %list, i64 %last, i64 %n, ptr null)
  br label %done
done:
  ret ptr %found
}
; has None in the places of a tuple that were not set
define void @kit.filled(ptr %tuple) nounwind {
entry:
  %n = call i64 @PyTuple_Size(ptr %tuple)
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %on]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %look, label %done
look:
  %found = call ptr @PyTuple_GetItem(ptr %tuple, i64 %i)
  %none = icmp eq ptr %found, null
  br i1 %none, label %fill, label %on
fill:
  call void @Py_IncRef(ptr @None)
  %status = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr @None)
  br label %on
on:
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}
; a function of one argument, or none where that is null, and some more
define ptr @kit.spread(ptr %function, ptr %first, { ptr, i64 } %given) nounwind {
entry:
  %args = extractvalue { ptr, i64 } %given, 0
  %n = extractvalue { ptr, i64 } %given, 1
  %alone = icmp eq ptr %first, null
  %own = select i1 %alone, i64 0, i64 1
  %all = add i64 %n, %own
  %tuple = call ptr @PyTuple_New(i64 %all)
  %none = icmp eq ptr %tuple, null
  br i1 %none, label %failed, label %start
start:
  br i1 %alone, label %head, label %place
place:
  call void @Py_IncRef(ptr %first)
  %r = call i32 @PyTuple_SetItem(ptr %tuple, i64 0, ptr %first)
  br label %head
head:
  %i = phi i64 [0, %start], [0, %place], [%next, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %go
body:
  %at = getelementptr ptr, ptr %args, i64 %i
  %x = load ptr, ptr %at
  %next = add i64 %i, 1
  %to = add i64 %i, %own
  call void @Py_IncRef(ptr %x)
  %s = call i32 @PyTuple_SetItem(ptr %tuple, i64 %to, ptr %x)
  br label %head
go:
  %answer = call ptr @PyObject_CallObject(ptr %function, ptr %tuple)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %answer
failed:
  ret ptr null
}
; the error that is raised, with its traceback, and no longer raised
define ptr @kit.caught() nounwind {
  %type.at = alloca ptr
  %value.at = alloca ptr
  %trace.at = alloca ptr
  call void @PyErr_Fetch(ptr %type.at, ptr %value.at, ptr %trace.at)
  call void @PyErr_NormalizeException(ptr %type.at, ptr %value.at, ptr %trace.at)
  %type = load ptr, ptr %type.at
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  call void @Py_DecRef(ptr %type)
  %none = icmp eq ptr %trace, null
  br i1 %none, label %done, label %keep
keep:
  %r = call i32 @PyException_SetTraceback(ptr %value, ptr %trace)
  call void @Py_DecRef(ptr %trace)
  br label %done
done:
  ret ptr %value
}
; puts arguments in the order of their parameters; whether they fit. The table: how many there are,
; then of each its name, and what stands for it where it is left out, or null
define i1 @kit.sorted(ptr %args, i64 %count, ptr %words, ptr %sorted, ptr %table) nounwind {
entry:
  %n = load i64, ptr %table
  %rows = getelementptr ptr, ptr %table, i64 1
  %many = icmp sgt i64 %count, %n
  br i1 %many, label %no, label %places
places:
  %i = phi i64 [0, %entry], [%i.next, %copied]
  %i.more = icmp slt i64 %i, %n
  br i1 %i.more, label %place, label %named
place:
  %to = getelementptr ptr, ptr %sorted, i64 %i
  %there = icmp slt i64 %i, %count
  br i1 %there, label %copy, label %leave
copy:
  %from = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %from
  br label %copied
leave:
  br label %copied
copied:
  %given = phi ptr [%argument, %copy], [null, %leave]
  store ptr %given, ptr %to
  %i.next = add i64 %i, 1
  br label %places
named:
  %no.words = icmp eq ptr %words, null
  br i1 %no.words, label %defaults, label %measure
measure:
  %w = call i64 @PyTuple_Size(ptr %words)
  br label %head
head:
  %k = phi i64 [0, %measure], [%k.next, %store]
  %k.more = icmp slt i64 %k, %w
  br i1 %k.more, label %name, label %defaults
name:
  %word = call ptr @PyTuple_GetItem(ptr %words, i64 %k)
  br label %compare
compare:
  %p = phi i64 [0, %name], [%p.next, %other]
  %p.more = icmp slt i64 %p, %n
  br i1 %p.more, label %one, label %no
one:
  %p.twice = mul i64 %p, 2
  %parameter.at = getelementptr ptr, ptr %rows, i64 %p.twice
  %parameter = load ptr, ptr %parameter.at
  %same = icmp eq ptr %parameter, %word
  br i1 %same, label %found, label %equal
equal:
  %order = call i32 @PyUnicode_Compare(ptr %parameter, ptr %word)
  %alike = icmp eq i32 %order, 0
  br i1 %alike, label %found, label %other
other:
  %p.next = add i64 %p, 1
  br label %compare
found:
  %slot = getelementptr ptr, ptr %sorted, i64 %p
  %old = load ptr, ptr %slot
  %twice = icmp ne ptr %old, null
  br i1 %twice, label %no, label %store
store:
  %which = add i64 %count, %k
  %value.at = getelementptr ptr, ptr %args, i64 %which
  %value = load ptr, ptr %value.at
  store ptr %value, ptr %slot
  %k.next = add i64 %k, 1
  br label %head
defaults:
  %d = phi i64 [0, %named], [0, %head], [%d.next, %filled]
  %d.more = icmp slt i64 %d, %n
  br i1 %d.more, label %look, label %yes
look:
  %d.at = getelementptr ptr, ptr %sorted, i64 %d
  %d.given = load ptr, ptr %d.at
  %d.out = icmp eq ptr %d.given, null
  br i1 %d.out, label %fill, label %filled
fill:
  %d.twice = mul i64 %d, 2
  %d.place = add i64 %d.twice, 1
  %default.at = getelementptr ptr, ptr %rows, i64 %d.place
  %default = load ptr, ptr %default.at
  store ptr %default, ptr %d.at
  %missing = icmp eq ptr %default, null
  br i1 %missing, label %no, label %filled
filled:
  %d.next = add i64 %d, 1
  br label %defaults
yes:
  ret i1 true
no:
  ret i1 false
}
; what a function in Python says of arguments that do not fit; `self` may be null
define ptr @kit.mistaken(ptr %function, ptr %self, ptr %args, i64 %count, ptr %words) nounwind {
entry:
  %none = icmp eq ptr %words, null
  br i1 %none, label %sized, label %named
named:
  %n = call i64 @PyTuple_Size(ptr %words)
  br label %sized
sized:
  %more = phi i64 [0, %entry], [%n, %named]
  %alone = icmp eq ptr %self, null
  %own = select i1 %alone, i64 0, i64 1
  %beside = add i64 %count, %more
  %places = add i64 %beside, %own
  %room = add i64 %places, 1
  %bytes = mul i64 %room, 8
  %vector = call ptr @PyMem_Malloc(i64 %bytes)  ; a stack does not hold a million arguments
  %no.memory = icmp eq ptr %vector, null
  br i1 %no.memory, label %error, label %first
error:
  %raised = call ptr @PyErr_NoMemory()
  ret ptr %raised
first:
  store ptr %self, ptr %vector
  br label %head
head:
  %i = phi i64 [0, %first], [%i.next, %copy]
  %i.more = icmp slt i64 %i, %beside
  br i1 %i.more, label %copy, label %call
copy:
  %from = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %from
  %place = add i64 %i, %own
  %to = getelementptr ptr, ptr %vector, i64 %place
  store ptr %argument, ptr %to
  %i.next = add i64 %i, 1
  br label %head
call:
  %fixed = add i64 %count, %own
  %answer = call ptr @PyObject_Vectorcall(ptr %function, ptr %vector, i64 %fixed, ptr %words)
  call void @PyMem_Free(ptr %vector)
  ret ptr %answer
}
; whether Python gives what the checks say: how many, then of each the class, None where any will
; do, whether it may be None, and how an error calls it
define i1 @kit.fits(ptr %args, i64 %given, ptr %checks) nounwind {
entry:
  %count = load i64, ptr %checks
  %name.at = getelementptr ptr, ptr %checks, i64 1
  %name = load ptr, ptr %name.at
  %first = getelementptr ptr, ptr %checks, i64 2
  %right = icmp eq i64 %given, %count
  br i1 %right, label %head, label %many
many:
  %m = call ptr (ptr, ptr, ...) @PyErr_Format(ptr @TypeError, ptr @takes, ptr %name, i64 %count,
    i64 %given)
  ret i1 false
head:
  %i = phi i64 [0, %entry], [%i.next, %on]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %fine
look:
  %check = getelementptr [3 x ptr], ptr %first, i64 %i
  %class = load ptr, ptr %check
  %x.at = getelementptr ptr, ptr %args, i64 %i
  %x = load ptr, ptr %x.at
  %other.at = getelementptr ptr, ptr %check, i64 1
  %other = load ptr, ptr %other.at
  %any = icmp eq ptr %class, null
  %allowed = icmp eq ptr %x, %other
  %yes = or i1 %any, %allowed
  br i1 %yes, label %on, label %ask
ask:
  %type.at = getelementptr i8, ptr %x, i64 <type>
  %type = load ptr, ptr %type.at
  %below = call i32 @PyType_IsSubtype(ptr %type, ptr %class)
  %is = icmp ne i32 %below, 0
  br i1 %is, label %on, label %wrong
wrong:
  %what.at = getelementptr ptr, ptr %check, i64 2
  %what = load ptr, ptr %what.at
  %w = call ptr (ptr, ptr, ...) @PyErr_Format(ptr @TypeError, ptr @needs, ptr %name, ptr %what)
  ret i1 false
on:
  %i.next = add i64 %i, 1
  br label %head
fine:
  ret i1 true
}
@takes = private constant [39 x i8] c"%s takes %zd arguments, %zd were given\\00"
@needs = private constant [28 x i8] c"%s: argument %s is expected\\00"
"""


@once
def shared() -> dict[str, int]:
    """The addresses of these functions, by name."""
    count = fields.count_offset()
    known = {"type": fields.type_offset(), "count": count or 0}
    text = _TEXT + (_ASKED if count is None else _COUNTED)
    code = native_code(text, known, {"TypeError": id(TypeError)})
    return {name: for_good(code).address(name) for name in NAMES}


def every() -> str:
    """What stands in every unit: how references are taken and dropped, and classes compared."""
    count = fields.count_offset()
    taken = _TAKEN if count is None else _ADDED.replace("<count>", str(count))
    return _HERE.replace("<take>", taken).replace("<type>", str(fields.type_offset()))
