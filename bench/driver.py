#!/usr/bin/env python3
"""Measures smarm and its peers alternately and prints tables.   ./dev bench --help

Every figure comes of a process of its own. Within a workload the programs take turns, so that slow
drift of the machine touches them alike, and right before each one every CPU is kept busy for a
moment. What is measured, and what to make of it: bench/README.md.
"""
import argparse
import json
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from measure import chart, figures, peers, services, table, workloads  # noqa: E402

PROCESS_WORKLOADS = [*workloads.IN_PROCESS, *workloads.MEMORY, *workloads.IDLE, *workloads.TCP]
NAMES = [*PROCESS_WORKLOADS, *services.SERVICES]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="Measures smarm beside its peers.",
        epilog="NAMEs: " + " ".join(NAMES))
    parser.add_argument("--ours", action="store_true", help="smarm alone")
    parser.add_argument("--json", metavar="FILE", help="also write the JSON lines to FILE")
    parser.add_argument("--rounds", type=int, default=2, help="how often the programs take turns (2)")
    parser.add_argument("--threads", default="1,2,8", help="scheduler counts for smarm (1,2,8)")
    parser.add_argument("--peer-threads", default="1,2,8", help="thread counts for the peers (1,2,8)")
    parser.add_argument("--peers", default="", help="only these peers, by name, with commas")
    parser.add_argument("--cpu", action="store_true", help="also a table of CPU time per operation")
    parser.add_argument("--switches", action="store_true", help="also one of context switches")
    parser.add_argument("--every", action="store_true", help="also one of every program's figures")
    parser.add_argument("--table", metavar="FILE", help="print the tables of an earlier --json FILE")
    parser.add_argument("--chart", metavar="FILE", help="also draw ours and the best peer's as SVG")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these workloads")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}; there are: {' '.join(NAMES)}")
    return given


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def turns(bench, given, usable):
    """Who is measured in one round of a workload, in order: (program, threads)."""
    ours = [("smarm", threads) for threads in numbers(given.threads)]
    if bench in workloads.TCP:
        names, kind = usable["tcp"], [1]
        ours = [("smarm", 1)]
    elif bench in workloads.MEMORY:
        names, kind = usable["in_process"], [2]
        ours = [("smarm", 2)]
    elif bench in workloads.IDLE:
        names, kind = usable["idle"], [2]
    else:
        names, kind = usable["in_process"], numbers(given.peer_threads)
    theirs = [(peer, 1 if peer == "tokio_ct" else threads) for peer in names for threads in kind]
    return list(dict.fromkeys(ours + theirs))


def headline(line):
    if "skip" in line:
        return line["skip"]
    if "rps" in line:
        return f"{line['rps']:,.0f} a second"
    if "bytes_per_task" in line:
        return f"{line['bytes_per_task']:,.0f} bytes per task"
    if "bytes_per_connection" in line:
        return f"{line['bytes_per_connection']:,} bytes per connection"
    if "text" in line:
        return line["text"].splitlines()[0] if line["text"] else "nothing"
    if "wall_s" in line:
        return f"{line['median_us'] / 1e3 / line['wall_s']:.3f} ms CPU a second, " \
               f"{line['vol_cs'] + line['invol_cs']} switches"
    return f"{figures.per_op(line):,.1f} ns"


def show(lines, given):
    print(table.report(lines, [name for name in table.EXTRAS if getattr(given, name)]))
    if given.chart:
        pathlib.Path(given.chart).write_text(chart.draw(lines))


def main():
    given = arguments()
    if given.table:
        show([json.loads(text) for text in open(given.table) if text.strip()], given)
        return 0
    if not peers.OURS.exists():
        print(f"{peers.OURS} is not built; ./dev bench builds it", file=sys.stderr)
        return 1
    chosen = set(filter(None, given.peers.split(",")))
    usable = {"in_process": [], "tcp": [], "idle": []}
    if not given.ours:
        lists = {"in_process": peers.PEERS, "tcp": peers.TCP_PEERS, "idle": peers.IDLE_PEERS}
        wanted = [p for p in dict.fromkeys(sum(lists.values(), [])) if not chosen or p in chosen]
        have = peers.available(wanted, say)
        usable = {kind: [p for p in names if p in have] for kind, names in lists.items()}
    names = given.names or NAMES
    if any(name in workloads.TCP for name in names):
        reason = peers.build("echo_client")
        if reason:
            say(f"without TCP echo: {reason}")
            names = [name for name in names if name not in workloads.TCP]
    lines = []
    out = open(given.json, "w") if given.json else None

    def record(line):
        lines.append(line)
        say(f"{line['peer']:12} {line['bench']:26} threads {line['threads']}  {headline(line)}")
        if out:
            out.write(json.dumps(line) + "\n")
            out.flush()

    for name in names:
        if name in services.SERVICES:
            for line in services.SERVICES[name](not given.ours):
                record(line)
            continue
        rounds = given.rounds if name in workloads.IN_PROCESS else 1
        who = turns(name, given, usable)
        for _ in range(rounds):
            for peer, threads in list(who):
                line = workloads.run(peer, name, threads)
                if line is None or "skip" in line:
                    who.remove((peer, threads))  # it would not do better in the next round
                if line is not None:
                    record(line)
    show(lines, given)
    # Wrong work is worse than slow work: a program that found its result wrong, or crashed.
    return 1 if any(line.get("skip", "").startswith("failed") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
