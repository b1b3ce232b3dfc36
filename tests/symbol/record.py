"""Records what MXNet 1.9.1 says of the networks in symbols.py: run it in an oracle venv.

MXNET_SUBGRAPH_BACKEND=NONE oracle/bin/python tests/golden/make_symbols.py
"""

import json
from pathlib import Path

import mxnet as mx
from symbol_networks import FILES, GIVEN, NETWORKS


def record(name, net):
    """Everything that is compared of a symbol."""
    found = {
        "json": net.tojson(),
        "arguments": net.list_arguments(),
        "outputs": net.list_outputs(),
        "auxiliary": net.list_auxiliary_states(),
        "attributes": net.attr_dict(),
        "repr": repr(net),
        "debug": net.debug_str(),
    }
    if name in GIVEN:
        found["shapes"] = net.infer_shape(**GIVEN[name])
    return found


def main():
    """Write recorded.json beside this file."""
    records = {}
    for build in NETWORKS:
        with mx.name.NameManager():
            records[build.__name__] = record(build.__name__, build(mx))
    for name, text in FILES.items():
        records[name] = record(name, mx.sym.load_json(text))
    path = Path(__file__).with_name("recorded.json")
    path.write_text(json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
