"""Charts of memory plans: time goes right, addresses go up, a rectangle is a value's life."""

from __future__ import annotations

from html import escape

from gnomon.executor.report.listing import Life, MemoryPlan

WIDTH, HEIGHT = 1040, 360
LEFT, RIGHT, TOP, BOTTOM = 78, 12, 10, 34
LINES = 4


def memory_chart(plan: MemoryPlan, forward: int) -> str:
    """The lives of values in the block as an SVG element; `forward` tasks come before backward."""
    tasks, total = max(len(plan.tasks), 1), max(plan.total, 1)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    lines = [
        f'<svg class="memory" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' role="img" aria-label="the lives of buffers">'
    ]
    for k in range(LINES + 1):
        y = TOP + high * (1 - k / LINES)
        lines.append(f'<line class="grid" x1="{LEFT}" y1="{y:g}" x2="{WIDTH - RIGHT}" y2="{y:g}"/>')
        label = in_bytes(total * k / LINES)
        lines.append(f'<text class="axis end" x="{LEFT - 6}" y="{y + 4:g}">{label}</text>')
    placed = (life for life in plan.lives if life.offset >= 0)
    lines += [_life(life, wide / tasks, high / total) for life in placed]
    if 0 < forward < tasks:
        x = LEFT + wide * forward / tasks
        lines.append(f'<line class="border" x1="{x:g}" y1="{TOP}" x2="{x:g}" y2="{TOP + high}"/>')
        lines.append(f'<text class="axis end" x="{x - 6:g}" y="{HEIGHT - 12}">forward</text>')
        lines.append(f'<text class="axis" x="{x + 6:g}" y="{HEIGHT - 12}">backward</text>')
    lines += [_number(LEFT, "task 0"), _number(WIDTH - RIGHT, f"task {tasks - 1}", "axis end")]
    return "\n".join([*lines, "</svg>"])


def _number(x: float, text: str, kind: str = "axis") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{HEIGHT - 12}">{text}</text>'


def _life(life: Life, across: float, up: float) -> str:
    x, wide = LEFT + life.born * across, (life.dies - life.born + 1) * across
    high = max(life.nbytes * up, 0.6)
    y = HEIGHT - BOTTOM - life.offset * up - high
    hue = (life.born * 47) % 360
    shape = "x".join(map(str, life.shape)) or "scalar"
    text = (
        f"{life.name}: {shape} {life.dtype}, {in_bytes(life.nbytes)} at {life.offset}, "
        f"tasks {life.born} to {life.dies}"
    )
    return (
        f'<rect class="life" x="{x:.2f}" y="{y:.2f}" width="{max(wide, 0.8):.2f}"'
        f' height="{high:.2f}" fill="hsl({hue} 62% 68%)"><title>{escape(text)}</title></rect>'
    )


def in_bytes(number: float) -> str:
    """Bytes as people read them.

    >>> in_bytes(1536), in_bytes(3 << 20), in_bytes(12)
    ('1.5 KB', '3 MB', '12 B')
    """
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g} B"
