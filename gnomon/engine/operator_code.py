"""Native code for the push of a prepared operator: `push(operator)`, see `push_code`.

An inline one runs here, where no job is in its way: it is entered, called and settled without
Python. What it raises, what it makes ready and what else came meanwhile is for `_go_on` in Python.
An interrupt may keep that from doing its work, which shows by `bouncing`: then it is called again.
"""

from __future__ import annotations

from gnomon.engine.push_code import PUSHES

_TRIES = 1000  # to go on, while interrupts come

_WORKER = """
; enters an operator's function for the workers; whether it did
define internal i1 @push.worker(ptr %engine, ptr %operator, ptr %const, ptr %mutate) {
  %fn = call ptr @slot(ptr %operator, i64 <Operator.fn>)
  %name = call ptr @slot(ptr %operator, i64 <Operator.name>)
  %may = call i1 @entered.from(ptr %engine)
  br i1 %may, label %enter, label %no
enter:
  %entered = call i1 @enter(
    ptr %engine, ptr %fn, ptr %const, ptr %mutate, ptr %name, ptr %operator)
  br i1 %entered, label %count, label %no
count:
  %active = call i64 @add(ptr %operator, i64 <Operator.active>, i64 1)
  ret i1 true
no:
  ret i1 false
}
"""

_INLINE = """
; whether no thread is in the midst of an entry, and nothing was put off
define internal i1 @quiet(ptr %engine) {
  %unlocked = call i1 @unlocked(ptr %engine)
  br i1 %unlocked, label %look, label %no
look:
  %manned = call i1 @empty(ptr %engine, i64 <EngineState._hiring>)
  %nothing.late = call i1 @empty(ptr %engine, i64 <EngineState._deferred>)
  %both = and i1 %manned, %nothing.late
  ret i1 %both
no:
  ret i1 false
}

; whether an inline function may be entered and run
define internal i1 @run.from(ptr %engine) {
  %kind = call ptr @known(i64 <.KIND>)
  %ours = call i1 @is(ptr %engine, i64 <type>, ptr %kind)
  %quiet = call i1 @quiet(ptr %engine)
  %no.late = call i1 @is(ptr %engine, i64 <EngineState._late>, ptr @None)
  %no.bulk = call i1 @is(ptr %engine, i64 <EngineState._bulk>, ptr @None)
  %unobserved = call i1 @is(ptr %engine, i64 <EngineState._observer>, ptr @None)
  %one = and i1 %no.late, %no.bulk
  %two = and i1 %unobserved, %quiet
  %three = and i1 %one, %two
  %all = and i1 %three, %ours
  ret i1 %all
}

; whether no job uses variables in a way that a reader of them, or a writer, has to wait for, and
; none has a failure
define internal i1 @untouched(ptr %vars, i1 %written) {
entry:
  %n = call i64 @PyTuple_Size(ptr %vars)
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %yes
one:
  %var = call ptr @PyTuple_GetItem(ptr %vars, i64 %i)
  %free = call i1 @free(ptr %var)
  %unread = call i1 @unread(ptr %var)
  %readable = xor i1 %written, true
  %enters = or i1 %unread, %readable
  %all = and i1 %free, %enters
  br i1 %all, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; the thread's state where an inline function may run right away, a new reference; else null
define internal ptr @idle.state(ptr %engine) {
  %local = call ptr @slot(ptr %engine, i64 <EngineState._local>)
  %name = call ptr @known(i64 <.STATE>)
  %state = call ptr @PyObject_GetAttr(ptr %local, ptr %name)
  %none = icmp eq ptr %state, null
  br i1 %none, label %new, label %look
new:
  call void @PyErr_Clear()  ; the thread's first push
  ret ptr null
look:
  %idle = call i1 @is(ptr %state, i64 <ThreadState.bouncing>, ptr @False)
  br i1 %idle, label %yes, label %no
yes:
  ret ptr %state
no:
  call void @Py_DecRef(ptr %state)
  ret ptr null
}

; enters an operator's function, to be called here; the job, a new reference, or null
define internal ptr @entered.here(
  ptr %engine, ptr %state, ptr %operator, ptr %const, ptr %mutate
) {
  %may = call i1 @run.from(ptr %engine)
  br i1 %may, label %readers, label %no
readers:
  %const.free = call i1 @untouched(ptr %const, i1 false)
  br i1 %const.free, label %writers, label %no
writers:
  %mutate.free = call i1 @untouched(ptr %mutate, i1 true)
  br i1 %mutate.free, label %make, label %no
make:
  %fn = call ptr @slot(ptr %operator, i64 <Operator.fn>)
  %name = call ptr @slot(ptr %operator, i64 <Operator.name>)
  %job = call ptr @job(ptr %fn, i64 <.INLINE>, ptr %const, ptr %mutate, ptr %name, ptr @None,
                       ptr %operator)
  %none = icmp eq ptr %job, null
  br i1 %none, label %error, label %enter
error:
  call void @PyErr_Clear()
  ret ptr null
enter:
  %all = call i1 @admit(ptr %engine, ptr %job)
  %active = call i64 @add(ptr %operator, i64 <Operator.active>, i64 1)
  %ready = call ptr @known(i64 <.READY>)
  call void @set(ptr %job, i64 <Job.state>, ptr %ready)
  %outer = call ptr @slot(ptr %state, i64 <ThreadState.job>)
  call void @set(ptr %job, i64 <Job.outer>, ptr %outer)
  call void @set(ptr %state, i64 <ThreadState.job>, ptr %job)
  call void @set(ptr %state, i64 <ThreadState.bouncing>, ptr @True)
  ret ptr %job
no:
  ret ptr null
}

; settles what ran here; whether that was all, else it is for Python to go on
define internal i1 @settled.here(ptr %engine, ptr %state, ptr %job) {
  %quiet = call i1 @quiet(ptr %engine)
  %none.ready = call i1 @empty(ptr %engine, i64 <EngineState._ready>)
  %none.here = call i1 @empty(ptr %state, i64 <ThreadState.backlog>)
  %awaited = call i1 @awaited(ptr %job)
  %unawaited = xor i1 %awaited, true
  %ready = call ptr @known(i64 <.READY>)
  %held = call i1 @is(ptr %job, i64 <Job.state>, ptr %ready)
  %none.sleeps = call i1 @empty(ptr %engine, i64 <EngineState._sleepers>)
  %one = and i1 %none.ready, %none.here
  %two = and i1 %unawaited, %held
  %three = and i1 %one, %two
  %four = and i1 %quiet, %none.sleeps
  %all = and i1 %three, %four
  br i1 %all, label %leave, label %no
leave:
  call void @leave(ptr %engine, ptr %job)
  %sent = call i1 @empty(ptr %engine, i64 <EngineState._ready>)
  br i1 %sent, label %end, label %no
end:
  %outer = call ptr @slot(ptr %job, i64 <Job.outer>)
  call void @set(ptr %state, i64 <ThreadState.job>, ptr %outer)
  call void @set(ptr %state, i64 <ThreadState.bouncing>, ptr @False)
  ret i1 true
no:
  ret i1 false
}

; `_go_on` in Python, with what the function raised or None; again where an interrupt ended it
define internal ptr @go.on(ptr %engine, ptr %state, ptr %job, ptr %raised) {
entry:
  %type.at = alloca ptr
  %value.at = alloca ptr
  %trace.at = alloca ptr
  %go.on = call ptr @known(i64 <.GO_ON>)
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %go.on, ptr %engine, ptr %job, ptr %state, ptr %raised, ptr null)
  %well = icmp ne ptr %answer, null
  br i1 %well, label %done, label %error
error:
  call void @PyErr_Fetch(ptr %type.at, ptr %value.at, ptr %trace.at)
  br label %look
look:
  %k = phi i64 [0, %error], [%k.next, %tried]
  %more = icmp slt i64 %k, <.TRIES>
  %undone = call i1 @is(ptr %state, i64 <ThreadState.bouncing>, ptr @True)
  %once.more = and i1 %more, %undone
  br i1 %once.more, label %again, label %raise
again:
  %given = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %go.on, ptr %engine, ptr %job, ptr %state, ptr %raised, ptr null)
  %interrupted = icmp eq ptr %given, null
  br i1 %interrupted, label %clear, label %went.well
went.well:
  call void @Py_DecRef(ptr %given)
  br label %tried
clear:
  call void @PyErr_Clear()
  br label %tried
tried:
  %k.next = add i64 %k, 1
  br label %look
raise:
  %type = load ptr, ptr %type.at
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret ptr null
done:
  ret ptr %answer
}

; the exception that was just raised, with its traceback, and no longer raised
define internal ptr @caught() {
  %type.at = alloca ptr
  %value.at = alloca ptr
  %trace.at = alloca ptr
  call void @PyErr_Fetch(ptr %type.at, ptr %value.at, ptr %trace.at)
  call void @PyErr_NormalizeException(ptr %type.at, ptr %value.at, ptr %trace.at)
  %type = load ptr, ptr %type.at
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  %none = icmp eq ptr %trace, null
  br i1 %none, label %done, label %keep
keep:
  %r = call i32 @PyException_SetTraceback(ptr %value, ptr %trace)
  br label %done
done:
  call void @drop(ptr %trace)
  call void @Py_DecRef(ptr %type)
  ret ptr %value
}

; calls a job's function and settles it; the answer of `push`
define internal ptr @run.here(ptr %engine, ptr %state, ptr %job) {
  %context = call ptr @slot(ptr %engine, i64 <EngineState._cpu_context>)
  %answer = call ptr @call(ptr %job, ptr %context)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %error, label %settle
settle:
  call void @Py_DecRef(ptr %answer)
  %collects = call i32 @PyGC_Disable()
  %all = call i1 @settled.here(ptr %engine, ptr %state, ptr %job)
  call void @collecting(i32 %collects)
  br i1 %all, label %done, label %python
error:
  %exception = call ptr @caught()
  %failed = call ptr @go.on(ptr %engine, ptr %state, ptr %job, ptr %exception)
  call void @Py_DecRef(ptr %exception)
  ret ptr %failed
python:
  %went.on = call ptr @go.on(ptr %engine, ptr %state, ptr %job, ptr @None)
  ret ptr %went.on
done:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
"""

_PUSH = """
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)

; enters an operator: 1 for the workers; 2 to be run here, which `job.at` and `state.at` get; else 0
define internal i64 @push.entered(ptr %engine, ptr %operator, ptr %job.at, ptr %state.at) {
  %class = call ptr @known(i64 <.OPERATOR>)
  %prepared = call i1 @is(ptr %operator, i64 <type>, ptr %class)
  br i1 %prepared, label %look, label %no
look:
  %live = call i1 @is(ptr %operator, i64 <Operator.deleted>, ptr @False)
  %itself = call i1 @is(ptr %operator, i64 <Operator.anew>, ptr @None)
  %not.brief = call i1 @is(ptr %operator, i64 <Operator.brief>, ptr @False)
  %no.copy = call i1 @is(ptr %operator, i64 <Operator.copy>, ptr @False)
  %one = and i1 %live, %itself
  %two = and i1 %not.brief, %no.copy
  %plain = and i1 %one, %two
  br i1 %plain, label %const.look, label %no
const.look:
  %const = call ptr @slot(ptr %operator, i64 <Operator.const>)
  %const.fit = call i1 @fit(ptr %const, i1 false)
  br i1 %const.fit, label %mutate.look, label %no
mutate.look:
  %mutate = call ptr @slot(ptr %operator, i64 <Operator.mutate>)
  %mutate.fit = call i1 @fit(ptr %mutate, i1 true)
  br i1 %mutate.fit, label %kinds, label %no
kinds:
  %sync = call ptr @known(i64 <.SYNC>)
  %inline = call ptr @known(i64 <.INLINE>)
  %is.sync = call i1 @is(ptr %operator, i64 <Operator.kind>, ptr %sync)
  br i1 %is.sync, label %worker, label %other
worker:
  %entered = call i1 @push.worker(ptr %engine, ptr %operator, ptr %const, ptr %mutate)
  %one.or.none = zext i1 %entered to i64
  ret i64 %one.or.none
other:
  %is.inline = call i1 @is(ptr %operator, i64 <Operator.kind>, ptr %inline)
  br i1 %is.inline, label %here, label %no
here:
  %state = call ptr @idle.state(ptr %engine)
  %busy = icmp eq ptr %state, null
  br i1 %busy, label %no, label %enter
enter:
  %job = call ptr @entered.here(
    ptr %engine, ptr %state, ptr %operator, ptr %const, ptr %mutate)
  %refused = icmp eq ptr %job, null
  br i1 %refused, label %drop, label %run
run:
  store ptr %job, ptr %job.at
  store ptr %state, ptr %state.at
  ret i64 2
drop:
  call void @Py_DecRef(ptr %state)
  ret i64 0
no:
  ret i64 0
}

define ptr @push(ptr %self, ptr %args, i64 %count, ptr %keywords) {
  %job.at = alloca ptr
  %state.at = alloca ptr
  %alone = icmp eq i64 %count, 1
  %no.words = icmp eq ptr %keywords, null
  %simple = and i1 %alone, %no.words
  br i1 %simple, label %try, label %python
try:
  %operator = load ptr, ptr %args
  %collects = call i32 @PyGC_Disable()
  %entered = call i64 @push.entered(ptr %self, ptr %operator, ptr %job.at, ptr %state.at)
  call void @collecting(i32 %collects)
  switch i64 %entered, label %python [i64 1, label %done i64 2, label %run]
run:
  %job = load ptr, ptr %job.at
  %state = load ptr, ptr %state.at
  %ran = call ptr @run.here(ptr %self, ptr %state, ptr %job)
  call void @Py_DecRef(ptr %job)
  call void @Py_DecRef(ptr %state)
  ret ptr %ran
done:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
python:
  %answer = call ptr @python(i64 <.PUSH>, ptr %self, ptr %args, i64 %count, ptr %keywords)
  ret ptr %answer
}
"""

ALL_PUSHES = PUSHES + _WORKER + _INLINE.replace("<.TRIES>", str(_TRIES)) + _PUSH
