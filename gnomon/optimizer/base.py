"""What all optimizers share: rates and decays per parameter, update counts, master copies.

State: `num_update` is the largest number of updates any parameter has had; schedulers are asked
with it. Counts are kept per parameter index and per device (`_set_current_context`), so that
replicas on several devices count alike.

A subclass is two hooks: `create_state`, and either `formula`, an expression that is compiled for
all weights at once, or `update`, which does as it likes with arrays.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, ClassVar, SupportsFloat

import numpy as np

from gnomon.base import ArgumentError, ParamError, ShapeError, check_kind, complaint, shown
from gnomon.expr.node import Expr
from gnomon.ground.arguments import CheckedArguments
from gnomon.ground.folder_registry import FolderRegistry
from gnomon.lr_scheduler import LRScheduler
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import changes
from gnomon.ndarray.lazy.invoke import check_write
from gnomon.ops.update import Update, bounded
from gnomon.optimizer.checked import METHODS, of_weight, one_by_one
from gnomon.optimizer.fused import Exprs, FusedUpdates, Given, Item, Join, Rates
from gnomon.optimizer.kept import arrays_of, warn_of_half, zeros_like
from gnomon.optimizer.rows import push_sparse
from gnomon.registry import class_name, enter_class

# Attributes that formulas do not read as constants: they change, and compile nothing anew.
_NOT_COMPILED = frozenset(("lr", "wd", "rescale_grad", "num_update", "begin_num_update"))
_ASKED = "_get_lr", "_get_wd"  # what subclasses define, or the same of several, as with MXNet
_NUMBERS = frozenset((int, float, bool, type(None)))

OPTIMIZERS: FolderRegistry[type[Optimizer]] = FolderRegistry(
    "optimizer", "gnomon.optimizer", ignore_case=True
)


class ScheduleWarning(ParamError, UserWarning):
    """A rate was set that a schedule decides: MXNet raises a UserWarning there."""


class Optimizer(CheckedArguments):
    """Base of optimizers.

    Args:
        rescale_grad: factor on every gradient, 1 / batch size as a rule.
        param_idx2name: name of the parameter at each index.
        wd: weight decay; parameters not named `*_weight` or `*_gamma` are free of it.
        clip_gradient: bound on each element of a gradient, after rescaling; none if not above 0.
        learning_rate: the rate, or the rate `lr_scheduler` starts from.
        lr_scheduler: rate by number of updates.
        sym: symbol whose variables' `lr_mult` and `wd_mult` attributes count.
        begin_num_update: number of updates done before, in an earlier run.
        multi_precision: keep a float32 copy of float16 weights and update that.
        param_dict: things with `lr_mult` and `wd_mult` (Gluon's parameters) by index.
    """

    _zeros: ClassVar[int] = 0  # arrays of zeros that an update keeps, at first
    _counts_alone: ClassVar[bool] = False  # whether `_numbers` differ by the count of updates alone
    _decaying: ClassVar[tuple[str, ...]] = ("_weight", "_gamma")  # ends of their names
    _asks_subclass: ClassVar[bool] = False  # whether a subclass says itself what rate and decay are
    _keyword_aliases: ClassVar = {"lr": "learning_rate", "weight_decay": "wd", "mom": "momentum"}
    aggregate_num: int = 0  # weights that one of MXNet's operators updates; pickles tell it there
    opt_registry: ClassVar[FolderRegistry[type[Optimizer]]] = OPTIMIZERS

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | None = None,
        sym: Any = None,
        begin_num_update: float = 0,
        multi_precision: bool = False,
        param_dict: Mapping[int, Any] | None = None,
    ) -> None:
        if not isinstance(param_idx2name or {}, Mapping):
            expected = "a mapping index -> name"
            raise ParamError(complaint("Optimizer", "param_idx2name", expected, param_idx2name))
        where = type(self).__name__
        check_kind(where, "param_dict", param_dict or {}, Mapping, "parameters by index")
        if sym is not None and not hasattr(sym, "attr_dict"):
            raise TypeError(complaint(where, "sym", "a Symbol", shown(sym)))
        self.rescale_grad = rescale_grad
        self.clip_gradient = clip_gradient
        self.wd = wd
        self.lr_scheduler = lr_scheduler
        self.lr = 0.01 if learning_rate is None and lr_scheduler is None else learning_rate
        self._start_schedule()
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.multi_precision = multi_precision
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = dict(param_dict or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self._fused: dict[tuple[Any, ...], FusedUpdates] = {}
        self._given: Given | None = None  # what was updated last
        self.set_lr_mult({})
        self.set_wd_mult({})

    def _start_schedule(self) -> None:
        if self.lr_scheduler is None:
            return
        # without a rate to start from any function of the number of updates will do
        if not hasattr(self.lr_scheduler, "__call__" if self.lr is None else "base_lr"):
            got = shown(self.lr_scheduler)
            where = type(self).__name__
            raise ArgumentError(complaint(where, "lr_scheduler", "an LRScheduler", got))
        if self.lr is None:
            return
        if self.lr_scheduler.base_lr != self.lr:
            text = "%s: the schedule starts from learning_rate=%s instead of its base_lr=%s"
            logging.warning(text, type(self).__name__, self.lr, self.lr_scheduler.base_lr)
        self.lr_scheduler.base_lr = self.lr

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """Make an optimizer class known to `create` by its lower-case name; a decorator.

        A warning tells of another class that had the name.
        """
        return enter_class(OPTIMIZERS, class_name("Optimizer.register", klass), klass)

    @staticmethod
    def create_optimizer(name: str | Optimizer, **kwargs: Any) -> Optimizer:
        """An optimizer by its name, in any case, with its arguments; or `name` itself.

        Raises:
            UnknownNameError: there is none of the name.
            TypeError: it does not take these arguments.
        """
        return name if isinstance(name, Optimizer) else OPTIMIZERS.get(name)(**kwargs)

    @of_weight
    def create_state(self, index: Any, weight: Any) -> Any:
        """The arrays an update keeps between calls for one weight: None, an NDArray, or a tuple."""
        made = tuple(zeros_like(weight) for _ in range(self._zeros))
        return made if len(made) > 1 else made[0] if made else None

    def formula(self, weight: Expr, grad: Expr, states: Exprs, rates: Rates) -> Exprs:
        """The new weight and the new states, as expressions of the old ones and the gradient.

        The gradient is rescaled already, but not clipped. `rates.lr` and `rates.wd` are rate and
        decay, with the multipliers of this weight; attributes of the optimizer, such as
        `self.momentum`, are constants, and compile anew where they change. `rates.more` are the
        numbers that `_numbers` of a subclass gives behind rate and decay, anew at each update.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define formula(weight, grad, states, rates) "
            "or update(index, weight, grad, state)"
        )

    @one_by_one
    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` by `grad`, and `state` with it; or those in lists of one length.

        Raises:
            ParamError: lists of several lengths.
        """
        given = self._gathered([index], [weight], [grad], [state], inner=True)
        self._update_count(index)
        self._push(given)

    def create_state_multi_precision(self, index: Any, weight: Any) -> Any:
        """`create_state`, and a float32 copy where `multi_precision` asks for one."""
        where = f"{type(self).__name__}.create_state"
        check_kind(where, "weight", weight, Array, "an NDArray")
        if not self._needs_master(weight):
            warn_of_half(where, weight)
        return self._made_state(index, weight)

    def _made_state(self, index: Any, weight: Any) -> Any:
        """The same without a word: what states that were loaded are compared with."""
        if not self._needs_master(weight):
            return self.create_state(index, weight)
        master = weight.astype(np.float32)
        return self._with_master(master, self.create_state(index, master))

    @one_by_one
    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """`update`, through the float32 copy where there is one."""
        if not self._needs_master(weight):
            self.update(index, weight, grad, state)
        elif self._fuses():
            self.update_all([index], [weight], [grad], [state])
        else:
            master, inner = self._master_and_state(state)
            self.update(index, master, grad.astype(np.float32), inner)
            weight[:] = master.astype(weight.dtype)

    def update_all(
        self,
        indices: Sequence[Any],
        weights: Sequence[Any],
        grads: Sequence[Any],
        states: Sequence[Any],
        join: Join | None = None,
    ) -> None:
        """`update_multi_precision` of several weights; one operation where there is a formula.

        `join(update, numbers)` may take that operation over, and says whether it did.
        """
        if not (indices and self._fuses()):
            for each in zip(indices, weights, grads, states, strict=True):
                self.update_multi_precision(*each)
            return
        given = self._given
        if given is None or not given.same(indices, weights, grads, states):
            given = self._given = self._gathered(indices, weights, grads, states)
        self._count(given)
        self._push(given, join)

    def _gathered(
        self,
        indices: Sequence[Any],
        weights: Sequence[Any],
        grads: Sequence[Any],
        states: Sequence[Any],
        inner: bool = False,
    ) -> Given:
        """Weights with what belongs to them; `inner`: they are the float32 copies themselves."""
        items = []
        for index, weight, grad, state in zip(indices, weights, grads, states, strict=True):
            if grad.shape != weight.shape:
                where, expected = f"{type(self).__name__}.update", f"shape {weight.shape}"
                raise ShapeError(complaint(where, f"grad of weight {index}", expected, grad.shape))
            master = None
            if not inner and self.multi_precision and self._needs_master(weight):
                master, state = self._master_and_state(state)
            items.append(Item(weight, grad, arrays_of(state), master))
        return Given(indices, weights, grads, tuple(states), items)

    def _push(self, given: Given, join: Join | None = None) -> None:
        items = given.items
        if mode.recording:
            for item in items:
                check_write(type(self).__name__, "weight", item.weight)
        if given.is_sparse:
            for index, item in zip(given.indices, items, strict=True):
                push_one = functools.partial(self._push_one, index)
                push_sparse(item, self._is_lazy(item.weight), push_one)
            return
        rates = self._rates(given)
        settings = self._settings()
        fused = self._fused.get(settings)
        if fused is None:
            self._fused.clear()
            fused = self._fused[settings] = FusedUpdates(self.formula)
        fused.push(given, rates, join)

    def _settings(self) -> tuple[Any, ...]:
        """The attributes that are constants of the formula."""
        own = self.__dict__
        return tuple(compress(own.values(), _constants((*own, *map(type, own.values())))))

    def _push_one(self, index: Any, item: Item) -> None:
        self._push(Given((index,), (item.weight,), (item.grad,), (item.states,), [item]))

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for name, checking in METHODS.items():
            if name in vars(cls):
                setattr(cls, name, checking(vars(cls)[name]))
        asked = *_ASKED, *[f"{name}s" for name in _ASKED]
        cls._asks_subclass = any(getattr(cls, n) is not getattr(Optimizer, n) for n in asked)

    def _asked_rates(self, indices: Sequence[Any]) -> list[float]:
        """As `_rates`, by the methods that a subclass has instead of factors."""
        kind, rates = type(self), [self.rescale_grad]
        one_rate, one_decay = (
            getattr(kind, lone) is not getattr(Optimizer, lone)
            or getattr(kind, lone + "s") is getattr(Optimizer, lone + "s")
            for lone in _ASKED
        )
        for index in indices:
            lr = self._get_lr(index) if one_rate else self._get_lrs([index])[0]
            wd = self._get_wd(index) if one_decay else self._get_wds([index])[0]
            rates += self._numbers(index, lr, wd)
        return rates

    def _rates(self, given: Given) -> list[float]:
        """The factor on gradients, then the numbers of each update."""
        if self._asks_subclass:
            return self._asked_rates(given.indices)
        indices, rate, decay = given.indices, self.learning_rate, self.wd
        own = type(self)._numbers is not Optimizer._numbers
        numbers = None
        if not (self.lr_mult or self.wd_mult) and self._is_plain(given):
            if not own:
                numbers = rate, decay
            elif self._counts_alone and (given.counts is not None or len(indices) == 1):
                numbers = self._numbers(indices[0], rate, decay)
        if numbers is not None:
            numbers = (self.rescale_grad, *numbers)
            if numbers != given.numbers:
                given.rates, given.numbers = [numbers[0], *numbers[1:] * len(indices)], numbers
            return given.rates
        rates = [self.rescale_grad]
        lr_mult = self._multipliers(indices, "lr_mult", self.lr_mult)
        wd_mult = self._multipliers(indices, "wd_mult", self.wd_mult)
        for index, faster, heavier in zip(indices, lr_mult, wd_mult, strict=True):
            lr, wd = rate * faster, decay * heavier
            rates += self._numbers(index, lr, wd) if own else (lr, wd)
        return rates

    def _is_plain(self, given: Given) -> bool:
        """Whether nothing of `param_dict` has a factor on its rate or decay."""
        table = self.param_dict
        if not table or (given.things is table and given.changes == changes.count):
            return not table or given.is_plain
        things = [table[i] for i in given.indices if i in table]
        given.is_plain = all(x.lr_mult == x.wd_mult == 1.0 for x in things)
        if all(getattr(type(x), "tells_changes", False) for x in things):
            given.things, given.changes = table, changes.count
        return given.is_plain

    def _is_lazy(self, weight: Any) -> bool:
        """Whether rows of `weight` without a gradient are left alone where it is row-sparse."""
        return bool(getattr(self, "lazy_update", False))

    def _fuses(self) -> bool:
        """Whether updates are the formula's, and not a subclass's own."""
        kind = type(self)
        return (
            kind.update is Optimizer.update
            and kind.update_multi_precision is Optimizer.update_multi_precision
        )

    def _numbers(self, index: Any, lr: float, wd: float) -> tuple[float, ...]:
        """What the formula reads from memory: rate and decay first, as many for every weight."""
        return lr, wd

    def _with_master(self, master: Any, state: Any) -> Any:
        return master, state

    def _master_and_state(self, state: Any) -> tuple[Any, Any]:
        return state[0], state[1]

    def _needs_master(self, weight: Any) -> bool:
        return bool(self.multi_precision and np.dtype(weight.dtype) == np.float16)

    @property
    def learning_rate(self) -> float:
        """The rate now, before multipliers of single parameters."""
        if self.lr_scheduler is not None:
            return self.lr_scheduler(self.num_update)
        return self.lr

    def set_learning_rate(self, lr: float) -> None:
        """Set the rate; ScheduleWarning, which is raised, where a schedule decides it."""
        if self.lr_scheduler is not None:
            got = type(self.lr_scheduler).__name__
            raise ScheduleWarning(
                complaint("Optimizer.set_learning_rate", "lr", "no lr_scheduler that sets it", got)
            )
        check_kind("Optimizer.set_learning_rate", "lr", lr, SupportsFloat, "a number")
        self.lr = lr

    def set_lr_scale(self, args_lrscale: Mapping[Any, float]) -> None:
        """Refused, as in MXNet.

        Raises:
            DeprecationWarning: `set_lr_mult` does it.
        """
        raise DeprecationWarning("Optimizer.set_lr_scale: use set_lr_mult")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Factors on the rate by name or index; those not named keep their symbol's, or 1."""
        check_kind("set_lr_mult", "args_lr_mult", args_lr_mult, Mapping, "factors by name or index")
        self.lr_mult = {**self._attributes("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Factors on the decay by name or index; unnamed ones keep their symbol's, or the rule's.

        The rule: 1 for names ending in `_weight` or `_gamma`, else 0.
        """
        names = self.idx2name.values()
        free = {name: 0.0 for name in names if not name.endswith(self._decaying)}
        self.wd_mult = {**free, **self._attributes("__wd_mult__"), **args_wd_mult}

    def _attributes(self, key: str) -> dict[Any, float]:
        if not self.sym_info:
            return {}
        attrs, arguments = self.sym_info
        return {n: float(attrs[n][key]) for n in arguments if key in attrs.get(n, {})}

    def _set_current_context(self, device_id: int) -> None:
        counts = self._all_index_update_counts
        self._index_update_count = counts.setdefault(device_id, {})

    def _count(self, given: Given) -> None:
        """One more update of all that is given."""
        counts = self._index_update_count
        if given.counts is counts:
            given.count += 1
            counts.update(dict.fromkeys(given.indices, given.count))
            self.num_update = max(self.num_update, given.count)
            return
        self._update_counts(given.indices)
        known = set(map(counts.get, given.indices))
        if len(known) == 1:
            given.counts, given.count = counts, known.pop()

    def _update_count(self, index: Any) -> None:
        self._update_counts(index if isinstance(index, (list, tuple)) else (index,))

    def _update_counts(self, indices: Sequence[Any]) -> None:
        if self._given is not None:
            self._given.counts = None
        counts, begin = self._index_update_count, self.begin_num_update
        known = list(map(counts.get, indices))
        new = [(begin if count is None else count) + 1 for count in known]
        counts.update(zip(indices, new, strict=True))
        self.num_update = max(self.num_update, *new) if new else self.num_update

    def _get_lr(self, index: Any) -> float:
        return self.learning_rate * self._multiplier(index, "lr_mult", self.lr_mult)

    def _get_wd(self, index: Any) -> float:
        return self.wd * self._multiplier(index, "wd_mult", self.wd_mult)

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        return [self._get_lr(index) for index in indices]

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        return [self._get_wd(index) for index in indices]

    def _multiplier(self, index: Any, attribute: str, table: Mapping[Any, float]) -> float:
        return self._multipliers((index,), attribute, table)[0]

    def _multipliers(
        self, indices: Sequence[Any], attribute: str, table: Mapping[Any, float]
    ) -> list[float]:
        own, names = self.param_dict, self.idx2name
        found = [1.0] * len(indices)
        if table:
            found = [table[i] if i in table else table.get(names.get(i), 1.0) for i in indices]
        if own:
            pairs = zip(indices, found, strict=True)
            found = [float(getattr(own[i], attribute)) if i in own else x for i, x in pairs]
        return found

    def _operator(
        self,
        kind: type[Update],
        weight: Expr,
        grad: Expr,
        states: Exprs,
        rates: Rates,
        **settings: Any,
    ) -> Exprs:
        """The formula of an update operator, its rates as expressions."""
        bound = self.clip_gradient or -1.0
        op = kind(lr=0.0, clip_gradient=bound, **settings)
        op.__dict__.update(lr=rates.lr, wd=rates.wd)
        return op.new(weight, grad, *states)

    def _clipped(self, grad: Expr) -> Expr:
        """The gradient within the bound."""
        return bounded(grad, self.clip_gradient or -1.0)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **_of_process()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(_of_process() | state)  # a pickle of MXNet has none of them
        present = self._index_update_count  # one of them all, which copies are not
        counts = self._all_index_update_counts.items()
        self._set_current_context(next((k for k, v in counts if v == present), 0))


OPTIMIZERS.serves(Optimizer)
register: Callable[[type[Optimizer]], type[Optimizer]] = Optimizer.register
create = Optimizer.create_optimizer


@functools.lru_cache(maxsize=256)
def _constants(named: tuple[Any, ...]) -> tuple[bool, ...]:
    """Which attributes are constants of formulas, by the names of all and then their kinds."""
    pairs = zip(named, named[len(named) // 2 :], strict=False)
    return tuple(kind in _NUMBERS and name not in _NOT_COMPILED for name, kind in pairs)


def _of_process() -> dict[str, Any]:
    """What no pickle keeps: Gluon's parameters, and compiled batches, which hold addresses."""
    return {"param_dict": {}, "_fused": {}, "_given": None}
