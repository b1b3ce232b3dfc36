"""How many functions a second go through the engine: `python benchmarks/engine.py`.

Empty Python functions, with dependencies, errors and push sites kept, beside a thread pool of
`concurrent.futures` and, where it is installed, dask's threaded scheduler, interleaved; and short
inline kernels. Each figure is the best of several
rounds; the ratio is what counts. `taskset -c 0` in front shows it with the process on one core.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from gnomon import engine

COUNT, ROUNDS, WORKERS = 20_000, 5, 2


def nothing(run_ctx: object = None) -> None:
    """What is run."""


def through_gnomon(one: engine.Engine) -> dict[str, Callable[[], None]]:
    """The ways of pushing; each runs `COUNT` functions and waits for them."""
    read, written = one.new_variable(), one.new_variable()
    prepared = {
        kind: one.new_operator(nothing, [read], [written], kind=kind)
        for kind in ("sync", "inline", "brief")
    }

    def repeat(push: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(COUNT):
                push()
            one.wait_for_all()

        return run

    ways: dict[str, Callable[[], object]] = {
        "push_sync, no variables": lambda: one.push_sync(nothing),
        "push_sync, one read, one written": lambda: one.push_sync(
            nothing, None, (read,), (written,)
        ),
        "prepared, on workers": lambda: one.push(prepared["sync"]),
        "push_inline": lambda: one.push_inline(nothing, None, (read,), (written,)),
        "prepared, inline": lambda: one.push(prepared["inline"]),
        "prepared, brief": lambda: one.push(prepared["brief"]),
    }
    return {name: repeat(push) for name, push in ways.items()}


def through_futures(pool: ThreadPoolExecutor) -> None:
    """The same number of functions through the standard library, without any order."""
    wait([pool.submit(nothing) for _ in range(COUNT)])


def through_dask() -> Callable[[], None] | None:
    """A graph of the same number of tasks, each after the one before its turn in four chains."""
    try:
        get = importlib.import_module("dask.threaded").get
    except ImportError:
        return None

    def run() -> None:
        graph = {k: (nothing, k - 4) if k >= 4 else (nothing,) for k in range(COUNT)}
        get(graph, list(range(COUNT - 4, COUNT)), num_workers=WORKERS)

    return run


def rate(run: Callable[[], None]) -> float:
    """Functions a second, in one round."""
    begin = time.perf_counter()
    run()
    return COUNT / (time.perf_counter() - begin)


def main() -> None:
    """Run the rounds and print the table."""
    with ThreadPoolExecutor(WORKERS) as pool:
        one = engine.ThreadedEnginePerDevice(WORKERS)
        ways = {"concurrent.futures": lambda: through_futures(pool), **through_gnomon(one)}
        dask = through_dask()
        ways.update({} if dask is None else {"dask.threaded": dask})
        best = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS):
            for name, run in ways.items():
                best[name] = max(best[name], rate(run))
        one.stop()
    peer = best["concurrent.futures"]
    for name, value in best.items():
        print(f"{name:34s} {value:12,.0f} functions/s   {value / peer:5.1f}x")


if __name__ == "__main__":
    main()
