"""What native functions share, as text: references, ends of lists, classes of arguments."""

from __future__ import annotations

from gnomon.native.method import for_good, native_code
from gnomon.runtime import fields
from gnomon.runtime.once import once

NAMES = ("kit.drop", "kit.filled", "kit.fits", "kit.is", "kit.popped")

_COUNTED = """
define void @kit.drop(ptr %x) nounwind {
  %nothing = icmp eq ptr %x, null
  br i1 %nothing, label %done, label %some
some:
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
done:
  ret void
}
"""
_ASKED = """
define void @kit.drop(ptr %x) nounwind {
  tail call void @Py_DecRef(ptr %x)
  ret void
}
"""
_TEXT = """
@None = external global i64
@TypeError = external global i64
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
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
; whether an object is of a class
define i1 @kit.is(ptr %x, ptr %class) nounwind {
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
  %m = call ptr (ptr, ptr, ...) @PyErr_Format(ptr @TypeError, ptr @takes, ptr %name, i64 %count)
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
@takes = private constant [23 x i8] c"%s takes %zd arguments\\00"
@needs = private constant [28 x i8] c"%s: argument %s is expected\\00"
"""


@once
def shared() -> dict[str, int]:
    """The addresses of these functions, by name."""
    count = fields.count_offset()
    text = _TEXT + (_ASKED if count is None else _COUNTED)
    code = native_code(
        text,
        {"type": fields.type_offset(), "count": count or 0},
        {"TypeError": id(TypeError)},
    )
    return {name: for_good(code).address(name) for name in NAMES}


def taking() -> str:
    """The function that takes a reference: as objects count them, or by Python."""
    count = fields.count_offset()
    if count is None:
        body = "call void @Py_IncRef(ptr %x)"
        head = "declare void @Py_IncRef(ptr)\n"
    else:
        head, body = (
            "",
            f"""%at = getelementptr i8, ptr %x, i64 {count}
  %count = load i64, ptr %at
  %more = add i64 %count, 1
  store i64 %more, ptr %at""",
        )
    return f"""{head}define internal void @kit.take(ptr %x) alwaysinline nounwind {{
  {body}
  ret void
}}
"""
