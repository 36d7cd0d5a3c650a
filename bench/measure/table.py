"""Makes tables of JSON lines: Markdown that is also pleasant in a terminal."""
import collections
import statistics

from . import workloads

UNITS = {"chained_spawn": "spawn + join", "yield_many": "yield", "ping_pong": "round trip",
         "ping_pong_oneshot": "spawn + reply", "spawn_storm": "actor", "mpsc_contention": "message",
         "mpsc_contention_b1024": "message", "uncontended_channel": "message",
         "uncontended_channel_b1024": "message", "many_timers": "sleep of 1 to 10 ms",
         "fan_out_compute": "task", "ring": "hop", "skynet": "actor", "mutex_contention": "lock + unlock",
         "panic_isolation": "spawn + failed join", "call_reply": "call + reply",
         "fork_join_throughput": "message", "counting": "message", "big": "ping + pong",
         "philosophers": "meal", "bank_transaction": "transfer"}

# With 8 schedulers on 2 cores these may take at most 1.25 times what they take with 2.
HERD = ["ping_pong", "yield_many", "spawn_storm", "chained_spawn", "mpsc_contention"]
HERD_LIMIT = 1.25
REDIS_LIMIT = 0.8


def merge(lines):
    """(peer, bench, threads) -> one line; several rounds become the median of their medians."""
    groups = collections.defaultdict(list)
    for line in lines:
        groups[line["peer"], line["bench"], line["threads"]].append(line)
    merged = {}
    for key, rounds in groups.items():
        good = [line for line in rounds if "skip" not in line]
        if not good:
            merged[key] = rounds[-1]
            continue
        line = dict(good[-1])
        if "median_us" in line:
            line["median_us"] = statistics.median([l["median_us"] for l in good])
            line["min_us"] = min(l["min_us"] for l in good)
            line["max_us"] = max(l["max_us"] for l in good)
        merged[key] = line
    return merged


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def render(columns, rows):
    widths = [max(len(str(row[i])) for row in [columns, *rows]) for i in range(len(columns))]
    out = []
    for index, row in enumerate([columns, *rows]):
        cells = [str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
                 for i, (cell, w) in enumerate(zip(row, widths))]
        out.append("| " + " | ".join(cells) + " |")
        if index == 0:
            out.append("|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":"
                                      for i, w in enumerate(widths)) + "|")
    return "\n".join(out)


def per_op(line):
    return line["median_us"] * 1e3 / line["n"]


def figure(data, peer, bench, threads):
    line = data.get((peer, bench, threads))
    return per_op(line) if line and "skip" not in line else None


def peer_figures(data, bench, threads):
    """The peers' figures at that many threads, fastest first."""
    return sorted((per_op(line), peer) for (peer, name, count), line in data.items()
                  if name == bench and count == threads and peer != "smarm" and "skip" not in line)


def operations(data):
    rows = []
    for bench in workloads.IN_PROCESS:
        ours = {t: figure(data, "smarm", bench, t) for t in (1, 2, 8)}
        peers = peer_figures(data, bench, 2)
        if not any(ours.values()) and not peers:
            continue
        herd = "–"
        if ours[2] and ours[8]:
            ratio = ours[8] / ours[2]
            herd = f"{ratio:.2f}"
            if bench in HERD:
                herd += " ok" if ratio <= HERD_LIMIT else f" > {HERD_LIMIT}"
        best, slowest = ("–", "–")
        if peers and ours[2]:
            best = f"{peers[0][1]} {number(peers[0][0])} ({ours[2] / peers[0][0]:.2f}x)"
            slowest = f"{peers[-1][1]} {number(peers[-1][0])} ({ours[2] / peers[-1][0]:.2f}x)"
        cells = [number(ours[t]) if ours[t] else why(data, bench, t) for t in (1, 2, 8)]
        rows.append([f"{bench} ({UNITS[bench]})", *cells, herd, best, slowest])
    if not rows:
        return ""
    return ("ns per operation, median. `8 / 2`: 8 schedulers against 2; where a limit is set, whether it "
            "holds.\nPeers with 2 threads; in brackets our time with 2 divided by theirs: below 1 we are "
            "faster.\n\n" +
            render(["workload (operation)", "smarm 1", "2", "8", "8 / 2", "best peer", "slowest peer"], rows))


def why(data, bench, threads):
    line = data.get(("smarm", bench, threads))
    return "–" if line is None else "DNF" if "not finished" in line["skip"] else "failed"


def memory(data):
    rows = [[bench, threads, peer, number(line["bytes_per_task"]), f"{line['median_us'] / 1e3:,.0f}",
             *(f"{line[key] / 1e3:,.0f}" if key in line else "–" for key in ("wake_us", "stop_us")),
             f"{line['mappings']:,}" if "mappings" in line else "–",
             f"{(line['rss_end'] - line['rss_before']) / 2**20:,.0f}" if "rss_end" in line else "–"]
            for (peer, bench, threads), line in sorted(data.items())
            if bench in workloads.MEMORY and "bytes_per_task" in line]
    return rows and ("Parked tasks with a mailbox each: resident memory and mappings, the time to spawn and "
                     "park all,\nto send each one a message, to end all, and what the process still holds "
                     "0.2 s later.\n\n" + render(
                         ["workload", "threads", "program", "bytes per task", "spawn ms", "message ms",
                          "end ms", "mappings", "MiB kept"], rows))


def idle(data):
    rows = [[bench, threads, peer, f"{line['median_us'] / 1e3 / line['wall_s']:.3f}",
             f"{(line['vol_cs'] + line['invol_cs']) / line['wall_s']:.1f}",
             number(line["iters_per_s"]) if "iters_per_s" in line else "–"]
            for (peer, bench, threads), line in sorted(data.items())
            if "wall_s" in line]
    return rows and ("Cost of idling. idle_service: a listener, 1,000 parked actors, a timer an hour off.\n\n"
                     + render(["workload", "threads", "program", "CPU ms a second",
                               "context switches a second", "sleeps a second"], rows))


def tcp(data):
    rows = [[bench, threads, peer, number(line["rps"]), number(line["p50_us"]), number(line["p99_us"]),
             number(line["server_cpu_ns_per_op"])]
            for (peer, bench, threads), line in sorted(data.items())
            if bench in workloads.TCP and "skip" not in line]
    return rows and "TCP echo of 64 bytes, closed loop.\n\n" + render(
        ["workload", "threads", "program", "round trips a second", "p50 us", "p99 us",
         "server CPU ns each"], rows)


def redis(data):
    rows = []
    for (peer, bench, threads), line in data.items():
        if peer != "smarm" or "rps" not in line or not bench.startswith("redis_"):
            continue
        theirs = data.get(("redis-server", bench, threads))
        verdict = "–"
        if theirs and "rps" in theirs:
            ratio = line["rps"] / theirs["rps"]
            verdict = f"{ratio:.2f}"
            if bench.endswith("_p1"):
                verdict += " ok" if ratio >= REDIS_LIMIT else f" < {REDIS_LIMIT}"
        _, command, pipeline = bench.split("_")
        rows.append([f"{command.upper()} -P {pipeline[1:]}", number(line["rps"]),
                     number(theirs["rps"]) if theirs and "rps" in theirs else "–", verdict])
    return rows and "redis-benchmark -c 50, requests a second, run alternately.\n\n" + render(
        ["command", "sider", "redis-server", "ratio"], rows)


def connections(data):
    rows = [[peer.replace("smarm", "sider"), f"{line['bytes_per_connection'] / 1024:.1f}"]
            for (peer, bench, _), line in data.items()
            if bench == "connections_10k" and "bytes_per_connection" in line]
    return rows and "10,000 idle connections: growth of resident memory, each.\n\n" + render(
        ["server", "KiB per connection"], rows)


def switch(data):
    line = data.get(("smarm", "switch", 1), {})
    return line.get("text") and "A context switch, beside Boost.Context's jump.\n\n```\n" + line["text"] + "\n```"


def skipped(data):
    rows = [f"- {peer} {bench} (threads {threads}): {line['skip']}"
            for (peer, bench, threads), line in data.items()
            if "skip" in line and "not available" not in line["skip"]]
    return rows and "Without a figure:\n\n" + "\n".join(rows)


def report(lines):
    data = merge(lines)
    parts = [make(data) for make in (operations, switch, memory, idle, tcp, redis, connections, skipped)]
    return "\n\n".join(part for part in parts if part)
