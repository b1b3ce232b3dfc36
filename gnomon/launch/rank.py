"""One rank of `gnomon launch`: runs the program, and puts its rank before each line of output.

It stands between the MPI launcher and the program, since a launcher such as MPICH's kills all
processes within milliseconds of the first one that dies, and names none of them by its rank. When
the program failed, this process stays a moment longer: the other ranks notice, and one of them says
what happened; if none did, this one does.

The program is killed with this process, whatever ends it, and with what it was started by: the
MPI launcher's process on this host, and `gnomon launch`, to which a connection is held.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
MOMENT = 1.5  # seconds in which other ranks notice a death
LAST_WORDS = "; the job ends"  # the end of the one message about a failure
LINKS = "GNOMON_LAUNCH_LINKS"  # where the launcher listens, in JSON; see `links.py`
CONNECT_SECONDS = 5.0
PARENT_SECONDS = 1.0  # between two looks whether the parent lives
NOT_STARTED = 127  # the exit code of shells for a program that is not there
_PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    """Run the command; gives its exit code."""
    rank = own_rank()
    who = f"rank {rank} (host {socket.gethostname()}"
    try:
        child = _started(command)
    except OSError as error:
        _say(f"{who}) cannot start {command[0]!r}: {error.strerror}")
        return NOT_STARTED
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        signal.signal(number, lambda which, _: child.send_signal(which))
    before = f"[{rank}] ".encode()
    passing = [
        _beside(_pass_on, child.stdout, 1, before),
        _beside(_pass_on, child.stderr, 2, before),
    ]
    _beside(_end_with_parent, child)
    if LINKS in os.environ:
        told = json.loads(os.environ[LINKS])
        _beside(_end_with_link, told, who, child)
        _beside(_end_when_stopped, told["limit"], who, child)
    code = child.wait()
    for thread in passing:
        thread.join(2)
    if code == 0:
        return code
    time.sleep(MOMENT)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    _say(f"{who}, process {child.pid}) {how}")
    return code if code > 0 else 128 - code


def own_rank() -> str:
    """The rank that an MPI launcher gave this process."""
    return next((os.environ[name] for name in RANKS if name in os.environ), "?")


def put(descriptor: int, data: bytes) -> None:
    """Write all of it, without a lock that the interpreter's end would wait for."""
    while data:
        data = data[os.write(descriptor, data) :]


def kept_alive(link: socket.socket, limit: int) -> None:
    """Have a connection fail when its other host has not answered for so many seconds."""
    idle = max(1, limit // 2)
    link.settimeout(None)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(1, limit - idle))


def told_launcher(told: dict[str, Any], **message: Any) -> socket.socket | None:
    """A connection to the launcher that listens where `told` says, with a message sent along it.

    None where it cannot be reached.
    """
    line = json.dumps({"token": told["token"], "rank": own_rank(), **message}).encode() + b"\n"
    for address in told["addresses"]:
        with contextlib.suppress(OSError):
            link = socket.create_connection((address, told["port"]), timeout=CONNECT_SECONDS)
            link.sendall(line)
            return link
    return None


def _end_with_link(told: dict[str, Any], who: str, child: subprocess.Popen[bytes]) -> None:
    """Kill the program when the launcher's host cannot be reached, or not any more."""
    link = told_launcher(told, host=socket.gethostname())
    if link is None:
        where = f"at port {told['port']} of {told['addresses']}"
        _say(f"{who}) cannot connect to the launcher {where}")
        child.kill()
        return
    kept_alive(link, told["limit"])
    try:
        link.recv(1)  # nothing comes: it ends when the launcher does
    except ConnectionResetError:
        pass
    except OSError as error:
        _say(f"{who}) cannot reach the launcher for {told['limit']} s ({error.strerror})")
    child.kill()


def _end_when_stopped(limit: int, who: str, child: subprocess.Popen[bytes]) -> None:
    """Kill the program when it is stopped for so long: before ranks meet, none of them can tell.

    Looks are counted, since a job that is suspended as a whole is to go on afterwards.
    """
    looks = 0
    while looks < limit:
        time.sleep(1)
        looks = looks + 1 if _is_stopped(child) else 0
    _say(f"{who}, process {child.pid}) was stopped for {limit} s")
    child.kill()


def _is_stopped(child: subprocess.Popen[bytes]) -> bool:
    with contextlib.suppress(ChildProcessError):  # it has ended
        which = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, child.pid, which) is not None
    return False


def _end_with_parent(child: subprocess.Popen[bytes]) -> None:
    """Kill the program when the MPI launcher's process on this host has died."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    child.kill()


def _beside(work: Callable[..., None], *arguments: object) -> threading.Thread:
    """A thread that works until this process ends."""
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=False,  # MPICH's launcher speaks to the program through one of them
        preexec_fn=_die_with_parent,  # noqa: PLW1509  there is no other thread yet
    )


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"gnomon: {text}{LAST_WORDS}\n".encode())  # at once, beside other ranks' lines


def _pass_on(source: IO[bytes], target: int, before: bytes) -> None:
    for line in iter(source.readline, b""):
        put(target, before + line.removesuffix(b"\n") + b"\n")


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
