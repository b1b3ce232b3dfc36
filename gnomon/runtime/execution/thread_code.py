"""The native text of the thread pool: one entry, and two ways to share a job behind it.

`gnomon_parallel(fn, block, tasks)` calls `fn(block, task, tasks)` for every task. One job at a time
has the pool: `@busy` is taken by compare-and-swap, and a thread that finds it taken (another
thread, or a task that calls again) does its tasks in sequence itself, which cannot hang. So does
everybody when `@gnomon_threads`, the number of threads, is 1.

OWN shares the job among threads of its own. `@ticket` holds the job's number (high half), the
first task that is not claimed yet and how many there are from it on (16 bits each). The caller
claims the first, workers claim the last: in a job done again, each meets the memory that its core
has in its cache. To claim is to compare-and-swap the whole word,
so a thread that comes late never takes a task of another job; and the job's fields, read after a
claim, are stable, because the job cannot end before that task has. `@pending` counts the tasks that
are not finished. The caller claims as well: a worker that wakes up late, or never, costs nothing.

States of a worker: *draining* (claims and runs tasks), *spinning* (`@gnomon_spins` looks at the
ticket), *yielding* (looks for `@gnomon_patience` ns, offering its core to others), *asleep* until
the job's number changes, counted in `@sleepers`, or *surplus* (its number is not below
`@gnomon_threads`), asleep until that changes. The caller waits for `@pending` in the same way, and
says so in `@waiting`. Both sides of each pair (ticket, sleepers) and (pending, waiting) are
sequentially consistent and `@sleep` compares once more before it sleeps: no wake-up is lost. FUTEX
gives `@sleep` and `@rouse` by Linux's futex, CONDITION by one POSIX condition.

LIBGOMP hands the job to `GOMP_parallel`: thread t of n takes the tasks t, t+n, t+2n...
"""

from __future__ import annotations

import platform
import sys
import time

PATIENCE = 250_000  # ns: outlasts what Python does between two steps of a small network

ENTRY = """
@gnomon_threads = global i32 1, align 128
@busy = internal global i32 0, align 128

define internal void @serial(ptr %f, ptr %block, i64 %tasks) {
  br label %head
head:
  %i = phi i64 [0, %0], [%next, %body]
  %more = icmp slt i64 %i, %tasks
  br i1 %more, label %body, label %done
body:
  call void %f(ptr %block, i64 %i, i64 %tasks)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define void @gnomon_parallel(ptr %f, ptr %block, i64 %tasks) {
  %threads = load atomic i32, ptr @gnomon_threads monotonic, align 4
  %many = icmp sgt i32 %threads, 1
  %several = icmp sgt i64 %tasks, 1
  %countable = icmp slt i64 %tasks, 65536
  %a = and i1 %many, %several
  %b = and i1 %a, %countable
  br i1 %b, label %try, label %alone
try:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue {i32, i1} %swap, 1
  br i1 %mine, label %share, label %alone
alone:
  call void @serial(ptr %f, ptr %block, i64 %tasks)
  ret void
share:
  call void @share(ptr %f, ptr %block, i64 %tasks, i32 %threads)
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

define void @gnomon_spread(ptr %job) {
  %f = load ptr, ptr %job
  %block.at = getelementptr ptr, ptr %job, i64 1
  %block = load ptr, ptr %block.at
  %tasks.at = getelementptr ptr, ptr %job, i64 2
  %tasks = load i64, ptr %tasks.at
  call void @gnomon_parallel(ptr %f, ptr %block, i64 %tasks)
  ret void
}
"""

OWN = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)

@gnomon_spins = global i32 1000, align 4
@gnomon_patience = global i64 PATIENCE, align 8
@ticket = internal global i64 0, align 128
@pending = internal global i32 0, align 128
@function = internal global ptr null, align 128
@block = internal global ptr null
@tasks = internal global i32 0
@workers = internal global i32 0
@sleepers = internal global i32 0, align 128
@waiting = internal global i32 0

define void @gnomon_relax(ptr %count) noinline {
  %times = ptrtoint ptr %count to i32
  br label %head
head:
  %k = phi i32 [0, %0], [%next, %body]
  %more = icmp slt i32 %k, %times
  br i1 %more, label %body, label %done
body:
  RELAX
  %next = add i32 %k, 1
  br label %head
done:
  ret void
}

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

define internal i1 @give_way(i64 %begin) {
  %r = call i32 @sched_yield()
  %now = call i64 @now()
  %passed = sub i64 %now, %begin
  %patience = load i64, ptr @gnomon_patience
  %patient = icmp slt i64 %passed, %patience
  ret i1 %patient
}

define internal void @drain(i1 %forwards) {
  br label %look
look:
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %left = and i64 %ticket, 65535
  %some = icmp ne i64 %left, 0
  br i1 %some, label %claim, label %out
claim:
  %change = select i1 %forwards, i64 65535, i64 -1  ; one less, and one further in front
  %less = add i64 %ticket, %change
  %swap = cmpxchg ptr @ticket, i64 %ticket, i64 %less acq_rel acquire, align 8
  %mine = extractvalue {i64, i1} %swap, 1
  br i1 %mine, label %run, label %look
run:
  %f = load ptr, ptr @function
  %b = load ptr, ptr @block
  %n = load i32, ptr @tasks
  %shifted = lshr i64 %ticket, 16
  %front = and i64 %shifted, 65535
  %end = add i64 %front, %left
  %back = sub i64 %end, 1
  %task64 = select i1 %forwards, i64 %front, i64 %back
  %n64 = zext i32 %n to i64
  call void %f(ptr %b, i64 %task64, i64 %n64)
  %before = atomicrmw sub ptr @pending, i32 1 seq_cst, align 4
  %last = icmp eq i32 %before, 1
  br i1 %last, label %tell, label %look
tell:
  %w = load atomic i32, ptr @waiting seq_cst, align 4
  %sleeps = icmp ne i32 %w, 0
  br i1 %sleeps, label %rouse, label %out
rouse:
  call void @rouse(ptr @pending, i32 1)
  br label %out
out:
  ret void
}

define internal ptr @worker(ptr %argument) {
  %number = ptrtoint ptr %argument to i32
  br label %draining
draining:
  %threads = load atomic i32, ptr @gnomon_threads acquire, align 4
  %inside = icmp slt i32 %number, %threads
  br i1 %inside, label %drain, label %surplus
surplus:
  call void @sleep(ptr @gnomon_threads, i32 %threads)
  br label %draining
drain:
  call void @drain(i1 false)
  %spins = load i32, ptr @gnomon_spins
  br label %spinning
spinning:
  %k = phi i32 [0, %drain], [%k.next, %again]
  %ticket = load atomic i64, ptr @ticket monotonic, align 8
  %left = trunc i64 %ticket to i16
  %found = icmp ne i16 %left, 0
  br i1 %found, label %draining, label %again
again:
  RELAX
  %k.next = add i32 %k, 1
  %spin = icmp slt i32 %k.next, %spins
  br i1 %spin, label %spinning, label %polite
polite:
  %begin = call i64 @now()
  br label %yielding
yielding:
  %seen = load atomic i64, ptr @ticket monotonic, align 8
  %seen.left = trunc i64 %seen to i16
  %new = icmp ne i16 %seen.left, 0
  br i1 %new, label %draining, label %once_more
once_more:
  %patient = call i1 @give_way(i64 %begin)
  br i1 %patient, label %yielding, label %asleep
asleep:
  %r0 = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %now.left = trunc i64 %now to i16
  %idle = icmp eq i16 %now.left, 0
  br i1 %idle, label %sleep, label %awake
sleep:
  %high = lshr i64 %now, 32
  %job = trunc i64 %high to i32
  call void @sleep(ptr JOB, i32 %job)
  br label %awake
awake:
  %r1 = atomicrmw sub ptr @sleepers, i32 1 seq_cst, align 4
  br label %draining
}

define internal void @start(i32 %threads) {
  %thread = alloca ptr
  br label %head
head:
  %have = load i32, ptr @workers
  %number = add i32 %have, 1
  %more = icmp slt i32 %number, %threads
  br i1 %more, label %create, label %out
create:
  %argument = inttoptr i32 %number to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %count, label %out
count:
  %t = load ptr, ptr %thread
  %r = call i32 @pthread_detach(ptr %t)
  store i32 %number, ptr @workers
  br label %head
out:
  ret void
}

define internal void @share(ptr %f, ptr %block, i64 %tasks, i32 %threads) {
  call void @start(i32 %threads)
  %tasks32 = trunc i64 %tasks to i32
  store ptr %f, ptr @function
  store ptr %block, ptr @block
  store i32 %tasks32, ptr @tasks
  store atomic i32 %tasks32, ptr @pending monotonic, align 4
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %number = and i64 %old, -4294967296
  %next = add i64 %number, 4294967296
  %new = or i64 %next, %tasks
  store atomic i64 %new, ptr @ticket seq_cst, align 8
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %rouse, label %work
rouse:
  %helpers = sub i32 %tasks32, 1
  call void @rouse(ptr JOB, i32 %helpers)
  br label %work
work:
  call void @drain(i1 true)
  %spins = load i32, ptr @gnomon_spins
  br label %spinning
spinning:
  %k = phi i32 [0, %work], [%k.next, %again]
  %left = load atomic i32, ptr @pending acquire, align 4
  %over = icmp eq i32 %left, 0
  br i1 %over, label %out, label %again
again:
  RELAX
  %k.next = add i32 %k, 1
  %spin = icmp slt i32 %k.next, %spins
  br i1 %spin, label %spinning, label %polite
polite:
  %begin = call i64 @now()
  br label %yielding
yielding:
  %remaining = load atomic i32, ptr @pending acquire, align 4
  %none = icmp eq i32 %remaining, 0
  br i1 %none, label %out, label %once_more
once_more:
  %patient = call i1 @give_way(i64 %begin)
  br i1 %patient, label %yielding, label %lie_down
lie_down:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  br label %asleep_too
asleep_too:
  %still = load atomic i32, ptr @pending seq_cst, align 4
  %finished = icmp eq i32 %still, 0
  br i1 %finished, label %get_up, label %sleep
sleep:
  call void @sleep(ptr @pending, i32 %still)
  br label %asleep_too
get_up:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %out
out:
  ret void
}

define void @gnomon_limit(ptr %threads) {
  %n = ptrtoint ptr %threads to i32
  store atomic i32 %n, ptr @gnomon_threads seq_cst, align 4
  call void @rouse(ptr @gnomon_threads, i32 2147483647)
  ret void
}

define void @gnomon_before_fork(ptr %unused) {
  ret void
}

define void @gnomon_after_fork_in_child(ptr %unused) {
  ; the workers did not come along, and another thread may have been in the middle of a job
  call void @renew()
  store atomic i32 1, ptr @gnomon_threads seq_cst, align 4
  store atomic i64 0, ptr @ticket seq_cst, align 8
  store atomic i32 0, ptr @pending seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 0, ptr @waiting seq_cst, align 4
  store i32 0, ptr @workers
  store atomic i32 0, ptr @busy release, align 4
  ret void
}
"""

FUTEX = """
declare i64 @syscall(i64, ...)

define internal void @sleep(ptr %word, i32 %value) {
  ; 128 is FUTEX_WAIT, 129 FUTEX_WAKE, both private to the process
  %r = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}

define internal void @rouse(ptr %word, i32 %count) {
  %r = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %word, i32 129, i32 %count)
  ret void
}

define internal void @renew() {
  ret void
}
"""

CONDITION = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

@mutex = internal global [128 x i8] zeroinitializer, align 128
@changed = internal global [128 x i8] zeroinitializer, align 128

define internal void @sleep(ptr %word, i32 %value) {
  %r0 = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %look
look:
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %value
  br i1 %same, label %wait, label %out
wait:
  %r1 = call i32 @pthread_cond_wait(ptr @changed, ptr @mutex)
  br label %look
out:
  %r2 = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

define internal void @rouse(ptr %word, i32 %count) {
  %r0 = call i32 @pthread_mutex_lock(ptr @mutex)
  %r1 = call i32 @pthread_mutex_unlock(ptr @mutex)
  %r2 = call i32 @pthread_cond_broadcast(ptr @changed)
  ret void
}

define internal void @renew() {
  %r0 = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %r1 = call i32 @pthread_cond_init(ptr @changed, ptr null)
  ret void
}
"""

LIBGOMP = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare i32 @omp_pause_resource_all(i32)

%job = type {ptr, ptr, i64}

define internal void @member(ptr %job) {
  %f = load ptr, ptr %job
  %block.at = getelementptr %job, ptr %job, i64 0, i32 1
  %block = load ptr, ptr %block.at
  %tasks.at = getelementptr %job, ptr %job, i64 0, i32 2
  %tasks = load i64, ptr %tasks.at
  %t32 = call i32 @omp_get_thread_num()
  %t = zext i32 %t32 to i64
  %n32 = call i32 @omp_get_num_threads()
  %n = zext i32 %n32 to i64
  br label %head
head:
  %i = phi i64 [%t, %0], [%next, %body]
  %more = icmp slt i64 %i, %tasks
  br i1 %more, label %body, label %done
body:
  call void %f(ptr %block, i64 %i, i64 %tasks)
  %next = add i64 %i, %n
  br label %head
done:
  ret void
}

define internal void @share(ptr %f, ptr %block, i64 %tasks, i32 %threads) {
  %job = alloca %job
  store ptr %f, ptr %job
  %block.at = getelementptr %job, ptr %job, i64 0, i32 1
  store ptr %block, ptr %block.at
  %tasks.at = getelementptr %job, ptr %job, i64 0, i32 2
  store i64 %tasks, ptr %tasks.at
  %wanted = trunc i64 %tasks to i32
  %team = call i32 @llvm.smin.i32(i32 %wanted, i32 %threads)
  call void @GOMP_parallel(ptr @member, ptr %job, i32 %team, i32 0)
  ret void
}

define void @gnomon_limit(ptr %threads) {
  %n = ptrtoint ptr %threads to i32
  store atomic i32 %n, ptr @gnomon_threads seq_cst, align 4
  ret void
}

define void @gnomon_before_fork(ptr %unused) {
  ; 2 is omp_pause_hard: this thread's team ends, so that the child has no thread to miss
  %r = call i32 @omp_pause_resource_all(i32 2)
  ret void
}

define void @gnomon_after_fork_in_child(ptr %unused) {
  store atomic i32 1, ptr @gnomon_threads seq_cst, align 4
  store atomic i32 0, ptr @busy release, align 4
  ret void
}
"""

_FUTEX_NUMBER = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
_RELAX = {
    "x86_64": 'call void asm sideeffect "pause", ""()',
    "aarch64": 'call void asm sideeffect "isb", ""()',
    "arm64": 'call void asm sideeffect "isb", ""()',
}


def libgomp() -> str:
    """The text of the pool that hands its jobs to libgomp."""
    return ENTRY + LIBGOMP


def own(futex: bool = True) -> str:
    """The text of the pool with its own threads, for this machine."""
    machine = platform.machine()
    number = _FUTEX_NUMBER.get(machine) if futex and sys.platform == "linux" else None
    sleeping = CONDITION if number is None else FUTEX.replace("NUMBER", str(number))
    high = 4 if sys.byteorder == "little" else 0
    job = f"getelementptr (i8, ptr @ticket, i64 {high})"
    words = {
        "RELAX": _RELAX.get(machine, ""),
        "JOB": job,
        "CLOCK": str(time.CLOCK_MONOTONIC),
        "PATIENCE": str(PATIENCE),
    }
    text = ENTRY + OWN + sleeping
    for word, by in words.items():
        text = text.replace(word, by)
    return text
