"""The process's MPI: found, started, and told apart from one that is not there.

mpi4py loads the MPI library of the machine or of a wheel. MPI is started, and ended, by the code
that imports `mpi4py.MPI` first: a program that did so keeps it; else the communication thread does
both.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

from gnomon.base import GnomonError
from gnomon.kvstore import wait_code
from gnomon.kvstore.wait_code import Beat, Wait
from gnomon.launch.rank import LINKS, told_launcher
from gnomon.native.serve import raw_code
from gnomon.runtime.ffi import Block, function, pointer, symbol

_PR_SET_TIMERSLACK = 29
BEAT_COUNT = Beat.count  # the word of `beats` with how many sockets there are

#: what launchers tell a process: how many there are, by MPICH, Open MPI and Slurm
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


def tell_launcher(**message: Any) -> None:
    """Tell `gnomon launch`, if it started this process, what ranks cannot tell each other yet."""
    if LINKS in os.environ:
        link = told_launcher(json.loads(os.environ[LINKS]), **message)
        if link is not None:
            link.close()


def load(kind: str) -> tuple[Any, bool]:
    """The module `mpi4py.MPI`, started, and whether it was started here.

    Raises:
        GnomonError: mpi4py or an MPI library is missing, or several threads may not use it.
    """
    advice = "pip install 'gnomon[dist]' brings both mpi4py and an MPI"
    try:
        import mpi4py
    except ImportError:
        raise GnomonError(
            f"kvstore.create: {kind!r} joins processes by MPI; mpi4py is not installed: {advice}"
        ) from None
    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.initialize = mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise GnomonError(
            f"kvstore.create: {kind!r} joins processes by MPI, and mpi4py finds no MPI library "
            f"({error}): {advice}"
        ) from error
    started = not MPI.Is_initialized()
    if started:
        _start(MPI)
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise GnomonError(
            f"kvstore.create: {kind!r} calls MPI from a thread of its own, and MPI was started "
            "for one thread alone: set mpi4py.rc.thread_level = 'multiple' before importing MPI"
        )
    MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    return MPI, started


def _start(mpi: Any) -> None:
    """Start MPI without Python's lock, which mpi4py would hold while it waits for hosts."""
    provided = ctypes.c_int()
    arguments = None, None, mpi.THREAD_MULTIPLE, ctypes.byref(provided)
    code = ctypes.CDLL(mpi.__file__).MPI_Init_thread(*arguments)
    if code:
        raise GnomonError(f"kvstore.create: MPI did not start: {mpi.Get_error_string(code)}")


def end(mpi: Any) -> None:
    """End MPI without Python's lock, which mpi4py would hold while it waits for other ranks."""
    ctypes.CDLL(mpi.__file__).MPI_Finalize()


def check_launch(mpi: Any, kind: str, started_here: bool) -> None:
    """Tell the user of a process without others; GnomonError where a launcher started others."""
    if mpi.COMM_WORLD.size > 1:
        return
    told = next((name for name in SIZES if os.environ.get(name)), None)
    if told is None:
        print(
            f"gnomon: kvstore {kind!r} was started without a launcher: this process is the only "
            "worker. `gnomon launch -n 4 python train.py` or mpiexec starts several",
            file=sys.stderr,
            flush=True,
        )
    elif int(os.environ[told]) > 1:
        if started_here:
            end(mpi)  # else its shared memory is left
        raise GnomonError(
            f"kvstore.create: the launcher started {os.environ[told]} processes ({told}), and the "
            "MPI library of this process sees one: mpiexec is of another MPI than mpi4py found"
        )


def sleep_exactly() -> None:
    """Have short sleeps of this thread take as long as they say: Linux adds 50 us otherwise."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)


class Native:
    """Waits for MPI and heartbeats, without Python's lock; see `wait_code`."""

    def __init__(self, mpi: Any) -> None:
        library = ctypes.CDLL(mpi.__file__)  # its symbols are those of the library it is linked to
        symbols = {"test_any": symbol(library, "MPI_Testany")}
        code = raw_code(wait_code.await_request, wait_code.beat, symbols=symbols)
        self._wait = function(code.address("await_request"))
        self._beat = function(code.address("beat"))
        self._handle = ctypes.c_int64 if mpi._sizeof(mpi.Request) == 8 else ctypes.c_int32
        self._mpi = mpi
        self.block = Block(len(Wait.fields) + wait_code.STATUS_WORDS)

    def wake(self) -> None:
        """End the wait that goes on, or the next one; any thread may call it."""
        self.block.words[Wait.wake] = 1

    def wait(self, requests: list[Any], rounds: int, spins: int, nap: float) -> None:
        """Sleep until a request is complete, or until `wake`, or for `rounds` looks."""
        places = [self._handle.from_address(self._mpi._addressof(r)) for r in requests]
        handles = (self._handle * len(places))(*(place.value for place in places))
        words = self.block.words
        words[Wait.count], words[Wait.handles] = len(requests), ctypes.addressof(handles)
        words[Wait.rounds], words[Wait.spins] = rounds, spins
        words[Wait.seconds], words[Wait.nanoseconds] = divmod(int(nap * 1e9), 1_000_000_000)
        self._wait(pointer(self.block.address))
        for place, handle in zip(places, handles, strict=True):
            place.value = handle
        if words[Wait.error]:
            raise self._mpi.Exception(words[Wait.error])

    def beat(self, block: Block) -> None:
        """Send beats until the block's stop word is set; `beats` makes the block."""
        self._beat(pointer(block.address))


def beats(sockets: Block, interval: float, flags: int) -> Block:
    """The block of `Native.beat` for the descriptors in a block of words; none count so far."""
    seconds, rest = divmod(interval, 1)
    return Block([0, 0, sockets.address, flags, int(seconds), int(rest * 1e9), ord("\n")])
