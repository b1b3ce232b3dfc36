"""All ways of labels through time, as native functions: forwards, and backwards with the gradient.

A probability is a float and an exponent, `number * HUGE ** exponent`: sums and products then need
no logarithms, and nothing is too small. Addresses are of dense arrays, numbers in float64 apart
from exponents in int64: of the chances of classes (time, batch, classes); `states` (batch, count),
`times` and `sizes` (batch,) are in int64. A state is left out where no way leads there from the
first one in time, or from there to the last one. (Graves et al., 2006.)
"""

from __future__ import annotations

from gnomon.native.words import Reals, Words, native

HUGE, TINY = 2.0**256, 2.0**-256
LOG_HUGE = 177.445678223346  # 256 log 2
NEVER = -(1 << 60)  # the exponent of nothing; 10^8 steps of the least logarithm are above it


@native
def highest(a: int, b: int, c: int) -> int:
    """The greatest of three exponents."""
    top = a if a > b else b
    return top if top > c else c


@native
def scaled(number: float, exponent: int, top: int) -> float:
    """A number for the exponent `top`, which is not below its own; 0 where it is far below."""
    if exponent == top:
        return number
    return number * TINY if exponent == top - 1 else 0.0


@native
def put(numbers: Reals, exponents: Words, s: int, number: float, exponent: int) -> None:
    """Store a number that is neither too small nor too large."""
    if number <= 0.0:
        exponent = NEVER
    elif number < TINY:
        number = number * HUGE
        exponent = exponent - 1
    elif number > HUGE:
        number = number * TINY
        exponent = exponent + 1
    numbers[s] = number
    exponents[s] = exponent


@native
def skips(states: Words, blank: int, s: int) -> bool:
    """Whether a way leads from the state two before: blanks, and equal symbols, stand between."""
    return s >= 2 and states[s] != blank and states[s] != states[s - 2]


@native
def first(t: int, steps: int, size: int) -> int:
    """The first state from which the end can still be reached."""
    low = size - 2 * (steps - t)
    return low if low > 0 else 0


@native
def end(t: int, size: int) -> int:
    """The number of states that can be reached."""
    high = 2 * t + 2
    return high if high < size else size


@native
def start(
    states: Words, chance: Reals, powers: Words, now: Reals, raised: Words, low: int, high: int
) -> None:
    """Ways at the first time: to the first two states."""
    for s in range(low, high):
        k = states[s]
        put(now, raised, s, chance[k], powers[k])


@native
def step(
    states: Words, chance: Reals, powers: Words, before: Reals, behind: Words, now: Reals,
    raised: Words, low: int, high: int, blank: int,
) -> None:  # fmt: skip
    """Ways at a time, from those at the time before: from a state, and from the two before it."""
    for s in range(low, high):
        k = states[s]
        one = behind[s - 1] if s >= 1 else NEVER
        two = behind[s - 2] if skips(states, blank, s) else NEVER
        top = highest(behind[s], one, two)
        total = scaled(before[s], behind[s], top)
        if one >= top - 1 and one > NEVER:
            total += scaled(before[s - 1], one, top)
        if two >= top - 1 and two > NEVER:
            total += scaled(before[s - 2], two, top)
        put(now, raised, s, total * chance[k], top + powers[k])


@native
def fill(numbers: Reals, exponents: Words, number: float, low: int, high: int) -> None:
    """The same for these states."""
    for s in range(low, high):
        put(numbers, exponents, s, number, 0)


@native
def forwards(
    chance_at: int, powers_at: int, states_at: int, times_at: int, sizes_at: int,
    found_at: int, raised_at: int, batch: int, count: int, classes: int, blank: int,
) -> None:  # fmt: skip
    """Ways to each state at each time: numbers `found` and exponents `raised`."""
    times = Words(times_at)
    sizes = Words(sizes_at)
    for b in range(batch):
        states = Words(states_at) + b * count
        size = sizes[b]
        for t in range(times[b]):
            row = (t * batch + b) * classes
            chance = Reals(chance_at) + row
            powers = Words(powers_at) + row
            row = (t * batch + b) * count
            now = Reals(found_at) + row
            raised = Words(raised_at) + row
            low = first(t, times[b], size)
            high = end(t, size)
            fill(now, raised, 0.0, high, high + 2 if high + 2 < size else size)
            if t == 0:
                start(states, chance, powers, now, raised, low, high)
            else:
                before = Reals(found_at) + (row - batch * count)
                behind = Words(raised_at) + (row - batch * count)
                step(states, chance, powers, before, behind, now, raised, low, high, blank)


@native
def follow(
    states: Words, rest: Reals, height: Words, now: Reals, level: Words, low: int, high: int,
    size: int, blank: int,
) -> None:  # fmt: skip
    """What comes behind states, without their own classes, from what comes behind the next time."""
    for s in range(low, high):
        far = s + 2 < size and skips(states, blank, s + 2)
        one = height[s + 1] if s + 1 < size else NEVER
        two = height[s + 2] if far else NEVER
        top = highest(height[s], one, two)
        total = scaled(rest[s], height[s], top)
        if s + 1 < size:
            total += scaled(rest[s + 1], one, top)
        if far:
            total += scaled(rest[s + 2], two, top)
        put(now, level, s, total, top)


@native
def lowered_to_0(number: float, exponent: int) -> float:
    """A number that is not above 1, without its exponent."""
    while exponent > 0 and number > 0.0:
        number = number * HUGE
        exponent = exponent - 1
    while exponent < 0 and number > 0.0:
        number = number * TINY
        exponent = exponent + 1
    return number


@native
def backwards(
    chance_at: int, powers_at: int, states_at: int, times_at: int, sizes_at: int,
    found_at: int, raised_at: int, inverse_at: int, lowered_at: int, grads_at: int, ways_at: int,
    batch: int, count: int, classes: int, blank: int,
) -> None:  # fmt: skip
    """Take what each class has of all ways off `grads` (time, batch, classes).

    `found` and `raised` are what `forwards` gave, `inverse` and `lowered` are 1 by the probability
    of each label; `ways` is room for 4 times `count` words.
    """
    times = Words(times_at)
    sizes = Words(sizes_at)
    rest = Reals(ways_at)
    height = Words(ways_at) + count
    now = Reals(ways_at) + 2 * count
    level = Words(ways_at) + 3 * count
    for b in range(batch):
        states = Words(states_at) + b * count
        size = sizes[b]
        inverse = (Reals(inverse_at) + b)[0]
        lowered = (Words(lowered_at) + b)[0]
        for k in range(times[b]):
            t = times[b] - 1 - k
            low = first(t, times[b], size)
            high = end(t, size)
            if k == 0:
                fill(now, level, 1.0, low, high)
            else:
                follow(states, rest, height, now, level, low, high, size, blank)
            fill(rest, height, 0.0, low - 2 if low > 2 else 0, low)
            row = (t * batch + b) * classes
            chance = Reals(chance_at) + row
            powers = Words(powers_at) + row
            grads = Reals(grads_at) + row
            row = (t * batch + b) * count
            found = Reals(found_at) + row
            raised = Words(raised_at) + row
            for s in range(low, high):
                c = states[s]
                share = found[s] * now[s] * inverse
                grads[c] = grads[c] - lowered_to_0(share, raised[s] + level[s] + lowered)
                put(rest, height, s, now[s] * chance[c], level[s] + powers[c])
