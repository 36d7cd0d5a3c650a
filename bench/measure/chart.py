"""Draws ours beside the best peer's as SVG: a pair of bars a workload, on a logarithmic scale.

No dependencies, and no background: the text follows the reader's light or dark scheme. A viewer that
knows no schemes gets a grey that can be read on both.
"""
import math
from xml.sax.saxutils import escape

from . import figures, targets, workloads

WIDTH, LEFT, RIGHT = 860, 200, 170
TOP, ROW, BAR = 62, 34, 11
BOTTOM = 34
LABELS = {0: "1 ns", 1: "10 ns", 2: "100 ns", 3: "1 µs", 4: "10 µs", 5: "100 µs", 6: "1 ms", 7: "10 ms",
          8: "100 ms", 9: "1 s", 10: "10 s"}

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #737b85; }
.head { font-size: 14px; font-weight: 600; }
.small { font-size: 11px; }
.grid { stroke: #737b85; stroke-opacity: .3; }
.spread { stroke: #737b85; }
.ours { fill: #2f81f7; }
.peer { fill: #c69026; }
@media (prefers-color-scheme: light) {
  text { fill: #24292f; }
  .small { fill: #57606a; }
  .spread { stroke: #24292f; }
}
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9da7b1; }
  .spread { stroke: #e6edf3; }
}
"""


def time_text(ns):
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if ns < limit:
            value = ns / (limit / 1e3)
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
    return f"{ns / 1e9:.1f} s"


def pairs(lines, threads):
    """[(workload, our Figure, the best peer's)], in the tables' order; only where there are both."""
    data = figures.merge(lines)
    found = [(bench, figures.wall(data, "smarm", bench, threads),
              figures.best(data, bench, threads, targets.rivals(bench))) for bench in workloads.IN_PROCESS]
    return [(bench, ours, best) for bench, ours, best in found if ours and best]


class Scale:
    """Nanoseconds to a place on the axis; whole powers of ten at both ends."""

    def __init__(self, values):
        self.first = math.floor(math.log10(min(values)))
        self.last = max(math.ceil(math.log10(max(values))), self.first + 1)

    def __call__(self, ns):
        share = (math.log10(ns) - self.first) / (self.last - self.first)
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0), 1)


def bar(scale, kind, y, figure, text):
    end = scale(figure.median)
    middle = y + BAR / 2
    return (f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}">'
            f"<title>{escape(text)}</title></rect>"
            f'<line class="spread" x1="{scale(figure.low):.1f}" x2="{scale(figure.high):.1f}" '
            f'y1="{middle}" y2="{middle}"/>'
            f'<text class="small" x="{max(end, scale(figure.high)) + 5:.1f}" y="{y + BAR - 1.5}">'
            f"{escape(text)}</text>")


def axis(scale, height):
    parts = []
    for power in range(scale.first, scale.last + 1):
        x = f"{scale(10.0 ** power):.1f}"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{height - BOTTOM + 4}"/>'
                     f'<text class="small" x="{x}" y="{height - BOTTOM + 20}" text-anchor="middle">'
                     f"{LABELS.get(power, f'10^{power} ns')}</text>")
    return parts


def draw(lines, threads=2):
    """The SVG text. ValueError where no workload has a figure of ours and of a peer."""
    rows = pairs(lines, threads)
    if not rows:
        raise ValueError(f"no workload has figures of smarm and of a peer with {threads} threads")
    height = TOP + ROW * len(rows) + BOTTOM
    scale = Scale([figure.median for _, ours, best in rows for figure in (ours, best)])
    title = f"Time per operation with {threads} threads, smarm and the best of the other runtimes"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img" aria-label="{escape(title)}">', f"<style>{STYLE}</style>",
             f'<text class="head" x="10" y="20">{escape(title)}</text>',
             '<rect class="ours" x="10" y="32" width="12" height="12"/><text x="27" y="42">smarm</text>'
             '<rect class="peer" x="85" y="32" width="12" height="12"/>'
             '<text x="102" y="42">the best peer; shorter is faster, logarithmic scale, lines: quartiles'
             "</text>", *axis(scale, height)]
    for index, (bench, ours, best) in enumerate(rows):
        y = TOP + ROW * index
        ratio = f"{time_text(ours.median)} ({ours.median / best.median:.2f}x)"
        parts += [f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end">{escape(bench)}</text>',
                  bar(scale, "ours", y, ours, ratio),
                  bar(scale, "peer", y + BAR + 1, best, f"{best.peer} {time_text(best.median)}")]
    return "\n".join([*parts, "</svg>", ""])
