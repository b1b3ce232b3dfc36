"""Native code for a worker's turns: settle what it ran, take what is next, run it.

`work(engine, work_queue, state)` does so as long as all is usual: functions without a device of
their own, no failure on what they read or write, no thread in the midst of an entry, something else
pending. What it ran and did not settle is `state.done`. It answers a job that it took and leaves to
Python to run, which is `state.done` too; None where Python is to look after the engine's state;
True where it only gives other threads a chance. What a function raises, it raises; `state.job` is
that function's.

A job holds its variables while it runs, so no other job puts a failure on one, or heals it: one
look before is enough.
"""

from __future__ import annotations

from gnomon.engine.state_code import COMMON

_TURNS = 64  # functions in C do not give other threads a chance

WORK = (
    COMMON
    + """
; whether all is usual
define internal i1 @calm(ptr %engine, ptr %work_queue) {
  %unlocked = call i1 @unlocked(ptr %engine)
  br i1 %unlocked, label %books, label %no
books:
  %unobserved = call i1 @is(ptr %engine, i64 <EngineState._observer>, ptr @None)
  %manned = call i1 @empty(ptr %engine, i64 <EngineState._hiring>)
  %nothing.late = call i1 @empty(ptr %engine, i64 <EngineState._deferred>)
  %sent = call i1 @empty(ptr %engine, i64 <EngineState._ready>)
  %one = and i1 %unobserved, %sent
  %two = and i1 %manned, %nothing.late
  %fine = and i1 %one, %two
  br i1 %fine, label %ours, label %no
ours:
  %own = call i1 @is(ptr %work_queue, i64 <WorkQueue.orphaned>, ptr @False)
  %open = call i1 @is(ptr %work_queue, i64 <WorkQueue.closed>, ptr @False)
  %no.urgent = call i1 @empty(ptr %work_queue, i64 <WorkQueue.urgent>)
  %no.short = call i1 @empty(ptr %work_queue, i64 <WorkQueue.short>)
  %four = and i1 %own, %open
  %five = and i1 %no.urgent, %no.short
  %all = and i1 %four, %five
  ret i1 %all
no:
  ret i1 false
}

; whether no failure lies on any of the variables
define internal i1 @well(ptr %vars) {
entry:
  %n = call i64 @PyTuple_Size(ptr %vars)
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %yes
one:
  %var = call ptr @PyTuple_GetItem(ptr %vars, i64 %i)
  %none = call i1 @is(ptr %var, i64 <Var.failure>, ptr @None)
  %i.next = add i64 %i, 1
  br i1 %none, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; settles what ran last, which goes to `left`, to be dropped; whether Python has nothing to do now
define internal i1 @settle(ptr %engine, ptr %work_queue, ptr %state, ptr %left) {
  store ptr null, ptr %left
  %calm = call i1 @calm(ptr %engine, ptr %work_queue)
  br i1 %calm, label %look, label %no
look:
  %done = call ptr @slot(ptr %state, i64 <ThreadState.done>)
  %nothing = icmp eq ptr %done, @None
  br i1 %nothing, label %yes, label %count
count:
  %pending.now = call ptr @slot(ptr %engine, i64 <EngineState._pending>)
  %pending = call i64 @PyLong_AsLongLong(ptr %pending.now)
  %others = icmp sgt i64 %pending, 1
  %awaited = call i1 @awaited(ptr %done)
  %unawaited = xor i1 %awaited, true
  %ready = call ptr @known(i64 <.READY>)
  %held = call i1 @is(ptr %done, i64 <Job.state>, ptr %ready)
  %still = and i1 %unawaited, %held
  %none.waits = and i1 %others, %still
  br i1 %none.waits, label %leave, label %no
leave:
  call void @Py_IncRef(ptr %done)
  store ptr %done, ptr %left
  call void @set(ptr %state, i64 <ThreadState.done>, ptr @None)
  call void @leave(ptr %engine, ptr %done)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; takes the next, or null
define internal ptr @take(ptr %engine, ptr %work_queue) {
  %calm = call i1 @calm(ptr %engine, ptr %work_queue)
  br i1 %calm, label %look, label %none
look:
  %normal = call ptr @slot(ptr %work_queue, i64 <WorkQueue.normal>)
  %n = call i64 @PyObject_Size(ptr %normal)
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %one, label %none
one:
  %job = call ptr @first(ptr %normal)
  %more = icmp sgt i64 %n, 1
  br i1 %more, label %others.too, label %taken
others.too:
  call void @wake(ptr %work_queue)
  br label %taken
taken:
  ret ptr %job
none:
  ret ptr null
}

define ptr @work(ptr %self, ptr %args, i64 %count) {
entry:
  %left.at = alloca ptr
  %engine = load ptr, ptr %args
  %work_queue.at = getelementptr ptr, ptr %args, i64 1
  %work_queue = load ptr, ptr %work_queue.at
  %state.at = getelementptr ptr, ptr %args, i64 2
  %state = load ptr, ptr %state.at
  %sync = call ptr @known(i64 <.SYNC>)
  %context = call ptr @slot(ptr %engine, i64 <EngineState._cpu_context>)
  br label %again

again:
  %k = phi i64 [0, %entry], [%k.next, %ran]
  %settles = call i32 @PyGC_Disable()
  %settled = call i1 @settle(ptr %engine, ptr %work_queue, ptr %state, ptr %left.at)
  call void @collecting(i32 %settles)
  %left = load ptr, ptr %left.at
  call void @drop(ptr %left)  ; its finalisers may wait: nothing is in hand
  br i1 %settled, label %next, label %python
next:
  %takes = call i32 @PyGC_Disable()
  %job = call ptr @take(ptr %engine, ptr %work_queue)
  call void @collecting(i32 %takes)
  %none = icmp eq ptr %job, null
  br i1 %none, label %python, label %look
look:
  %plain = call i1 @is(ptr %job, i64 <Job.kind>, ptr %sync)
  %here = call i1 @is(ptr %job, i64 <Job.ctx>, ptr @None)
  %unobserved = call i1 @is(ptr %engine, i64 <EngineState._observer>, ptr @None)
  %const = call ptr @slot(ptr %job, i64 <Job.const>)
  %mutate = call ptr @slot(ptr %job, i64 <Job.mutate>)
  %const.well = call i1 @well(ptr %const)
  %mutate.well = call i1 @well(ptr %mutate)
  %one = and i1 %plain, %here
  %two = and i1 %const.well, %mutate.well
  %three = and i1 %one, %two
  %ours = and i1 %three, %unobserved
  br i1 %ours, label %run, label %theirs
run:
  call void @set(ptr %job, i64 <Job.outer>, ptr @None)
  call void @set(ptr %state, i64 <ThreadState.job>, ptr %job)
  %answer = call ptr @call(ptr %job, ptr %context)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %error, label %ran
ran:
  call void @set(ptr %state, i64 <ThreadState.done>, ptr %job)
  call void @set(ptr %state, i64 <ThreadState.job>, ptr @None)
  call void @Py_DecRef(ptr %job)
  call void @Py_DecRef(ptr %answer)
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, <.TURNS>
  br i1 %more, label %again, label %chance

theirs:
  call void @set(ptr %state, i64 <ThreadState.done>, ptr %job)
  ret ptr %job
error:
  call void @Py_DecRef(ptr %job)
  ret ptr null
chance:
  call void @Py_IncRef(ptr @True)
  ret ptr @True
python:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
""".replace("<.TURNS>", str(_TURNS))
)
