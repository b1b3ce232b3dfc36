"""The native text of the stream: a ring of tasks, run in order by the thread that holds the baton.

`@head` counts the tasks that were entered, `@done` those that are over; the ring has those between.
One baton: who takes `@baton` runs the task that is next and gives it back, be it the stream's own
thread or one that waits and helps. None of them touches an object of Python's. A task, in
words:

    0  function, block, address of its int32 status
    3  pairs before, pairs after         of words that are put right before it runs, and after
    5  when it began and ended, in ns    `CLOCK_MONOTONIC`
    7  its status                        not zero: it failed, and the stream halts until `revive`
    8  whether to leave it out
    9  how long it takes, estimated      (see `kernel.GRAIN`)
   10  its number                        `enter` writes it: it is over when `@done` is that
   11  the pairs: address, word

States of the stream's thread: *running* a task; *spinning*, where there is none, for `@spins`
looks; *asleep* in `@asleep`, from where `@wake` brings it. A plain wake often puts a thread on the
waker's own core while another one is halted, and it would begin when the waker sleeps; so where
both had the same core, it is moved to the others first. It is not woken for little: a waiting
thread runs that. Who waits helps, else looks for a moment, else sleeps on `@signal`, counted in
`@waiters`, in slices of 50 ms, so that Python's signal handlers get their turn.

No wake-up is lost: `@asleep` and the baton, `@waiters` and `@done` are written in one order by one
side and read in the other by the other, all of it sequentially consistent. A fork *holds* the
stream: it takes the baton and keeps it.
"""

from __future__ import annotations

import platform
import sys
import time

from gnomon.runtime.execution.stream_threads import THREAD, WAIT

RING = 1024  # tasks that may be pending
WORDS = 11  # of a task, before its pairs
(FUNCTION, BLOCK, STATUS, BEFORE, AFTER, BEGIN, END, CODE, SKIP, WORK, NUMBER) = range(WORDS)

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
_RELAX = {"x86_64": "pause", "aarch64": "isb"}

_GLOBALS = """
@ring = internal global [RING x ptr] zeroinitializer, align 128
@gnomon_stream_head = global i64 0, align 128
@gnomon_stream_done = global i64 0, align 128
@baton = internal global i32 0, align 128
@halted = internal global i32 0, align 128
@held = internal global i32 0
@asleep = internal global i32 0, align 128
@signal = internal global i32 0, align 128
@waiters = internal global i32 0, align 128
@core = internal global i32 -1
@started = internal global i32 0  ; 1: there is a thread; 2: none was to be had
@thread = internal global ptr null
@load = internal global i64 0, align 128  ; the work of what is pending
@gnomon_stream_threshold = global i64 THRESHOLD  ; of such work, from which on the thread is woken
@gnomon_stream_spins = global i32 100

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(ptr, i64, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @syscall(i64, ...)

define internal i64 @now() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %s = load i64, ptr %time
  %ns.at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.at
  %s.ns = mul i64 %s, 1000000000
  %both = add i64 %s.ns, %ns
  ret i64 %both
}

define internal i64 @word(ptr %task, i64 %which) alwaysinline {
  %at = getelementptr i64, ptr %task, i64 %which
  %value = load i64, ptr %at
  ret i64 %value
}

define internal void @set(ptr %task, i64 %which, i64 %value) alwaysinline {
  %at = getelementptr i64, ptr %task, i64 %which
  store i64 %value, ptr %at
  ret void
}
"""

_RUN = """
; puts words where pairs say; gives where the next pairs are
define internal ptr @put(ptr %pairs, i64 %count) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%i.next, %one]
  %at = phi ptr [%pairs, %entry], [%at.next, %one]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %over
one:
  %place = load ptr, ptr %at
  %value = call i64 @word(ptr %at, i64 1)
  store i64 %value, ptr %place
  %i.next = add i64 %i, 1
  %at.next = getelementptr i64, ptr %at, i64 2
  br label %head
over:
  ret ptr %at
}

; runs a task, and tells of its time and status
define internal void @perform(ptr %task) {
  %before = call i64 @word(ptr %task, i64 3)
  %after = call i64 @word(ptr %task, i64 4)
  %pairs = getelementptr i64, ptr %task, i64 11
  %rest = call ptr @put(ptr %pairs, i64 %before)
  %f = load ptr, ptr %task
  %block.word = call i64 @word(ptr %task, i64 1)
  %block = inttoptr i64 %block.word to ptr
  %begin = call i64 @now()
  call void %f(ptr %block)
  %end = call i64 @now()
  call void @set(ptr %task, i64 5, i64 %begin)
  call void @set(ptr %task, i64 6, i64 %end)
  %status.word = call i64 @word(ptr %task, i64 2)
  %status.at = inttoptr i64 %status.word to ptr
  %status = load i32, ptr %status.at
  %code = sext i32 %status to i64
  call void @set(ptr %task, i64 7, i64 %code)
  %end.pairs = call ptr @put(ptr %rest, i64 %after)
  %well = icmp eq i32 %status, 0
  br i1 %well, label %out, label %halt
halt:
  store atomic i32 1, ptr @halted seq_cst, align 4
  br label %out
out:
  ret void
}

; the task that is next, of those that may run; null for none
define internal ptr @next() {
  %done = load atomic i64, ptr @gnomon_stream_done seq_cst, align 8
  %head = load atomic i64, ptr @gnomon_stream_head seq_cst, align 8
  %some = icmp ult i64 %done, %head
  %halted = load atomic i32, ptr @halted seq_cst, align 4
  %held = load atomic i32, ptr @held seq_cst, align 4
  %stopped = or i32 %halted, %held
  %goes = icmp eq i32 %stopped, 0
  %may = and i1 %some, %goes
  br i1 %may, label %find, label %none
find:
  %place = urem i64 %done, RING
  %at = getelementptr ptr, ptr @ring, i64 %place
  %task = load ptr, ptr %at
  ret ptr %task
none:
  ret ptr null
}

; whether a task may run which is not running
define internal i1 @waits() {
  %baton = load atomic i32, ptr @baton seq_cst, align 4
  %free = icmp eq i32 %baton, 0
  br i1 %free, label %look, label %no
look:
  %task = call ptr @next()
  %some = icmp ne ptr %task, null
  ret i1 %some
no:
  ret i1 false
}

; runs the next task, if none is running and it takes no longer than `most`; whether it did
define internal i1 @run(i64 %most) {
  %baton = load atomic i32, ptr @baton monotonic, align 4
  %free = icmp eq i32 %baton, 0
  br i1 %free, label %take, label %no
take:
  %swap = cmpxchg ptr @baton, i32 0, i32 1 seq_cst seq_cst, align 4
  %mine = extractvalue {i32, i1} %swap, 1
  br i1 %mine, label %look, label %no
look:
  %task = call ptr @next()
  %none = icmp eq ptr %task, null
  br i1 %none, label %leave, label %weigh
weigh:
  %work = call i64 @word(ptr %task, i64 9)
  %long = icmp sgt i64 %work, %most
  br i1 %long, label %leave, label %skip
leave:
  store atomic i32 0, ptr @baton seq_cst, align 4
  br label %no
skip:
  %left.out = call i64 @word(ptr %task, i64 8)
  %wanted = icmp eq i64 %left.out, 0
  br i1 %wanted, label %perform, label %count
perform:
  call void @perform(ptr %task)
  br label %count
count:
  %before = atomicrmw sub ptr @load, i64 %work seq_cst, align 8
  %number = atomicrmw add ptr @gnomon_stream_done, i64 1 seq_cst, align 8
  store atomic i32 0, ptr @baton seq_cst, align 4
  %waiters = load atomic i32, ptr @waiters seq_cst, align 4
  %any = icmp ne i32 %waiters, 0
  br i1 %any, label %tell, label %yes
tell:
  %r = atomicrmw add ptr @signal, i32 1 seq_cst, align 4
  call void @rouse(ptr @signal, i32 2147483647)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_ENTER = """
@None = external global i64
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_NoMemory()
declare void @Py_IncRef(ptr)

; enter(address): a task comes after all others; None. Python's lock is held.
define ptr @gnomon_stream_enter(ptr %self, ptr %args, i64 %count) {
  %given = load ptr, ptr %args
  %address = call i64 @PyLong_AsLongLong(ptr %given)
  %task = inttoptr i64 %address to ptr
  %head = load atomic i64, ptr @gnomon_stream_head seq_cst, align 8
  %done = load atomic i64, ptr @gnomon_stream_done seq_cst, align 8
  %pending = sub i64 %head, %done
  %room = icmp ult i64 %pending, RING
  br i1 %room, label %put, label %full
full:
  %none = call ptr @PyErr_NoMemory()
  ret ptr %none
put:
  %place = urem i64 %head, RING
  %at = getelementptr ptr, ptr @ring, i64 %place
  store ptr %task, ptr %at
  %number = add i64 %head, 1
  call void @set(ptr %task, i64 10, i64 %number)
  %work = call i64 @word(ptr %task, i64 9)
  %before = atomicrmw add ptr @load, i64 %work seq_cst, align 8
  store atomic i64 %number, ptr @gnomon_stream_head seq_cst, align 8
  call void @start()
  %all = add i64 %before, %work
  %threshold = load i64, ptr @gnomon_stream_threshold
  %enough = icmp sge i64 %all, %threshold
  br i1 %enough, label %wake, label %out
wake:
  call void @wake()
  br label %out
out:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
"""


def text(threshold: int) -> str | None:
    """The text for this machine; None where threads cannot sleep on a word.

    The thread is woken when so much work is pending.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _FUTEX:
        return None
    relax = _RELAX.get(machine)
    words = {
        "RING": RING,
        "CLOCK": time.CLOCK_MONOTONIC,
        "THRESHOLD": threshold,
        "FUTEX": _FUTEX[machine],
        "RELAX": f'call void asm sideeffect "{relax}", ""()' if relax else "",
    }
    made = _GLOBALS + _RUN + THREAD + _ENTER + WAIT
    for word, by in words.items():
        made = made.replace(word, str(by))
    return made
