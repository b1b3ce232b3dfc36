"""What native functions share, as text: ways out that are rarely gone, and lists' ends."""

from __future__ import annotations

from collections.abc import Sequence

HELPERS = {
    "kit.drop": """
define internal void @kit.drop(ptr %x) noinline nounwind {
  %nothing = icmp eq ptr %x, null
  br i1 %nothing, label %done, label %some
some:
  call void @Py_DecRef(ptr %x)
  br label %done
done:
  ret void
}
""",
    "kit.popped": """
; the last of a list, taken out, or None
define internal ptr @kit.popped(ptr %list) noinline nounwind {
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
""",
    "kit.filled": """
; has None in the places of a tuple that were not set
define internal void @kit.filled(ptr %tuple) noinline nounwind {
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
""",
    "kit.is": """
; whether an object is of a class
define internal i1 @kit.is(ptr %x, ptr %class) noinline nounwind {
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
""",
}
_CALLED = {
    "PyErr_SetString": "void (ptr, ptr)",
    "PyList_GetItem": "ptr (ptr, i64)",
    "PyList_SetSlice": "i32 (ptr, i64, i64, ptr)",
    "PyList_Size": "i64 (ptr)",
    "PyTuple_GetItem": "ptr (ptr, i64)",
    "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
    "PyTuple_Size": "i64 (ptr)",
    "PyType_IsSubtype": "i32 (ptr, ptr)",
    "Py_DecRef": "void (ptr)",
    "Py_IncRef": "void (ptr)",
}


def called(text: str) -> dict[str, tuple[str, list[str]]]:
    """The functions in C that a helper calls: their results and arguments."""
    found = {}
    for name, signature in _CALLED.items():
        if f"@{name}(" in text:
            result, _, given = signature.removesuffix(")").partition(" (")
            found[name] = result, given.split(", ") if given else []
    return found


def raising(errors: Sequence[tuple[str, str]]) -> str:
    """The function that raises an error: a class and a text, by the number of the pair."""
    parts = [f"{said}\0".encode() for _, said in errors]
    starts = [sum(map(len, parts[:k])) for k in range(len(parts))]
    classes = sorted({name for name, _ in errors})
    words = [classes.index(name) << 24 | at for (name, _), at in zip(errors, starts, strict=True)]
    data = b"".join(parts)
    shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    cases = "".join(f"    i32 {k}, label %class.{k}\n" for k in range(len(classes)))
    raised = "".join(
        f"class.{k}:\n  call void @PyErr_SetString(ptr @{name}, ptr %text)\n  ret void\n"
        for k, name in enumerate(classes)
    )
    return f"""@said = private constant [{len(data)} x i8] c"{shown}"
@errors = private constant [{len(words)} x i32] [{", ".join(f"i32 {w}" for w in words)}]
define internal void @kit.raise(i32 %k) noinline cold nounwind {{
  %at = getelementptr [{len(words)} x i32], ptr @errors, i32 0, i32 %k
  %word = load i32, ptr %at
  %which = lshr i32 %word, 24
  %start = and i32 %word, 16777215
  %text = getelementptr i8, ptr @said, i32 %start
  switch i32 %which, label %class.0 [
{cases}  ]
{raised}}}
"""
