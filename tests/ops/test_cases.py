"""Every operator is tested: by what MXNet recorded, or by its reference on its own cases."""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from golden import images

from gnomon.ops import find, registry
from gnomon.ops.case import case
from gnomon.ops.op import Op
from gnomon.ops.testing import check_case

GOLDEN = Path(__file__).parent.parent / "golden"


def operators():
    """Every operator of the package."""
    found = {find(name) for name in registry.names()}
    return sorted((c for c in found if c.__module__.startswith("gnomon.")), key=lambda c: c.name)


def recorded():
    """The names of what MXNet recorded."""
    files = GOLDEN.glob("operators*.json")
    found = {record["op"] for path in files for record in json.loads(path.read_text())}
    networks = json.loads((GOLDEN / "control.json").read_text()).values()
    loops = {node["op"] for network in networks for node in network["nodes"]}
    return found | loops | {f"_image_{name}" for name, *_ in images.CASES}


def unrecorded(classes):
    """Those of which MXNet recorded nothing."""
    known = recorded()
    return [c for c in classes if known.isdisjoint((c.name, *c.aliases))]


def uncovered(classes):
    """The names of operators that nothing here tells right from wrong."""
    return {c.name for c in unrecorded(classes) if not (c.cases and c.reference)}


# why MXNet recorded nothing of an operator
WITHOUT = {
    "MXNet has none": """_csr_dot _put_rows _zeros_without_dtype cumprod logcumsumexp""",
    "on GPUs alone, or refused by MXNet as it is built": """_contrib_BatchNormWithReLU
        _contrib_count_sketch _contrib_fft _contrib_group_adagrad_update _contrib_ifft _copyto
        _imdecode amp_multicast""",
    "works in place alone, or takes its state by no argument": """IdentityAttachKLSparseReg
        _scatter_set_nd reset_arrays""",
    "on sparse arrays: sparse.json, and tests/ops/test_graph_sampling.py": """
        _contrib_dgl_adjacency _contrib_dgl_csr_neighbor_non_uniform_sample
        _contrib_dgl_csr_neighbor_uniform_sample _contrib_dgl_graph_compact _contrib_dgl_subgraph
        _contrib_edge_id _contrib_getnnz _sparse_adagrad_update _sparse_retain _square_sum""",
    "drawn by chance": """_image_random_color_jitter _image_random_flip_left_right
        _image_random_flip_top_bottom _image_random_lighting _image_random_saturation
        _random_exponential _random_exponential_like _random_gamma _random_gamma_like
        _random_generalized_negative_binomial _random_generalized_negative_binomial_like
        _random_negative_binomial _random_negative_binomial_like _random_normal
        _random_normal_like _random_poisson _random_poisson_like _random_randint _random_uniform
        _random_uniform_like _sample_exponential _sample_gamma
        _sample_generalized_negative_binomial _sample_multinomial _sample_negative_binomial
        _sample_normal _sample_poisson _sample_uniform _sample_unique_zipfian _shuffle""",
    "a user's": "Custom",
}

# tested in other ways, since they draw numbers or are sparse alone: none may be added
EARLIER = {
    name
    for name in f"{WITHOUT['drawn by chance']} Custom".split()
    if name not in ("_sample_multinomial", "_sample_unique_zipfian", "_shuffle")
} | {"_sparse_adagrad_update", "_square_sum", "_zeros_without_dtype"}


@functools.cache
def names_in_the_package():
    """The operators of a process that has registered none of its own, as other tests here do."""
    code = "from gnomon.ops import registry; print(*registry.names())"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=GOLDEN.parent.parent, capture_output=True, check=True
    )
    return set(found.stdout.decode().split())


def test_every_operator_has_records_or_cases_with_a_reference():
    there = names_in_the_package()
    ours = [c for c in operators() if c.name in there]
    reasons = {name for names in WITHOUT.values() for name in names.split()}
    assert {c.name for c in unrecorded(ours)} == reasons
    missing = uncovered(ours)
    assert missing == EARLIER, f"without: {missing - EARLIER}; now with: {EARLIER - missing}"


def test_an_operator_without_is_found():
    class Untested(Op):
        """Twice `data`."""

        name, cases = "_untested", (case((2,)),)

        def forward(self, data):
            return data + data

    assert uncovered([Untested]) == {"_untested"}
    Untested.reference = lambda self, data: 2 * data
    assert uncovered([Untested]) == set()


CASES = [(cls, example) for cls in operators() for example in cls.cases]


def test_the_page_teaches_with_the_code_of_cumsum():
    page = (GOLDEN.parents[1] / "docs" / "operators.md").read_text()
    own = inspect.getsource(find("cumsum"))
    taught = own.replace("_np_cumsum", "docs_cumsum").replace(', aliases=("cumsum",)', "")
    assert taught in page
    assert len([line for line in own.splitlines() if line]) <= 15
    (row,) = [part for part in page.split("\n\n") if part.startswith("unary(")]
    assert len(row.partition("```")[0].splitlines()) <= 6


@pytest.mark.parametrize(("cls", "example"), CASES, ids=[f"{c.name} {e}" for c, e in CASES])
def test_case(cls, example):
    check_case(cls, example)
