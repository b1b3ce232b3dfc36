"""A step of imperative training: gnomon beside its own executor, MXNet and PyTorch, turn by turn.

    python benchmarks/imperative.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python

A step is `record`, a network written with the operators of `nd`, a loss, `backward`, and one call
of an `optimizer.Updater` for all parameters; `executor` is the same formula bound by a Module. All
start from the same parameters, and their losses after a few steps are compared before anything is
timed. The table gives each median and, in brackets, the median ratio to gnomon's imperative step of
the same round.

`gnomon as called` computes each operator as it is called, by the setting `programs`.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import measure
from peers.protocol import PeerError, start

PEERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "imperative_module.py", ("gnomon", "imperative")),
    "gnomon executor": ("gnomon", "imperative_module.py", ("gnomon", "executor")),
    "gnomon as called": ("gnomon", "imperative_module.py", ("gnomon", "called")),
    "torch": ("torch", "imperative_torch.py", ()),
    "mxnet": ("mxnet", "imperative_module.py", ("mxnet", "imperative")),
}
ROWS = {
    f"{net} {size}": (net, size)
    for net, size in (("mlp", 32), ("transformer", 2), ("transformer", 16), ("lstm", 16))
}
TOLERANCE = 2e-3


def disagreement(facts: dict[str, dict[str, float]]) -> str:
    """Whose loss differs from the middle one by more than rounding; empty where all agree."""
    losses = {name: fact["loss"] for name, fact in facts.items()}
    middle = statistics.median_low(losses.values()) if losses else 0.0
    odd = [f"{n} {x:.4f}" for n, x in losses.items() if not abs(x - middle) <= TOLERANCE]
    return f"losses that are not {middle:.4f}: {', '.join(odd)}" if odd else ""


def main() -> None:
    """Time and print."""
    options = measure.arguments(__doc__.splitlines()[0]).parse_args()
    pythons = measure.interpreters(options)
    peers = start(
        {
            name: (pythons.get(package, sys.executable), PEERS / script, arguments)
            for name, (package, script, arguments) in CONTENDERS.items()
            if name in (options.only or CONTENDERS)
        }
    )
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    print(measure.header("a step", names))
    for title in measure.chosen(list(ROWS), options.rows):
        net, size = ROWS[title]
        able, facts = measure.prepared(peers, net=net, size=size)
        if problem := disagreement(facts):
            print(f"{title}: {problem}", file=sys.stderr)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(title, names, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:
        sys.exit(f"a contender failed: {error}")
