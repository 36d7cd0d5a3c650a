"""From JSON lines to figures: rounds become one, and the best peer is found.

A figure is nanoseconds per operation with the spread of its runs: median and quartiles of all the runs
of all rounds together.
"""
import collections
import dataclasses
import statistics

THREADS = (1, 2, 8)
RUNS_MIN = 7  # a median of fewer is marked
# Those against whom a ratio is counted; threads and bare epoll are shown beside them.
RIVALS = ("tokio", "tokio_ct", "go", "erlang", "boost_fiber", "boost_fiber_shared", "caf")


@dataclasses.dataclass(frozen=True)
class Figure:
    """Nanoseconds per operation."""
    peer: str
    median: float
    low: float
    high: float
    runs: int


def quartiles(samples):
    """The first and the third one, of a single sample that sample."""
    if len(samples) < 2:
        return samples[0], samples[0]
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return first, third


def merge(lines):
    """(peer, bench, threads) -> one line; the runs of several rounds are put together.

    Where a line lists no samples its median stands for them, and its least and most for the spread.
    A round without a figure beside others with one leaves its reason in `missed`.
    """
    groups = collections.defaultdict(list)
    for line in lines:
        groups[line["peer"], line["bench"], line["threads"]].append(line)
    return {key: merge_rounds(rounds) for key, rounds in groups.items()}


def merge_rounds(rounds):
    good = [line for line in rounds if "skip" not in line]
    if not good:
        return rounds[-1]
    line = dict(good[-1])
    missed = [one["skip"] for one in rounds if "skip" in one]
    if missed:
        line["missed"] = missed[0]
    if "median_us" not in line:
        return line
    sampled = all("samples_us" in one for one in good)
    samples = sum((one["samples_us"] for one in good), []) if sampled else [o["median_us"] for o in good]
    line["median_us"] = statistics.median(samples)
    line["min_us"] = min(one["min_us"] for one in good)
    line["max_us"] = max(one["max_us"] for one in good)
    line["q1_us"], line["q3_us"] = quartiles(samples) if sampled else (line["min_us"], line["max_us"])
    line["runs"] = sum(one["runs"] for one in good)
    for key in ("cpu_us", "vol_cs", "invol_cs"):
        if all(key in one for one in good):
            line[key] = statistics.median(one[key] for one in good)
    return line


def per_op(line):
    return line["median_us"] * 1e3 / line["n"]


def wall(data, peer, bench, threads):
    """The Figure of a program's wall time, or None."""
    line = data.get((peer, bench, threads))
    if line is None or "skip" in line or "median_us" not in line:
        return None
    low, high = (line[key] * 1e3 / line["n"] for key in ("q1_us", "q3_us"))
    return Figure(peer, per_op(line), low, high, line["runs"])


def cpu(data, peer, bench, threads):
    """The Figure of a program's CPU time, of which only the median is known; or None."""
    line = data.get((peer, bench, threads))
    if line is None or "skip" in line or "cpu_us" not in line:
        return None
    value = line["cpu_us"] * 1e3 / line["n"]
    return Figure(peer, value, value, value, line["runs"])


def best(data, bench, threads, rivals=RIVALS, kind=wall):
    """The Figure of the fastest rival at that many threads, or None."""
    found = [kind(data, peer, bench, threads) for peer in rivals]
    return min((one for one in found if one), key=lambda one: one.median, default=None)
