"""Native code that enters functions in the engine's state and removes them, for other files.

A push in Python takes the engine's lock and some hundred instructions, longer than a short function
runs. The same in native code needs no lock: Python's own is held all the while, so it is enough
that no other thread is in the midst of an entry, that is, that the engine's lock is free. A thread
that finds it taken, or anything but the usual, changes nothing and leaves all to Python. The
collector is off meanwhile, since it may run any code; for the same reason, what is let go of is
dropped when the books are right again. No signal's handler runs in between either.

The statements are those of `bookkeeping.py`, `job.py`, `var.py` and `work_queue.py`, in the same
order. Slots are read and written where they lie (see `entry.py`); only functions are called that
Python exports for everybody. The record, in words:

    0  the classes of jobs, variables, operators
    3  the class `deque`, the set that stands for no readers, the empty tuple
    6  the numbers 0 to 3: a job's state, or SYNC and INLINE; and 0 is the usual priority
   10  the names `append`, `release`, `co_filename`, `state`
   14  where gnomon lies, as the beginning of its files' names
   15  the classes `tuple` and `list`
   17  `push_sync`, `push` and `_go_on` in Python
   20  the class of engines: those of a class made of it may do things their own way
   21  `refuse`, and the classes of what it refuses
   25  the names of the parameters of `push_sync`
"""

from __future__ import annotations

from gnomon.engine.fast_path_code import FREE, KNOWN, SLOTS

JOB, VAR, OPERATOR, DEQUE, NO_JOBS, NOTHING, ZERO = range(7)
APPEND, RELEASE, FILENAME, STATE, PACKAGE, TUPLE, LIST = range(10, 17)
PUSH_SYNC, PUSH, GO_ON, KIND, REFUSE = range(17, 22)
UNBEGUN, PARAMETERS = 22, 25
NEW, WAITING, READY, DONE = range(ZERO, ZERO + 4)  # words that hold these states
SYNC, INLINE = ZERO, ZERO + 1

_DECLARED = """
@True = external global i64
@False = external global i64
@None = external global i64
declare i32 @PyCallable_Check(ptr)
declare void @PyErr_Clear()
declare ptr @PyEval_GetFrame()
declare ptr @PyFrame_GetCode(ptr)
declare i32 @PyFrame_GetLasti(ptr)
declare i32 @PyGC_Disable()
declare i32 @PyGC_Enable()
declare ptr @PyList_AsTuple(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare void @PyMem_Free(ptr)
declare ptr @PyMem_Malloc(i64)
declare ptr @PyErr_NoMemory()
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyObject_CallMethodObjArgs(ptr, ptr, ...)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i64 @PyObject_Size(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @PySequence_DelItem(ptr, i64)
declare ptr @PySequence_GetItem(ptr, i64)
declare i32 @PySet_Add(ptr, ptr)
declare i32 @PySet_Discard(ptr, ptr)
declare ptr @PySet_New(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_Pack(i64, ...)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare i64 @PyUnicode_Tailmatch(ptr, ptr, i64, i64, i32)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
"""

_OBJECTS = """
; whether what a slot holds has no elements
define internal i1 @empty(ptr %x, i64 %offset) {
  %value = call ptr @slot(ptr %x, i64 %offset)
  %size = call i64 @PyObject_Size(ptr %value)
  %sizeless = icmp slt i64 %size, 0
  br i1 %sizeless, label %error, label %sized
error:
  call void @PyErr_Clear()
  ret i1 false
sized:
  %none = icmp eq i64 %size, 0
  ret i1 %none
}

; whether a slot is unused: None, or what has no elements
define internal i1 @is_unused(ptr %x, i64 %offset) {
  %value = call ptr @slot(ptr %x, i64 %offset)
  %no.one = call i1 @vacant(ptr %value)
  ret i1 %no.one
}

; adds to the number in a slot; what it is then
define internal i64 @add(ptr %x, i64 %offset, i64 %more) {
  %old = call ptr @slot(ptr %x, i64 %offset)
  %value = call i64 @PyLong_AsLongLong(ptr %old)
  %sum = add i64 %value, %more
  %new = call ptr @PyLong_FromLongLong(i64 %sum)
  call void @set(ptr %x, i64 %offset, ptr %new)
  call void @Py_DecRef(ptr %new)
  ret i64 %sum
}

; calls a method in C, of no more than one argument, whose answer is of no interest
define internal void @told(ptr %object, ptr %name, ptr %argument) {
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallMethodObjArgs(
    ptr %object, ptr %name, ptr %argument, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %error, label %well
error:
  call void @PyErr_Clear()
  ret void
well:
  call void @Py_DecRef(ptr %answer)
  ret void
}

define internal void @append(ptr %x, i64 %offset, ptr %new) {
  %list = call ptr @slot(ptr %x, i64 %offset)
  %name = call ptr @known(i64 <.APPEND>)
  call void @told(ptr %list, ptr %name, ptr %new)
  ret void
}

; the first of a deque, taken out of it
define internal ptr @first(ptr %deque) {
  %first = call ptr @PySequence_GetItem(ptr %deque, i64 0)
  %cut = call i32 @PySequence_DelItem(ptr %deque, i64 0)
  ret ptr %first
}

; turns the collector on again where it was on
define internal void @collecting(i32 %before) {
  %on = icmp ne i32 %before, 0
  br i1 %on, label %enable, label %done
enable:
  %r = call i32 @PyGC_Enable()
  br label %done
done:
  ret void
}

; whether no thread is in the midst of an entry
define internal i1 @unlocked(ptr %engine) {
  %lock = call ptr @slot(ptr %engine, i64 <EngineState._lock>)
  %unmade = icmp eq ptr %lock, null
  br i1 %unmade, label %no, label %look
look:
  %at = getelementptr i8, ptr %lock, i64 <lock.owner>
  %owner = load i64, ptr %at
  %free = icmp eq i64 %owner, 0
  ret i1 %free
no:
  ret i1 false
}
"""

_ADMIT = """
define internal void @reads(ptr %var, ptr %job) {
  %no.one = call ptr @known(i64 <.NO_JOBS>)
  %readers = call ptr @slot(ptr %var, i64 <Var.readers>)
  %first = icmp eq ptr %readers, %no.one
  br i1 %first, label %new, label %more
new:
  %made = call ptr @PySet_New(ptr null)
  %r0 = call i32 @PySet_Add(ptr %made, ptr %job)
  call void @set(ptr %var, i64 <Var.readers>, ptr %made)
  call void @Py_DecRef(ptr %made)
  ret void
more:
  %r1 = call i32 @PySet_Add(ptr %readers, ptr %job)
  ret void
}

define internal void @enqueue(ptr %var, ptr %entry) {
  %none = call i1 @is(ptr %var, i64 <Var.queue>, ptr @None)
  br i1 %none, label %new, label %there
new:
  %class = call ptr @known(i64 <.DEQUE>)
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %class, ptr null)
  call void @set(ptr %var, i64 <Var.queue>, ptr %made)
  call void @Py_DecRef(ptr %made)
  br label %there
there:
  call void @append(ptr %var, i64 <Var.queue>, ptr %entry)
  ret void
}

; enters a job as a reader; 1 where it has to queue
define internal i64 @admit.reader(ptr %var, ptr %job) {
  %alone = call i1 @is_unused(ptr %var, i64 <Var.queue>)
  %unwritten = call i1 @is(ptr %var, i64 <Var.writer>, ptr @None)
  %enters = and i1 %alone, %unwritten
  br i1 %enters, label %enter, label %wait
enter:
  call void @reads(ptr %var, ptr %job)
  ret i64 0
wait:
  %entry = call ptr (i64, ...) @PyTuple_Pack(i64 1, ptr %job)
  call void @enqueue(ptr %var, ptr %entry)
  call void @Py_DecRef(ptr %entry)
  ret i64 1
}

; enters a job as a writer; 1 where it has to queue
define internal i64 @admit.writer(ptr %var, ptr %job) {
  %alone = call i1 @is_unused(ptr %var, i64 <Var.queue>)
  %unwritten = call i1 @is(ptr %var, i64 <Var.writer>, ptr @None)
  %unread = call i1 @is_unused(ptr %var, i64 <Var.readers>)
  %untouched = and i1 %unwritten, %unread
  %enters = and i1 %alone, %untouched
  br i1 %enters, label %enter, label %wait
enter:
  call void @set(ptr %var, i64 <Var.writer>, ptr %job)
  ret i64 0
wait:
  call void @enqueue(ptr %var, ptr %job)
  ret i64 1
}

; `Bookkeeping._admit`
define internal i1 @admit(ptr %engine, ptr %job) {
entry:
  %waiting = call ptr @known(i64 <.WAITING>)
  call void @set(ptr %job, i64 <Job.state>, ptr %waiting)
  %pending = call i64 @add(ptr %engine, i64 <EngineState._pending>, i64 1)
  %const = call ptr @slot(ptr %job, i64 <Job.const>)
  %mutate = call ptr @slot(ptr %job, i64 <Job.mutate>)
  %n = call i64 @PyTuple_Size(ptr %const)
  %m = call i64 @PyTuple_Size(ptr %mutate)
  br label %readers
readers:
  %i = phi i64 [0, %entry], [%i.next, %reader]
  %b = phi i64 [0, %entry], [%b.next, %reader]
  %i.more = icmp slt i64 %i, %n
  br i1 %i.more, label %reader, label %writers
reader:
  %x = call ptr @PyTuple_GetItem(ptr %const, i64 %i)
  %x.waits = call i64 @admit.reader(ptr %x, ptr %job)
  %b.next = add i64 %b, %x.waits
  %i.next = add i64 %i, 1
  br label %readers
writers:
  %j = phi i64 [0, %readers], [%j.next, %writer]
  %c = phi i64 [%b, %readers], [%c.next, %writer]
  %j.more = icmp slt i64 %j, %m
  br i1 %j.more, label %writer, label %counted
writer:
  %y = call ptr @PyTuple_GetItem(ptr %mutate, i64 %j)
  %y.waits = call i64 @admit.writer(ptr %y, ptr %job)
  %c.next = add i64 %c, %y.waits
  %j.next = add i64 %j, 1
  br label %writers
counted:
  %number = call ptr @PyLong_FromLongLong(i64 %c)
  call void @set(ptr %job, i64 <Job.blockers>, ptr %number)
  call void @Py_DecRef(ptr %number)
  %all = icmp eq i64 %c, 0
  ret i1 %all
}

; `WorkQueue.wake`, where it is known that there is work
define internal void @wake(ptr %work_queue) {
  %no.one = call i1 @empty(ptr %work_queue, i64 <WorkQueue.idle>)
  %still = call i1 @is(ptr %work_queue, i64 <WorkQueue.waking>, ptr @False)
  %asleep = xor i1 %no.one, true
  %wake = and i1 %asleep, %still
  br i1 %wake, label %one, label %done
one:
  call void @set(ptr %work_queue, i64 <WorkQueue.waking>, ptr @True)
  %idle = call ptr @slot(ptr %work_queue, i64 <WorkQueue.idle>)
  %n = call i64 @PyList_Size(ptr %idle)
  %last = sub i64 %n, 1
  %gate = call ptr @PyList_GetItem(ptr %idle, i64 %last)
  %release = call ptr @known(i64 <.RELEASE>)
  call void @told(ptr %gate, ptr %release, ptr null)
  br label %done
done:
  ret void
}

; `WorkQueue.put` of an ordinary job
define internal void @put.by(ptr %work_queue, ptr %job) {
  %ready = call ptr @known(i64 <.READY>)
  call void @set(ptr %job, i64 <Job.state>, ptr %ready)
  call void @append(ptr %work_queue, i64 <WorkQueue.normal>, ptr %job)
  call void @wake(ptr %work_queue)
  ret void
}
"""

_LEAVE = """
; sends a job that nothing blocks any more to its work_queue, or leaves it to Python to be sent
define internal void @freed(ptr %engine, ptr %job) {
  %sync = call ptr @known(i64 <.SYNC>)
  %zero = call ptr @known(i64 <.ZERO>)
  %waiting = call ptr @known(i64 <.WAITING>)
  %kind = call i1 @is(ptr %job, i64 <Job.kind>, ptr %sync)
  %priority = call i1 @is(ptr %job, i64 <Job.priority>, ptr %zero)
  %ctx = call i1 @is(ptr %job, i64 <Job.ctx>, ptr @None)
  %copy = call i1 @is(ptr %job, i64 <Job.copy>, ptr @False)
  %state = call i1 @is(ptr %job, i64 <Job.state>, ptr %waiting)
  %work_queue = call ptr @slot(ptr %engine, i64 <EngineState._work_queue>)
  %open = icmp ne ptr %work_queue, @None
  %first = call i1 @empty(ptr %engine, i64 <EngineState._ready>)  ; no job is overtaken
  %one = and i1 %kind, %priority
  %two = and i1 %ctx, %copy
  %three = and i1 %state, %open
  %four = and i1 %one, %two
  %five = and i1 %three, %first
  %plain = and i1 %four, %five
  br i1 %plain, label %work_queue.put, label %python
work_queue.put:
  call void @put.by(ptr %work_queue, ptr %job)
  ret void
python:
  call void @append(ptr %engine, i64 <EngineState._ready>, ptr %job)
  ret void
}

; `Var.promote`
define internal void @promote(ptr %engine, ptr %var) {
entry:
  %tuple = call ptr @known(i64 <.TUPLE>)
  br label %head
head:
  %no.one = call i1 @is_unused(ptr %var, i64 <Var.queue>)
  %unwritten = call i1 @is(ptr %var, i64 <Var.writer>, ptr @None)
  %some.one = xor i1 %no.one, true
  %more = and i1 %some.one, %unwritten
  br i1 %more, label %next, label %done
next:
  %queue = call ptr @slot(ptr %var, i64 <Var.queue>)
  %waits = call ptr @PySequence_GetItem(ptr %queue, i64 0)
  %reader = call i1 @is(ptr %waits, i64 <type>, ptr %tuple)
  br i1 %reader, label %read, label %write
read:
  %reads = call ptr @PyTuple_GetItem(ptr %waits, i64 0)
  call void @reads(ptr %var, ptr %reads)
  br label %entered
write:
  %unread = call i1 @is_unused(ptr %var, i64 <Var.readers>)
  br i1 %unread, label %writes, label %not.yet
not.yet:
  call void @Py_DecRef(ptr %waits)
  ret void
writes:
  call void @set(ptr %var, i64 <Var.writer>, ptr %waits)
  br label %entered
entered:
  %job = phi ptr [%reads, %read], [%waits, %writes]
  %cut = call i32 @PySequence_DelItem(ptr %queue, i64 0)
  %blockers = call i64 @add(ptr %job, i64 <Job.blockers>, i64 -1)
  %holds.all = icmp eq i64 %blockers, 0
  br i1 %holds.all, label %ready, label %again
ready:
  call void @freed(ptr %engine, ptr %job)
  br label %again
again:
  call void @Py_DecRef(ptr %waits)
  br label %head
done:
  ret void
}

define internal void @leave.reader(ptr %engine, ptr %var, ptr %job) {
  %none = call ptr @known(i64 <.NO_JOBS>)
  %readers = call ptr @slot(ptr %var, i64 <Var.readers>)
  %never = icmp eq ptr %readers, %none
  br i1 %never, label %queue, label %discard
discard:
  %r = call i32 @PySet_Discard(ptr %readers, ptr %job)
  br label %queue
queue:
  %unread = call i1 @is_unused(ptr %var, i64 <Var.readers>)
  br i1 %unread, label %open, label %done
open:
  call void @promote(ptr %engine, ptr %var)
  br label %done
done:
  ret void
}

define internal void @leave.writer(ptr %engine, ptr %var, ptr %job) {
  %holds = call i1 @is(ptr %var, i64 <Var.writer>, ptr %job)
  br i1 %holds, label %version, label %open
version:
  %v = call i64 @add(ptr %var, i64 <Var.version>, i64 1)
  call void @set(ptr %var, i64 <Var.writer>, ptr @None)
  br label %open
open:
  call void @promote(ptr %engine, ptr %var)
  ret void
}

; `Bookkeeping._leave`, of a job that is not done, whose operator is not waited for
define internal void @leave(ptr %engine, ptr %job) {
entry:
  %const = call ptr @slot(ptr %job, i64 <Job.const>)
  %mutate = call ptr @slot(ptr %job, i64 <Job.mutate>)
  %n = call i64 @PyTuple_Size(ptr %const)
  %m = call i64 @PyTuple_Size(ptr %mutate)
  br label %readers
readers:
  %i = phi i64 [0, %entry], [%i.next, %reader]
  %i.more = icmp slt i64 %i, %n
  br i1 %i.more, label %reader, label %writers
reader:
  %x = call ptr @PyTuple_GetItem(ptr %const, i64 %i)
  call void @leave.reader(ptr %engine, ptr %x, ptr %job)
  %i.next = add i64 %i, 1
  br label %readers
writers:
  %j = phi i64 [0, %readers], [%j.next, %writer]
  %j.more = icmp slt i64 %j, %m
  br i1 %j.more, label %writer, label %count
writer:
  %y = call ptr @PyTuple_GetItem(ptr %mutate, i64 %j)
  call void @leave.writer(ptr %engine, ptr %y, ptr %job)
  %j.next = add i64 %j, 1
  br label %writers
count:
  %state = call ptr @known(i64 <.DONE>)
  call void @set(ptr %job, i64 <Job.state>, ptr %state)
  %pending = call i64 @add(ptr %engine, i64 <EngineState._pending>, i64 -1)
  %settled = call i64 @add(ptr %engine, i64 <EngineState._settled>, i64 1)
  %operator = call ptr @slot(ptr %job, i64 <Job.operator>)
  %none = icmp eq ptr %operator, @None
  br i1 %none, label %done, label %push
push:
  %active = call i64 @add(ptr %operator, i64 <Operator.active>, i64 -1)
  br label %done
done:
  ret void
}

; whether a thread waits for the end of a job's operator
define internal i1 @awaited(ptr %job) {
  %operator = call ptr @slot(ptr %job, i64 <Job.operator>)
  %none = icmp eq ptr %operator, @None
  br i1 %none, label %no, label %look
look:
  %no.one = call i1 @empty(ptr %operator, i64 <Operator.gates>)
  %some.one = xor i1 %no.one, true
  ret i1 %some.one
no:
  ret i1 false
}
"""

_CALL = """
; calls a job's function; its answer, a new reference, or null for what it raises or should have
define internal ptr @call(ptr %job, ptr %context) {
entry:
  %function = call ptr @slot(ptr %job, i64 <Job.fn>)
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %function, ptr %context, ptr null)
  %raised = icmp eq ptr %answer, null
  %nothing = icmp eq ptr %answer, @None
  %usual = or i1 %raised, %nothing
  br i1 %usual, label %done, label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %look]
  %more = icmp slt i64 %i, 3
  br i1 %more, label %look, label %done
look:
  %word = add i64 %i, <.UNBEGUN>
  %class = call ptr @known(i64 %word)
  %unbegun = call i1 @is(ptr %answer, i64 <type>, ptr %class)
  %i.next = add i64 %i, 1
  br i1 %unbegun, label %no, label %head
no:
  %refuse = call ptr @known(i64 <.REFUSE>)
  %refused = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %refuse, ptr %answer, ptr null)
  call void @Py_DecRef(ptr %answer)
  ret ptr %refused
done:
  ret ptr %answer
}
"""

COMMON = _DECLARED + FREE + SLOTS + KNOWN + _OBJECTS + _ADMIT + _LEAVE + _CALL
