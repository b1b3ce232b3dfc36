"""Work behind the program, with streams, without, and MXNet's, turn by turn in one run.

    python benchmarks/streams.py --peer mxnet=ORACLE/bin/python
    python benchmarks/streams.py --only gnomon off --rows push

"push X" is the call alone, whose work is waited for outside of the time; "100 ms of dot" is as many
products of 1500 rows as take so long, and beside them a sleep of 100 ms, or Python that computes
for as long; "wait a+1" is one small operator and the wait for it. A table gives each median and, in
brackets, the median ratio to gnomon's of the same round. Before it stands what the stream costs by
itself, in microseconds: median, 95 and 99 %.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import measure
from peers.protocol import Peer, start

from gnomon.expr.node import Buffer
from gnomon.runtime.devices.pool import allocate
from gnomon.runtime.execution import stream
from gnomon.runtime.execution.program import Program
from gnomon.runtime.statements.prepare import Store, prepare

WORKER = Path(__file__).parent / "peers" / "stream_work.py"
CONTENDERS = {"gnomon": "gnomon", "off": "off", "MXNet": "mxnet"}
ROWS = {  # and how often in a turn
    "push dot": 3,
    "push Convolution": 3,
    "push forward": 3,
    "push backward": 3,
    "dot": 3,
    "100 ms of dot": 1,
    "and a sleep": 1,
    "and Python": 1,
    "wait a+1": 1000,
}
TIMES, IDLE = 200, 0.002  # tries of each raw figure, and seconds before each


def filling(nbytes: int) -> Program:
    """A step that writes so many bytes."""
    memory = allocate(nbytes)
    target = Buffer((nbytes // 4,), address=memory.address, owner=memory)
    return Program(prepare([Store(target, "saveto", target * 0.5)], "fill"))


def raw() -> dict[str, Callable[[], float]]:
    """What the stream costs by itself: each gives microseconds."""
    short, long = filling(1 << 14), filling(1 << 23)

    def entered(program: Program) -> stream.Task:
        task = stream.Task(program)
        stream.enter(task, [])
        return task

    def push() -> float:
        begin = time.perf_counter()
        task = entered(long)
        end = time.perf_counter()
        stream.wait(task.number, helps=False)
        return (end - begin) * 1e6

    def begins() -> float:
        begin = time.perf_counter()
        task = entered(long)
        stream.wait(task.number, helps=False)
        return (task.times[0] - begin) * 1e6

    def helped() -> float:
        begin = time.perf_counter()
        stream.wait(entered(short).number)
        end = time.perf_counter()
        short.run()
        return (2 * end - begin - time.perf_counter()) * 1e6

    return {
        "push, the stream asleep": push,
        "from a push to the begin": begins,
        "push and wait of short work, beyond running it": helped,
    }


def print_raw() -> None:
    """Measure and print what the stream costs by itself."""
    for name, once in raw().items():
        found = []
        for _ in range(TIMES):
            time.sleep(IDLE)
            found.append(once())
        found.sort()
        last = (found[int(TIMES * 0.95)], found[int(TIMES * 0.99)])
        print(f"{name}: {statistics.median(found):.1f} / {last[0]:.1f} / {last[1]:.1f} us")


def turns(peers: Sequence[Peer], rounds: int, steps: int) -> measure.Seconds:
    """Seconds of each peer's step, one value for each round."""
    seconds: measure.Seconds = {peer.name: [] for peer in peers}
    for turn in range(rounds):
        for peer in [*peers[turn % len(peers) :], *peers[: turn % len(peers)]]:
            time.sleep(measure.PAUSE)
            taken = peer.ask("run", steps=steps)["seconds"]
            seconds[peer.name].append(taken / steps)
    return seconds


def main() -> None:
    """Time and print."""
    options = measure.arguments(__doc__.splitlines()[0]).parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (
            pythons.get("mxnet") if kind == "mxnet" else sys.executable,
            WORKER,
            (kind,),
        )
        for name, kind in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    if options.rows is None and stream.available():
        print_raw()
    peers = start(wanted)
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    print(measure.header("row", names))
    for row in measure.chosen(list(ROWS), options.rows):
        able, _ = measure.prepared(peers, row=row)
        seconds = turns(able, options.rounds, ROWS[row])
        print(measure.row(row, names, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
