"""A call that is made again until it comes to its end, whatever signals' handlers raise meanwhile.

A handler may raise an exception between any two instructions of Python on the main thread: in the
clean-up after the one before, too. No `try` in Python keeps the next one out of its own `except`.
So the call that repairs the engine's state is repeated by a loop in C, where no handler runs: from
`except BaseException:` to that call there is no instruction at which one would.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon.native.method import Method, bound, for_good, native_code
from gnomon.runtime.once import once

#: `retry_until_done(work, *arguments)`: `work` may be interrupted anywhere and begun anew
RetryUntilDone = Callable[..., None]

_TRIES = 1000  # an error that comes each time is the work's own

_CODE = """
@None = external global i64
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)

; lets go of the exception before, and has the one that was just raised no longer raised
define internal void @caught(ptr %error) {
entry:
  %value.at = getelementptr ptr, ptr %error, i64 1
  %trace.at = getelementptr ptr, ptr %error, i64 2
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %more = icmp slt i64 %i, 3
  br i1 %more, label %one, label %fetch
one:
  %at = getelementptr ptr, ptr %error, i64 %i
  %old = load ptr, ptr %at
  store ptr null, ptr %at
  %i.next = add i64 %i, 1
  %none = icmp eq ptr %old, null
  br i1 %none, label %next, label %drop
drop:
  call void @Py_DecRef(ptr %old)
  br label %next
next:
  br label %head
fetch:
  call void @PyErr_Fetch(ptr %error, ptr %value.at, ptr %trace.at)
  ret void
}

define ptr @retry_until_done(ptr %self, ptr %args, i64 %count) {
entry:
  %error = alloca ptr, i64 3
  %value.at = getelementptr ptr, ptr %error, i64 1
  %trace.at = getelementptr ptr, ptr %error, i64 2
  store ptr null, ptr %error
  store ptr null, ptr %value.at
  store ptr null, ptr %trace.at
  %work = load ptr, ptr %args
  %arguments = getelementptr ptr, ptr %args, i64 1
  %n = sub i64 %count, 1
  br label %try
try:
  %k = phi i64 [1, %entry], [%k.next, %again]
  %answer = call ptr @PyObject_Vectorcall(ptr %work, ptr %arguments, i64 %n, ptr null)
  %ended = icmp ne ptr %answer, null
  br i1 %ended, label %end, label %again
again:
  call void @caught(ptr %error)
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k, <.TRIES>
  br i1 %more, label %try, label %raise
end:
  call void @Py_DecRef(ptr %answer)
  %type = load ptr, ptr %error
  %well = icmp eq ptr %type, null
  br i1 %well, label %done, label %raise
raise:
  %kind = load ptr, ptr %error
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  call void @PyErr_Restore(ptr %kind, ptr %value, ptr %trace)
  ret ptr null
done:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
"""


@once
def retry_until_done() -> RetryUntilDone:
    """The native function; it raises, at the end, what was raised last."""
    code = native_code(_CODE, {".TRIES": _TRIES}, {})
    made: RetryUntilDone = bound(
        for_good((code, Method("retry_until_done", code.address("retry_until_done"))))[1], None
    )
    return made
