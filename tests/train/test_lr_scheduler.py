"""Schedules refuse settings that say nothing."""

import pytest

import gnomon as mx
from gnomon import lr_scheduler as lr


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: lr.FactorScheduler(0), "step"),
        (lambda: lr.FactorScheduler(1, 2), "factor"),
        (lambda: lr.MultiFactorScheduler([]), "step"),
        (lambda: lr.MultiFactorScheduler([3, 2]), "step"),
        (lambda: lr.MultiFactorScheduler([3], 2), "factor"),
        (lambda: lr.PolyScheduler(0), "max_update"),
        (lambda: lr.CosineScheduler(1.5), "max_update"),
        (lambda: lr.LRScheduler(warmup_steps=-1), "warmup_steps"),
        (lambda: lr.LRScheduler(warmup_begin_lr=1.0), "warmup_begin_lr"),
        (lambda: lr.LRScheduler(warmup_mode="slow"), "warmup_mode"),
        (lambda: lr.LRScheduler().get_warmup_lr(3), "num_update"),
    ],
)
def test_refused(make, argument):
    with pytest.raises(ValueError, match=f"argument '{argument}'"):
        make()


def test_a_warm_up_as_long_as_the_schedule():
    schedule = lr.PolyScheduler(5, warmup_steps=5, base_lr=1.0)
    assert [schedule(4), schedule(5)] == [0.8, 0.0]


@pytest.mark.parametrize(("name", "start"), [("ftrl", 0.2), ("sgd", 0.3), ("adagrad", 0.3)])
def test_where_the_schedule_of_an_optimizer_starts(name, start):
    """From `learning_rate`, but for Ftrl, which leaves the schedule as it is; MXNet does both."""
    schedule = lr.FactorScheduler(3, base_lr=0.2)
    optimizer = mx.optimizer.create(name, lr_scheduler=schedule, learning_rate=0.3)
    assert optimizer.learning_rate == schedule.base_lr == start
    assert mx.optimizer.create(name, learning_rate=0.3).learning_rate == 0.3


def test_steps_are_logged_as_programs_parse_them(caplog):
    caplog.set_level("INFO")
    for schedule in (
        lr.FactorScheduler(2, 0.5, base_lr=0.1),
        lr.MultiFactorScheduler([2], 0.5, 0.1),
    ):
        schedule(3)
        assert caplog.messages.pop() == "Update[3]: Change learning rate to 5.00000e-02"
        caplog.clear()
    schedule = lr.FactorScheduler(2, 0.5, stop_factor_lr=0.05, base_lr=0.1)
    schedule(5)
    assert caplog.messages == [
        "Update[5]: Change learning rate to 5.00000e-02",
        "Update[5]: learning rate arrived at 5.00000e-02",
    ]
