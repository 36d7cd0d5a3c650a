"""Makes tables of JSON lines: Markdown that is also pleasant in a terminal."""
from . import figures, targets, workloads

UNITS = {"chained_spawn": "spawn + join", "yield_many": "yield", "ping_pong": "round trip",
         "ping_pong_oneshot": "spawn + reply", "spawn_storm": "actor", "mpsc_contention": "message",
         "mpsc_contention_b1024": "message", "uncontended_channel": "message",
         "uncontended_channel_b1024": "message", "many_timers": "sleep of 1 to 10 ms",
         "fan_out_compute": "task", "ring": "hop", "skynet": "actor", "skynet_1m": "actor",
         "mutex_contention": "lock + unlock",
         "panic_isolation": "spawn + failed join", "supervised_restart": "kill + restart",
         "call_reply": "call + reply", "server_call": "call to a server",
         "fork_join_throughput": "message", "counting": "message", "big": "ping + pong",
         "philosophers": "meal", "bank_transaction": "transfer"}

MARKS = f" *: of fewer than {figures.RUNS_MIN} runs."


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


def spread(figure):
    """Median and quartiles."""
    few = "*" if figure.runs < figures.RUNS_MIN else ""
    if figure.low == figure.high:
        return number(figure.median) + few
    return f"{number(figure.median)}{few} ({number(figure.low)}–{number(figure.high)})"


def why(data, bench, threads):
    """What stands where ours has no figure."""
    line = data.get(("smarm", bench, threads))
    return "–" if line is None or "skip" not in line else "DNF" if "not finished" in line["skip"] else "failed"


def compared(data, bench, threads, kind, rivals, limit):
    """The cells of ours, of the best rival, and of the ratio with its verdict; None without figures."""
    ours = kind(data, "smarm", bench, threads)
    rival = figures.best(data, bench, threads, rivals, kind)
    if ours is None and rival is None:
        return None
    verdict = "–"
    if ours and rival and rival.median > 0:
        ratio = ours.median / rival.median
        verdict = f"{ratio:.2f}" if limit is None else targets.at_most(ratio, limit)
    return [spread(ours) if ours else why(data, bench, threads), rival.peer if rival else "–",
            spread(rival) if rival else "–", verdict]


COMPARED = ["workload (operation)", "threads", "smarm", "best peer", "its time", "ratio, target"]


def operations(data):
    rows = []
    for bench in workloads.IN_PROCESS:
        for threads in figures.THREADS:
            cells = compared(data, bench, threads, figures.wall,
                             targets.rivals(bench), targets.ratio_limit(bench))
            if cells:
                rows.append([f"{bench} ({UNITS[bench]})", threads, *cells])
        if bench in targets.CPU_RATIO:
            rows += cpu_rows(data, bench)
    return rows and ("ns per operation: median and quartiles. The ratio is ours to the best peer's with as "
                     "many threads: below 1\nwe are faster." + (MARKS if "*" in str(rows) else "") + "\n\n"
                     + render(COMPARED, rows))


def cpu_rows(data, bench):
    rivals, limit = targets.CPU_RATIO.get(bench, (figures.RIVALS, None))
    rows = []
    for threads in figures.THREADS:
        cells = compared(data, bench, threads, figures.cpu, rivals, limit)
        if cells:
            rows.append([f"{bench} (CPU time)", threads, *cells])
    return rows


def cpu(data):
    rows = sum((cpu_rows(data, bench) for bench in workloads.IN_PROCESS), [])
    return rows and "CPU time of the process, ns per operation.\n\n" + render(COMPARED, rows)


def switches(data):
    """Context switches of ours, and of the peer with the shortest time."""
    rows = []
    for bench in workloads.IN_PROCESS:
        for threads in figures.THREADS:
            rival = figures.best(data, bench, threads, targets.rivals(bench))
            for peer in ["smarm", *([rival.peer] if rival else [])]:
                line = data.get((peer, bench, threads), {})
                if "vol_cs" in line:
                    rows.append([bench, threads, peer, *(f"{line[key] / line['n']:.5f}"
                                                         for key in ("vol_cs", "invol_cs"))])
    return rows and "Context switches per operation, of ours and of the fastest peer.\n\n" + render(
        ["workload", "threads", "program", "voluntary", "involuntary"], rows)


def every(data):
    """All programs beside each other."""
    peers = ["smarm", *figures.RIVALS, "std_thread"]
    rows = []
    for bench in workloads.IN_PROCESS:
        for threads in figures.THREADS:
            found = [figures.wall(data, peer, bench, threads) for peer in peers]
            if any(found):
                rows.append([bench, threads, *(number(one.median) if one else "–" for one in found)])
    return rows and "ns per operation of every program, medians.\n\n" + render(
        ["workload", "threads", *peers], rows)


def herd(data):
    rows = []
    for bench in workloads.IN_PROCESS:
        ours = [figures.wall(data, "smarm", bench, threads) for threads in figures.THREADS]
        if ours[1] and ours[2]:
            ratio = ours[2].median / ours[1].median
            rows.append([bench, *(number(one.median) if one else "–" for one in ours),
                         targets.at_most(ratio, targets.HERD)])
    return rows and "smarm with 1, 2 and 8 schedulers, ns per operation; 8 against 2 and its target." \
        "\n\n" + render(["workload", "1", "2", "8", "8 / 2"], rows)


def own(data):
    """Ours beside another of ours."""
    rows = []
    for bench, (other, limit) in targets.OWN.items():
        for threads in figures.THREADS:
            one, two = (figures.wall(data, "smarm", name, threads) for name in (bench, other))
            if one and two:
                rows.append([f"{bench} / {other}", threads, number(one.median), number(two.median),
                             targets.at_most(one.median / two.median, limit)])
    return rows and "smarm beside itself, ns per operation.\n\n" + render(
        ["workloads", "threads", "the one", "the other", "ratio, target"], rows)


def memory(data):
    rows = [[bench, threads, peer, number(line["bytes_per_task"]), f"{line['median_us'] / 1e3:,.0f}",
             *(f"{line[key] / 1e3:,.0f}" if key in line else "–" for key in ("wake_us", "stop_us")),
             f"{line['mappings']:,}" if "mappings" in line else "–",
             f"{(line['rss_end'] - line['rss_before']) / 2**20:,.0f}" if "rss_end" in line else "–",
             memory_verdict(peer, bench, line)]
            for (peer, bench, threads), line in sorted(data.items())
            if bench in workloads.MEMORY and "bytes_per_task" in line]
    return rows and ("Parked tasks with a mailbox each: resident memory and mappings, the time to spawn and "
                     "park all,\nto send each one a message, to end all, and what the process still holds "
                     "0.2 s later.\n\n" + render(
                         ["workload", "threads", "program", "bytes per task", "spawn ms", "message ms",
                          "end ms", "mappings", "MiB kept", "bytes, mappings: target"], rows))


def memory_verdict(peer, bench, line):
    if peer != "smarm" or bench not in targets.MEMORY:
        return "–"
    bytes_max, mappings_max = targets.MEMORY[bench]
    verdicts = [targets.at_most(line["bytes_per_task"], bytes_max, 0)]
    if "mappings" in line:
        verdicts.append(targets.at_most(line["mappings"], mappings_max, 0))
    return ", ".join(verdicts)


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
    rows = [[bench, threads, peer,
             *(number(line[key]) if key in line else "–"
               for key in ("rps", "p50_us", "p99_us", "p999_us", "server_cpu_ns_per_op")),
             tcp_verdict(data, bench, threads) if peer == "smarm" else "–"]
            for (peer, bench, threads), line in sorted(data.items())
            if bench in workloads.TCP and "skip" not in line]
    return rows and ("TCP echo of 64 bytes, closed loop. Ratios to the best peer: CPU, p99, p99.9; CPU to bare "
                     "epoll's.\n\n" + render(
                         ["workload", "threads", "program", "round trips a second", "p50 us", "p99 us",
                          "p99.9 us", "server CPU ns each", "ratios, targets"], rows))


def tcp_verdict(data, bench, threads):
    def of(peer, key):
        return data.get((peer, bench, threads), {}).get(key)

    verdicts = []
    for key, limit in targets.TCP.items():
        theirs = [of(peer, key) for peer in figures.RIVALS if of(peer, key)]
        if theirs and of("smarm", key):
            verdicts.append(targets.at_most(of("smarm", key) / min(theirs), limit))
    cpu_key = "server_cpu_ns_per_op"
    if of("epoll_raw", cpu_key) and of("smarm", cpu_key):
        verdicts.append(targets.at_most(of("smarm", cpu_key) / of("epoll_raw", cpu_key),
                                        targets.TCP_CPU_OF_EPOLL))
    return ", ".join(verdicts) or "–"


def redis(data):
    rows = []
    for (peer, bench, threads), line in data.items():
        if peer != "smarm" or "rps" not in line or not bench.startswith("redis_"):
            continue
        theirs = data.get(("redis-server", bench, threads), {}).get("rps")
        _, command, pipeline = bench.split("_")
        verdict = targets.at_least(line["rps"] / theirs, targets.REDIS[pipeline]) if theirs else "–"
        rows.append([f"{command.upper()} -P {pipeline[1:]}", number(line["rps"]),
                     number(theirs) if theirs else "–", verdict])
    return rows and "redis-benchmark -c 50, requests a second, run alternately.\n\n" + render(
        ["command", "sider", "redis-server", "ratio, target"], rows)


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
    rows = [f"- {peer} {bench} (threads {threads}): {line.get('skip') or 'in one round ' + line['missed']}"
            for (peer, bench, threads), line in data.items()
            if "missed" in line or "not available" not in line.get("skip", "not available")]
    return rows and "Without a figure:\n\n" + "\n".join(rows)


EXTRAS = {"cpu": cpu, "switches": switches, "every": every}


def report(lines, extras=()):
    """All tables of which there are figures; `extras` names those that are shown only when asked for."""
    data = figures.merge(lines)
    makers = [operations, *(EXTRAS[name] for name in EXTRAS if name in extras), herd, own, switch, memory, idle,
              tcp, redis, connections, skipped]
    return "\n\n".join(part for part in (make(data) for make in makers) if part)
