"""The native text of waiting for MPI and of heartbeats: what runs long without Python's lock.

`gnomon_wait(block)` looks at requests in turn until one is complete, the wake word is set, or it
has looked `rounds` times. It sleeps between rounds, but for the first `spins`. It never just offers
its core to others: a thread that does so gets it back after whole slices of theirs, one that sleeps
at once. The block, in words of 64 bits: see `WAIT`.

`gnomon_beat(block)` sends one byte to every socket, sleeps, and so on until the stop word is set. A
socket that takes no byte now gets none. Sockets may be added meanwhile. The block: see `BEAT`.
"""

from __future__ import annotations

WAIT = (
    "wake", "count", "handles", "rounds", "spins", "seconds", "nanoseconds", "flag", "status"
)  # fmt: skip
BEAT = ("stop", "count", "sockets", "flags", "seconds", "nanoseconds", "byte")
STATUS_WORDS = 16  # more than any MPI's status takes


def _fields(names: tuple[str, ...], pointers: tuple[str, ...], loaded: tuple[str, ...]) -> str:
    """Addresses of a block's words, and loads of those that do not change meanwhile."""
    lines = [f"  %{n}.at = getelementptr i64, ptr %b, i64 {i}" for i, n in enumerate(names)]
    for name in loaded:
        kind = "ptr" if name in pointers else "i64"
        lines.append(f"  %{name} = load {kind}, ptr %{name}.at")
    return "\n".join(lines)


def text(handle: str) -> str:
    """Both functions; `handle` is the type of MPI's requests, `i32` or `i64`."""
    return f"""
declare i32 @nanosleep(ptr, ptr)
declare i64 @send(i32, ptr, i64, i32)
declare i32 @get_status({handle}, ptr, ptr)
{_wait(handle)}{_beat()}"""


def _wait(handle: str) -> str:
    wait = _fields(WAIT, ("handles",), ("count", "handles", "rounds", "spins"))
    return f"""
define void @gnomon_wait(ptr %b) {{
entry:
{wait}
  br label %round
round:
  %k = phi i64 [0, %entry], [%k.next, %again]
  %wake = load atomic i64, ptr %wake.at acquire, align 8
  %woken = icmp ne i64 %wake, 0
  br i1 %woken, label %end, label %each
each:
  %i = phi i64 [0, %round], [%i.next, %next]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %pause
one:
  %h.at = getelementptr {handle}, ptr %handles, i64 %i
  %h = load {handle}, ptr %h.at
  store i32 0, ptr %flag.at
  %rc = call i32 @get_status({handle} %h, ptr %flag.at, ptr %status.at)
  %f = load i32, ptr %flag.at
  %both = or i32 %rc, %f
  %stop = icmp ne i32 %both, 0
  %i.next = add i64 %i, 1
  br i1 %stop, label %end, label %next
next:
  br label %each
pause:
  %k.next = add i64 %k, 1
  %over = icmp sge i64 %k.next, %rounds
  br i1 %over, label %end, label %rest
rest:
  %early = icmp slt i64 %k, %spins
  br i1 %early, label %again, label %sleep
sleep:
  %s = call i32 @nanosleep(ptr %seconds.at, ptr null)
  br label %again
again:
  br label %round
end:
  ret void
}}
"""


def _beat() -> str:
    beat = _fields(BEAT, ("sockets",), ("sockets", "flags"))
    return f"""
define void @gnomon_beat(ptr %b) {{
entry:
{beat}
  br label %round
round:
  %stop = load atomic i64, ptr %stop.at acquire, align 8
  %over = icmp ne i64 %stop, 0
  %count = load atomic i64, ptr %count.at acquire, align 8
  br i1 %over, label %end, label %each
each:
  %i = phi i64 [0, %round], [%i.next, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %sleep
one:
  %fd.at = getelementptr i64, ptr %sockets, i64 %i
  %fd.word = load i64, ptr %fd.at
  %fd = trunc i64 %fd.word to i32
  %how = trunc i64 %flags to i32
  %sent = call i64 @send(i32 %fd, ptr %byte.at, i64 1, i32 %how)
  %i.next = add i64 %i, 1
  br label %each
sleep:
  %s = call i32 @nanosleep(ptr %seconds.at, ptr null)
  br label %round
end:
  ret void
}}
"""
