"""What this build can do, and where it is."""

import pytest

import gnomon


def test_features():
    found = gnomon.runtime.Features()
    assert list(found) == [each.name for each in gnomon.runtime.feature_list()]
    assert len(found) == 32
    assert not found.is_enabled("cuda") and repr(found["CUDA"]) == "✖ CUDA"
    assert found["PROFILER"].enabled and str(found).startswith("[✖ CUDA, ")
    with pytest.raises(RuntimeError, match=r"no feature is called 'CUBA'.*'CUDA'"):
        found.is_enabled("CUBA")
    with pytest.raises(AttributeError, match="feature_lost"):
        _ = gnomon.runtime.feature_lost


def test_library():
    assert gnomon.libinfo.__version__ == "1.9.1"
    assert gnomon.libinfo.find_lib_path() == []
