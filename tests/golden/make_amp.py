"""Record mixed precision from MXNet 1.9.1, as amp.json."""

import json
from pathlib import Path

import amp as told
import mxnet as mx
from mxnet.contrib import amp


def main() -> None:
    found = {"converted": told.converted(mx, amp)}
    lists = [n for n in dir(amp) if n.startswith("list_")]
    kinds = {"float16": "float16", "bfloat16": amp.amp.bfloat16}
    found["lists"] = {n: {k: getattr(amp, n)(t) for k, t in kinds.items()} for n in lists}
    amp.init("float16", target_precision_ops=["LRN"])
    found["steps"] = told.scaled_steps(mx, amp)
    path = Path(__file__).with_name("amp.json")
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
