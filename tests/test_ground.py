"""Rank 0: errors, settings, registry, dtypes, shapes, contexts, records, lazy public names."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gnomon
from gnomon import config, context, dtype, shape
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, UnknownNameError
from gnomon.context import Context, cpu, gpu
from gnomon.ground.record import record
from gnomon.registry import Registry
from gnomon.runtime.devices import pool

FLAGS = {
    "float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6,
    "bool": 7, "int16": 8, "uint16": 9, "uint32": 10, "uint64": 11, "bfloat16": 12,
}  # fmt: skip


# --- data types -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "flag"), FLAGS.items())
def test_dtype_row(name, flag):
    row = dtype.of(name)
    assert (row.name, row.flag, row.size) == (name, flag, row.numpy.itemsize)
    assert row is dtype.from_flag(flag) is dtype.of(row) is dtype.of(row.numpy)
    assert row is dtype.of(row.numpy.type) is dtype.of(np.zeros(1, row.numpy).dtype)
    assert row is pickle.loads(pickle.dumps(row)) is copy.deepcopy(row)
    assert repr(row) == name
    assert row.kind == ("f" if "float" in name else row.numpy.kind)


def test_dtype_of_python_types_and_other_names():
    assert dtype.of(float) is dtype.float64
    assert dtype.of(int) is dtype.int64
    assert dtype.of(bool) is dtype.of("bool_") is dtype.bool_
    assert dtype.of(np.dtype("longlong")) is dtype.of(np.longlong) is dtype.int64
    assert dtype.of(ml_dtypes.bfloat16) is dtype.bfloat16


@pytest.mark.parametrize("wrong", ["float23", np.dtype(">f4"), complex, None, [], "U3", object()])
def test_unknown_dtype_says_what_there_is(wrong):
    with pytest.raises(DTypeError, match=r"float32, float64.*bfloat16"):
        dtype.of(wrong)


@pytest.mark.parametrize("flag", [13, -1, "0", None, []])
def test_unknown_flag(flag):
    with pytest.raises(DTypeError, match="0 float32"):
        dtype.from_flag(flag)


@pytest.mark.parametrize("name", [n for n in FLAGS if "float" not in n and n != "bool"])
def test_integer_limits_are_numpys(name):
    info = np.iinfo(name)
    assert dtype.of(name).limits == (info.min, info.max)


def test_limits_of_bool_and_of_floats():
    assert dtype.bool_.limits == (0, 1)
    with pytest.raises(DTypeError, match="float32"):
        _ = dtype.float32.limits


# --- shapes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("extents", [(), (5,), (2, 3), (2, 3, 4), (2, 0, 3), (1, 1)])
def test_row_major_is_numpys(extents):
    dense = np.empty(extents, np.uint8)
    if dense.size:
        assert shape.row_major(extents) == dense.strides
    assert shape.prod(extents) == dense.size


@pytest.mark.parametrize(
    ("a", "b"), [((), (2,)), ((5, 1, 3), (4, 1)), ((0,), (1,)), ((1, 0), (3, 1)), ((7,), (7,))]
)
def test_broadcast_is_numpys(a, b):
    expected = np.broadcast_shapes(a, b)
    assert shape.broadcast_shapes(a, b) == shape.broadcast_shapes(b, a) == expected


@pytest.mark.parametrize(("a", "b"), [((2,), (3,)), ((0,), (2,)), ((2, 3), (2,))])
def test_broadcast_refuses(a, b):
    with pytest.raises(ShapeError, match="do not broadcast"):
        shape.broadcast_shapes(a, b)


def test_shape_methods():
    s = shape.Shape4(2, 3, 4, 5)
    assert s == (2, 3, 4, 5)
    assert hash(s) == hash((2, 3, 4, 5))
    assert s.prod_shape(1, 3) == 12
    assert s.flat_to_2d() == (24, 5)
    assert s.slice(1, 3) == shape.Shape2(3, 4)
    assert shape.Shape().flat_to_2d() == (1, 1)
    assert shape.Shape([np.int64(3)]) == shape.Shape1(3)
    assert shape.Shape5(1, 2, 3, 4, 5).sub_shape() == s
    assert repr(shape.Shape3(1, 2, 3)) == "Shape(1, 2, 3)"
    assert pickle.loads(pickle.dumps(s)) == s


@pytest.mark.parametrize("wrong", [(-1,), (1.5,), ("2",), 3])
def test_shape_refuses(wrong):
    with pytest.raises(ShapeError, match=r"Shape: argument 'extents': expected .*, got"):
        shape.Shape(wrong)


def test_scalar_has_no_sub_shape():
    with pytest.raises(ShapeError, match="at least one axis"):
        shape.Shape().sub_shape()


@pytest.mark.parametrize(
    ("layout", "other"), [("NCW", "NWC"), ("NCHW", "NHWC"), ("NCDHW", "NDHWC"), ("NCHW", "CHWN")]
)
def test_layouts_go_there_and_back(layout, other):
    extents = shape.Shape(range(2, 2 + len(layout)))
    there = shape.convert_layout(extents, layout, other)
    assert there == tuple(extents[layout.index(axis)] for axis in other)
    assert shape.convert_layout(there, other, layout) == extents


@pytest.mark.parametrize(
    ("extents", "source", "target"),
    [((1, 2, 3), "NCW", "NCH"), ((1, 2), "NCW", "NWC"), ((1, 2, 3), "NNW", "NNW")],
)
def test_layouts_refuse(extents, source, target):
    with pytest.raises(ShapeError, match="convert_layout"):
        shape.convert_layout(extents, source, target)


# --- contexts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number"), [("cpu", 1), ("gpu", 2), ("cpu_pinned", 3), ("cpu_shared", 5)]
)
def test_context_names_and_numbers(name, number):
    here = getattr(context, name)(2)
    assert (here.device_type, here.device_typeid, here.device_id) == (name, number, 2)
    assert here == Context(name, 2) == Context(here) == pickle.loads(pickle.dumps(here))
    assert len({here, Context(name, 2), Context(name, 1)}) == 2
    assert repr(here) == str(here) == f"{name}(2)"
    assert here != 2


def test_context_scopes_nest_and_belong_to_their_thread():
    seen = []
    with gpu(1), cpu(3):
        assert context.current_context() == cpu(3)
        thread = threading.Thread(target=lambda: seen.append(context.current_context()))
        thread.start()
        thread.join()
    assert seen == [cpu(0)]
    with pytest.raises(ZeroDivisionError), gpu(1):
        _ = 1 // 0
    assert context.current_context() == cpu(0)


def test_context_numbers_are_plain_integers():
    assert [repr(context.cpu(n)) for n in (True, np.int64(1), np.uint8(1))] == ["cpu(1)"] * 3


@pytest.mark.parametrize("wrong", [("cqu", 0), ("cpu", -1), ("cpu", "0"), ("cpu", 1.5), (7, 0)])
def test_context_refuses(wrong):
    with pytest.raises(ValueError, match="Context: argument"):
        Context(*wrong)


def test_no_gpu_is_promised():
    with config.using(gpu="off"):
        assert context.num_gpus() == 0
        with pytest.raises(GnomonError, match=r"gpu\(0\): no GPU can be used"):
            context.gpu_memory_info()
        with pytest.raises(GnomonError, match=r"gpu\(1\): no GPU can be used"):
            gpu(1).empty_cache()


@pytest.mark.parametrize("kind", ["cpu", "cpu_pinned", "cpu_shared"])
def test_idle_memory_goes_back_to_the_system(kind):
    gnomon.nd.zeros((1000, 1000)).wait_to_read()
    assert pool.stats().idle >= 4_000_000
    Context(kind, 1).empty_cache()
    assert pool.stats().idle < 4_000_000


# --- registry -------------------------------------------------------------------------------


def test_registry_names_aliases_and_case():
    registry = Registry("thing", ignore_case=True)
    registry.register("List", list, aliases=("Array",))
    registry.register("Dict", dict)
    assert registry.get("LIST") is registry.get("array") is list
    assert registry.names() == ["List", "Dict"]
    assert "dict" in registry
    assert "set" not in registry
    assert 3 not in registry


def test_registry_refuses_a_second_owner_of_a_name_and_stays_as_it_was():
    registry = Registry("thing")
    registry.register("a", list)
    registry.register("a", list)
    with pytest.raises(ParamError, match="thing 'a' is registered already"):
        registry.register("b", dict, aliases=("a",))
    assert "b" not in registry
    assert registry.register("a", dict, replace=True) is registry.get("a") is dict
    assert registry.names() == ["a"]


def test_registry_creates():
    registry = Registry("number")
    registry.register("complex", complex)
    assert registry.create("complex", imag=2) == 2j
    assert registry.create('["complex", {"real": 1}]', imag=2) == 1 + 2j
    assert registry.create('["complex"]') == 0
    assert registry.create(3j) == 3j
    with pytest.raises(ParamError, match="beside imag"):
        registry.create(3j, imag=2)


@pytest.mark.parametrize("spec", ["[", "[]", "[1]", '["complex", 3]', '["complex", {}, {}]'])
def test_registry_refuses_other_json(spec):
    with pytest.raises(ParamError, match="number: argument 'spec'"):
        Registry("number").create(spec)


def test_registry_unknown_name():
    with pytest.raises(UnknownNameError, match="thing 'x' is not registered"):
        Registry("thing").get("x")


# --- settings -------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch):
    """An environment without gnomon's variables; settings are read anew before and after."""
    before = dict(config._process)
    for row in config.SETTINGS.values():
        for variable in row.env:
            monkeypatch.delenv(variable, raising=False)
    config.reset()
    yield monkeypatch
    config.reset()
    config._process.update(before)


def test_a_user_without_a_home_has_a_cache_folder(environment):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    environment.delenv("XDG_CACHE_HOME", raising=False)
    environment.setattr(Path, "home", homeless)
    assert config.get("cache_dir").name == f"gnomon-{os.getuid()}"


@pytest.mark.parametrize("row", config.SETTINGS.values(), ids=lambda row: row.name)
def test_every_setting_has_a_fitting_default_a_variable_and_a_meaning(row, environment):
    value = config.get(row.name)
    assert row.check("default", value) == value
    assert row.env[0] == f"GNOMON_{row.name.upper()}"
    assert row.doc.endswith(".")


@pytest.mark.parametrize(
    ("variables", "name", "value"),
    [
        ({"OMP_NUM_THREADS": "3,2"}, "num_threads", 3),
        ({"OMP_NUM_THREADS": "3", "GNOMON_NUM_THREADS": "5"}, "num_threads", 5),
        ({"GNOMON_NUM_THREADS": " ", "OMP_NUM_THREADS": "4"}, "num_threads", 4),
        ({"MXNET_ENGINE_TYPE": "NaiveEngine"}, "engine_type", "NaiveEngine"),
        ({"MXNET_BACKWARD_DO_MIRROR": "1"}, "backward_do_mirror", True),
        ({"GNOMON_ONEDNN": "off"}, "onednn", False),
        ({"GNOMON_CACHE_DIR": "/tmp/g"}, "cache_dir", Path("/tmp/g")),
        ({"XDG_CACHE_HOME": "/tmp/x"}, "cache_dir", Path("/tmp/x/gnomon")),
        ({"GNOMON_HANG_REPORT_SECONDS": "2"}, "hang_report_seconds", 2.0),
    ],
)
def test_settings_from_the_environment(variables, name, value, environment):
    for variable, text in variables.items():
        environment.setenv(variable, text)
    assert config.get(name) == value
    assert type(config.get(name)) is type(value) or isinstance(value, Path)


@pytest.mark.parametrize(
    ("variable", "text", "name"),
    [
        ("GNOMON_DEBUG", "loud", "debug"),
        ("GNOMON_NUM_THREADS", "0", "num_threads"),
        ("MXNET_ENGINE_TYPE", "FastEngine", "engine_type"),
        ("GNOMON_LAZY", "maybe", "lazy"),
    ],
)
def test_wrong_environment_names_the_variable(variable, text, name, environment):
    environment.setenv(variable, text)
    with pytest.raises(ParamError, match=f"{variable}: argument '{name}'.*got '?{text}'?$"):
        config.get(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [("debug", "3"), ("debug", True), ("debug", -1), ("lazy", 1), ("num_threads", 0)],
)
def test_wrong_values_change_nothing(name, value, environment):
    before = config.get(name)
    with pytest.raises(ParamError, match=f"config.set: argument '{name}'"):
        config.set(name, value)
    with pytest.raises(ParamError, match=name), config.using(pool_limit=5, **{name: value}):
        pass
    assert config.get(name) == before
    assert config.get("pool_limit") != 5


def test_unknown_setting_has_a_hint(environment):
    for call in (config.get, config.reset, lambda name: config.set(name, 1)):
        with pytest.raises(ParamError, match="unknown setting 'debugg'; did you mean 'debug'"):
            call("debugg")


def test_scope_set_and_reset(environment):
    config.set("debug", 2)
    seen = []
    with config.using(debug=4, lazy=False):
        with config.using(debug=5):
            assert config.get("debug") == 5
        thread = threading.Thread(target=lambda: seen.append(config.get("debug")))
        thread.start()
        thread.join()
        assert (config.get("debug"), config.get("lazy")) == (4, False)
    assert seen == [2]
    assert (config.get("debug"), config.get("lazy")) == (2, True)
    config.reset("debug")
    assert config.get("debug") == 0


# --- public names ---------------------------------------------------------------------------


def fresh(code: str) -> str:
    """What `code` prints in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_gnomon_imports_nothing_but_what_forks_and_handlers_wait_by():
    loaded = fresh("import gnomon, sys; print(*[m for m in sys.modules if m[:7] == 'gnomon.'])")
    waits = {f"gnomon.ground.{name}" for name in ("importing", "handlers", "lock")}
    assert set(loaded.split()) == {"gnomon.ground", *waits}
    assert fresh("import gnomon, sys; print('numpy' in sys.modules)") == "False"


def test_importing_shadow_stays_below_the_engine():
    loaded = fresh("import gnomon.shadow, sys; print(*[m for m in sys.modules])").split()
    above = {"engine", "ops", "graph", "ndarray", "symbol", "module", "io"}
    assert not {f"gnomon.{name}" for name in above} & set(loaded)
    # what is imported when it is first needed
    assert not {"gnomon.code", "gnomon.plan.pipeline", "ml_dtypes", "hashlib", "cffi"} & set(loaded)


@pytest.mark.parametrize("name", gnomon.__all__)
def test_public_name_resolves(name):
    assert getattr(gnomon, name) is getattr(gnomon, name)
    assert name in dir(gnomon)


# what is reached through other modules, is the compiler's own, or needs a package more (serving)
PRIVATE = set(
    """__main__ code commands compatibility expr graph ground launch native ops plan ranks run
    serving""".split()
)


def test_every_module_is_public_or_private():
    folder = Path(gnomon.__file__).parent
    there = {f.stem for f in folder.iterdir() if f.suffix == ".py" or (f / "__init__.py").exists()}
    assert set(gnomon._MODULES) == there - PRIVATE - {"__init__"}


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = gnomon.nope
    assert issubclass(gnomon.MXNetError, GnomonError)


# --- records --------------------------------------------------------------------------------


def declared(decorate):
    """A class of each kind of fields, made by `decorate`."""

    @decorate
    class Declared:
        """Of every kind of fields."""

        a: int
        b: tuple[int, ...] = (1,)
        c: list[int] = field(default_factory=list)
        d: str = field(default="d", compare=False)
        e: str = field(default="e", repr=False)
        f: dict[str, int] = field(init=False, compare=False, default_factory=dict)

    return Declared


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("options", [{}, {"frozen": False}, {"eq": False}])
def test_records_are_dataclasses(options, slots):
    ours = declared(record(**options, slots=slots))
    theirs = declared(dataclass(**{"frozen": True, "slots": slots, **options}))
    calls = [((1,), {}), ((1, (2,)), {}), ((1,), {"c": [3]}), ((1,), {"d": "x"}), ((), {"a": 2})]
    mine, others = ([kind(*a, **k) for a, k in calls] for kind in (ours, theirs))
    assert [repr(x) for x in mine] == [repr(x) for x in others]
    for x, other in zip(mine, others, strict=True):
        assert [x == y for y in mine] == [other == y for y in others]
        assert asdict(x) == asdict(other)
        assert repr(replace(x, a=5)) == repr(replace(other, a=5))
        assert hasattr(x, "__dict__") == hasattr(other, "__dict__")
        assert repr(copy.deepcopy(x)) == repr(x)
        assert x != other
    assert mine[0].c is not mine[1].c
    assert ours.__match_args__ == theirs.__match_args__
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)


def test_a_record_is_frozen_and_hashed_by_its_fields():
    @record()
    class Point:
        x: int
        y: int = 0

        def __post_init__(self):
            assert self.x >= self.y

    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    with pytest.raises(FrozenInstanceError, match="'x'"):
        Point(1).x = 2
    with pytest.raises(FrozenInstanceError, match="'x'"):
        del Point(1).x
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required .*'x'"):
        Point()
    with pytest.raises(AssertionError):
        Point(1, 2)


def test_a_record_without_words_has_no_signature_written(monkeypatch):
    monkeypatch.setattr(inspect, "signature", lambda _: pytest.fail("a signature was written"))

    @record()
    class Point:
        x: int

    assert Point(1).x == 1


def test_arrays_name_their_own_data_type():
    assert dtype.of(np.zeros(2, "f2")) is dtype.float16 and dtype.of(np.float64(1)) is dtype.float64
    with pytest.raises(DTypeError, match="complex"):
        dtype.of(np.zeros(1, complex))
    with pytest.raises(DTypeError, match=r"dtype \['x'"):
        dtype.of(["x"] * 1000)
