"""The native text of the stream's thread, and of those who wait for it; see `stream_code`."""

from __future__ import annotations

THREAD = """
define internal void @rouse(ptr %word, i32 %count) {
  ; 129 is FUTEX_WAKE, 128 FUTEX_WAIT, both private to the process
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 %count)
  ret void
}

define internal void @relax() alwaysinline {
  RELAX
  ret void
}

; moves the stream's thread to other cores than this one, if it was here last
define internal void @place() {
  %cores = alloca [16 x i64]
  %here = call i32 @sched_getcpu()
  %core = load i32, ptr @core
  %same = icmp eq i32 %here, %core
  %known = icmp ult i32 %here, 1024
  %both = and i1 %same, %known
  br i1 %both, label %ask, label %out
ask:
  call void @llvm.memset.p0.i64(ptr %cores, i8 0, i64 128, i1 false)
  %r = call i32 @sched_getaffinity(i32 0, i64 128, ptr %cores)
  %told = icmp sge i32 %r, 0
  br i1 %told, label %less, label %out
less:
  %which = lshr i32 %here, 6
  %word.at = getelementptr i64, ptr %cores, i32 %which
  %word = load i64, ptr %word.at
  %bit32 = and i32 %here, 63
  %bit = zext i32 %bit32 to i64
  %mine = shl i64 1, %bit
  %others = xor i64 %mine, -1
  %rest = and i64 %word, %others
  store i64 %rest, ptr %word.at
  br label %head
head:
  %i = phi i64 [0, %less], [%i.next, %head]
  %sum = phi i64 [0, %less], [%sum.next, %head]
  %at = getelementptr i64, ptr %cores, i64 %i
  %one = load i64, ptr %at
  %sum.next = or i64 %sum, %one
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 16
  br i1 %more, label %head, label %look
look:
  %none = icmp eq i64 %sum.next, 0
  br i1 %none, label %out, label %move
move:
  %thread = load ptr, ptr @thread
  %r2 = call i32 @pthread_setaffinity_np(ptr %thread, i64 128, ptr %cores)
  br label %out
out:
  ret void
}

; brings the stream's thread back from its sleep
define internal void @wake() {
  %state = load atomic i32, ptr @asleep seq_cst, align 4
  %sleeps = icmp eq i32 %state, 1
  br i1 %sleeps, label %try, label %out
try:
  %swap = cmpxchg ptr @asleep, i32 1, i32 0 seq_cst seq_cst, align 4
  %mine = extractvalue {i32, i1} %swap, 1
  br i1 %mine, label %rouse, label %out
rouse:
  call void @place()
  call void @rouse(ptr @asleep, i32 1)
  br label %out
out:
  ret void
}

define internal ptr @serve(ptr %unused) {
begin:
  br label %work
work:
  %ran = call i1 @run(i64 9223372036854775807)
  br i1 %ran, label %ended, label %idle
ended:
  %core = call i32 @sched_getcpu()
  store i32 %core, ptr @core
  br label %work
idle:
  %spins = load i32, ptr @gnomon_stream_spins
  br label %spinning
spinning:
  %k = phi i32 [0, %idle], [%k.next, %again]
  %found = call i1 @waits()
  br i1 %found, label %work, label %again
again:
  call void @relax()
  %k.next = add i32 %k, 1
  %spin = icmp slt i32 %k.next, %spins
  br i1 %spin, label %spinning, label %lie
lie:
  store atomic i32 1, ptr @asleep seq_cst, align 4
  %late = call i1 @waits()
  br i1 %late, label %up, label %sleep
sleep:
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @asleep, i32 128, i32 1, ptr null)
  br label %up
up:
  store atomic i32 0, ptr @asleep seq_cst, align 4
  br label %work
}

define internal void @start() {
  %all = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  %state = load i32, ptr @started
  %fresh = icmp eq i32 %state, 0
  br i1 %fresh, label %block, label %out
block:  ; signals are for the threads of Python
  %r0 = call i32 @sigfillset(ptr %all)
  %r1 = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  %failed = call i32 @pthread_create(ptr @thread, ptr null, ptr @serve, ptr null)
  %r2 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %fine = icmp eq i32 %failed, 0
  %now = select i1 %fine, i32 1, i32 2
  store i32 %now, ptr @started
  br i1 %fine, label %detach, label %out
detach:
  %t = load ptr, ptr @thread
  %r3 = call i32 @pthread_detach(ptr %t)
  br label %out
out:
  ret void
}
"""

WAIT = """
; whether a task of that number is over
define internal i1 @over(i64 %number) alwaysinline {
  %done = load atomic i64, ptr @gnomon_stream_done seq_cst, align 8
  %over = icmp uge i64 %done, %number
  ret i1 %over
}

; sleeps until the next task is over, 50 ms at most; whether it slept undisturbed
define internal i1 @doze(i64 %number) {
  %time = alloca [2 x i64]
  store i64 0, ptr %time
  call void @set(ptr %time, i64 1, i64 50000000)
  %seen = load atomic i32, ptr @signal seq_cst, align 4
  %r0 = atomicrmw add ptr @waiters, i32 1 seq_cst, align 4
  %over = call i1 @over(i64 %number)
  %halted = load atomic i32, ptr @halted seq_cst, align 4
  %stands = icmp ne i32 %halted, 0
  %ready = or i1 %over, %stands
  br i1 %ready, label %up, label %sleep
sleep:
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @signal, i32 128, i32 %seen, ptr %time)
  br label %up
up:
  %woken = phi i64 [0, %0], [%r, %sleep]
  %r1 = atomicrmw sub ptr @waiters, i32 1 seq_cst, align 4
  %undisturbed = icmp eq i64 %woken, 0
  ret i1 %undisturbed
}

; waits for a task: words number, most work to help with, answer, spins. The answer is 0: it is
; over; 1: look for signals and come again; 2: the stream halts
define void @gnomon_stream_wait(ptr %words) {
begin:
  %number = load i64, ptr %words
  %most.given = call i64 @word(ptr %words, i64 1)
  %state = load i32, ptr @started
  %threadless = icmp eq i32 %state, 2
  %most = select i1 %threadless, i64 9223372036854775807, i64 %most.given
  %from = call i64 @now()
  br label %fresh
fresh:
  br label %look
look:
  %k = phi i32 [0, %fresh], [%k.next, %again]
  %over = call i1 @over(i64 %number)
  br i1 %over, label %leave, label %halts
halts:
  %halted = load atomic i32, ptr @halted seq_cst, align 4
  %stands = icmp ne i32 %halted, 0
  br i1 %stands, label %tell, label %help
tell:
  call void @set(ptr %words, i64 2, i64 2)
  ret void
help:
  %ran = call i1 @run(i64 %most)
  br i1 %ran, label %helped, label %none
helped:
  %now = call i64 @now()
  %passed = sub i64 %now, %from
  %long = icmp sgt i64 %passed, 20000000
  br i1 %long, label %again.later, label %fresh
again.later:
  call void @leave()
  call void @set(ptr %words, i64 2, i64 1)
  ret void
none:
  %left = call i1 @waits()
  br i1 %left, label %bring, label %again
bring:  ; what is too long to help with
  call void @wake()
  br label %again
again:
  call void @relax()
  %k.next = add i32 %k, 1
  %spins = load i32, ptr @gnomon_stream_spins
  %spin = icmp slt i32 %k.next, %spins
  br i1 %spin, label %look, label %sleep
sleep:
  %undisturbed = call i1 @doze(i64 %number)
  br i1 %undisturbed, label %fresh, label %again.later
leave:
  call void @leave()
  call void @set(ptr %words, i64 2, i64 0)
  ret void
}

; the end of help: others run the rest, where that is much
define internal void @leave() {
  %left = call i1 @waits()
  br i1 %left, label %weigh, label %out
weigh:
  %work = load atomic i64, ptr @load seq_cst, align 8
  %threshold = load i64, ptr @gnomon_stream_threshold
  %enough = icmp sge i64 %work, %threshold
  br i1 %enough, label %wake, label %out
wake:
  call void @wake()
  br label %out
out:
  ret void
}

; from now on no task runs; a signal's handler may fork amidst a fork, where it is held already
define void @gnomon_stream_hold(ptr %unused) {
  %held = atomicrmw xchg ptr @held, i32 1 seq_cst, align 4
  %fresh = icmp eq i32 %held, 0
  br i1 %fresh, label %try, label %out
try:
  %swap = cmpxchg ptr @baton, i32 0, i32 1 seq_cst seq_cst, align 4
  %mine = extractvalue {i32, i1} %swap, 1
  br i1 %mine, label %out, label %sleep
sleep:
  %never = call i1 @doze(i64 -1)
  br label %try
out:
  ret void
}

; goes on after a task that failed
define void @gnomon_stream_revive(ptr %unused) {
  store atomic i32 0, ptr @halted seq_cst, align 4
  call void @go()
  ret void
}

; goes on after `hold`
define void @gnomon_stream_let_go(ptr %unused) {
  %held = atomicrmw xchg ptr @held, i32 0 seq_cst, align 4
  %was = icmp ne i32 %held, 0
  br i1 %was, label %free, label %out
free:
  store atomic i32 0, ptr @baton seq_cst, align 4
  call void @go()
  br label %out
out:
  ret void
}

define internal void @go() {
  %left = call i1 @waits()
  br i1 %left, label %wake, label %out
wake:
  call void @wake()
  br label %out
out:
  ret void
}

; in a forked child: no task, no thread
define void @gnomon_stream_renew(ptr %unused) {
  %done = load atomic i64, ptr @gnomon_stream_done seq_cst, align 8
  store atomic i64 %done, ptr @gnomon_stream_head seq_cst, align 8
  store atomic i64 0, ptr @load seq_cst, align 8
  store atomic i32 0, ptr @waiters seq_cst, align 4
  store atomic i32 0, ptr @asleep seq_cst, align 4
  store i32 0, ptr @started
  store atomic i32 0, ptr @halted seq_cst, align 4
  store atomic i32 0, ptr @held seq_cst, align 4
  store atomic i32 0, ptr @baton seq_cst, align 4
  ret void
}
"""
