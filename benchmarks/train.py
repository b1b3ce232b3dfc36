"""One training step of small networks: gnomon beside its peers, turn by turn in one run.

    python benchmarks/train.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python

A step is forward, backward and SGD with momentum on a batch that lies in memory. Every contender
starts from the same parameters; their losses after a few steps are compared before anything is
timed: MXNet's differ on LeNet from run to run, by a race of its threaded engine with oneDNN. The
table gives each median and, in brackets, the median ratio to gnomon's step of the same round. A
peer whose interpreter is missing is left out, and that is said.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import measure
from peers.protocol import start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "train_module.py", ("gnomon",)),
    "mxnet": ("mxnet", "train_module.py", ("mxnet",)),
    "torch": ("torch", "train_torch.py", ("eager",)),
    "torch.compile": ("torch", "train_torch.py", ("compile",)),
    "jax": ("jax", "train_jax.py", ()),
}
TOLERANCE = 1e-3
NETS = [("mlp", 32), ("mlp", 128), ("lenet", 32), ("lenet", 128)]


def disagreement(facts: dict[str, dict[str, float]]) -> str:
    """Whose loss differs from the middle one by more than rounding; empty where all agree."""
    losses = {name: fact["loss"] for name, fact in facts.items()}
    middle = statistics.median_low(losses.values()) if losses else 0.0
    odd = [f"{n} {loss:.4f}" for n, loss in losses.items() if abs(loss - middle) > TOLERANCE]
    return f"losses that are not {middle:.4f}: {', '.join(odd)}" if odd else ""


def main() -> None:
    """Time and print."""
    options = measure.arguments(__doc__.splitlines()[0]).parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, arguments)
        for name, (environment, script, arguments) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    peers = start(wanted)
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    print(measure.header("training step", names))
    titles = {f"{net} {size}": (net, size) for net, size in NETS}
    for title in measure.chosen(list(titles), options.rows):
        net, size = titles[title]
        able, facts = measure.prepared(peers, net=net, size=size)
        if problem := disagreement(facts):
            print(f"{title}: {problem}", file=sys.stderr)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(title, names, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
