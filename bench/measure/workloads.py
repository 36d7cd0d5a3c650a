"""One workload of one peer: a process of its own, and the JSON line that comes of it."""
import json
import re
import subprocess
import time

from . import figures, machine, peers

TIMEOUT_S = 90
BUDGET_S = 3

IN_PROCESS = ["chained_spawn", "yield_many", "ping_pong", "ping_pong_oneshot", "spawn_storm",
              "mpsc_contention", "mpsc_contention_b1024", "uncontended_channel",
              "uncontended_channel_b1024", "many_timers", "fan_out_compute", "ring", "skynet",
              "skynet_1m", "mutex_contention", "panic_isolation", "supervised_restart", "call_reply",
              "server_call", "fork_join_throughput", "counting",
              "big", "philosophers", "bank_transaction"]
# What the peers run for a workload of ours: each program calls what its library calls a server.
THEIRS = {"server_call": "call_reply"}
MEMORY = ["idle_memory_100k", "idle_memory_1m"]
IDLE = {"idle_cpu": "idle", "idle_cpu_sleep1ms": "sleep1ms"}
TCP = {"tcp_echo_64": 64, "tcp_echo_1000": 1000}


def run_in_process(peer, bench, threads):
    call = peers.command(peer, bench if peer == "smarm" else THEIRS.get(bench, bench), threads)
    if call is None:
        return None
    argv, extra = call
    line = {"peer": peer, "bench": bench, "threads": threads}
    machine.warm_cpus()
    try:
        done = subprocess.run(argv, env=peers.environment(extra, BUDGET_S), capture_output=True,
                              text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {**line, "skip": f"not finished after {TIMEOUT_S} s"}
    printed = [text for text in done.stdout.splitlines() if text.startswith("{")]
    if done.returncode != 0 or not printed:
        return {**line, "skip": f"failed with status {done.returncode}: {done.stderr.strip()[-200:]}"}
    result = {**json.loads(printed[-1]), **line}
    if "samples_us" in result:
        result["q1_us"], result["q3_us"] = figures.quartiles(result["samples_us"])
    return result


def sample(pid, seconds):
    """What a process does in that time: CPU microseconds, context switches."""
    cpu, before, begin = machine.cpu_seconds(pid), machine.switches(pid), time.monotonic()
    time.sleep(seconds)
    used, after = machine.cpu_seconds(pid) - cpu, machine.switches(pid)
    scale = seconds / (time.monotonic() - begin)
    return used * 1e6 * scale, after[0] - before[0], after[1] - before[1]


def idle_line(peer, bench, threads, pid, seconds):
    cpu_us, voluntary, involuntary = sample(pid, seconds)
    micros = round(cpu_us, 1)
    return {"peer": peer, "bench": bench, "threads": threads, "n": 1, "median_us": micros,
            "min_us": micros, "max_us": micros, "runs": 1, "wall_s": seconds, "vol_cs": voluntary,
            "invol_cs": involuntary, "os_threads": machine.thread_count(pid)}


def run_idle(peer, bench, threads, seconds=3.0):
    call = peers.command(peer, IDLE[bench], threads, 5)
    if call is None:
        return None
    argv, extra = call
    process = subprocess.Popen(argv, env=peers.environment(extra, BUDGET_S), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        time.sleep(1.2)
        if process.poll() is not None:
            return {"peer": peer, "bench": bench, "threads": threads,
                    "skip": f"ended early with status {process.returncode}"}
        line = idle_line(peer, bench, threads, process.pid, seconds)
        printed, _ = process.communicate(timeout=30)
        match = re.search(r"iters_per_s=([\d.]+)", printed)
        if match:
            line["iters_per_s"] = float(match[1])
        return line
    finally:
        process.kill()
        process.wait()


def run_tcp(peer, bench, threads, seconds=1, windows=7):
    """Closed-loop echo of 64 bytes. The client is on CPU 1; a server of one thread is held on CPU 0,
    one of more threads may use both and shares CPU 1 with the client."""
    port = machine.free_port()
    call = peers.command(peer, "tcp_server", threads, port)
    if call is None:
        return None
    argv, extra = call
    if threads == 1:
        argv = ["taskset", "-c", "0", *argv]
    line = {"peer": peer, "bench": bench, "threads": threads}
    machine.warm_cpus()
    server = subprocess.Popen(argv, env=peers.environment(extra, BUDGET_S),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        machine.wait_port(port, server)
        time.sleep(0.3)
        client = subprocess.Popen(
            [str(peers.BIN / "echo_client"), str(port), str(TCP[bench]), str(seconds), str(windows), "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = client.stderr.readline()  # it says when it begins to measure
        cpu = machine.cpu_seconds(server.pid)
        printed, errors = client.communicate(timeout=60)
        cpu = machine.cpu_seconds(server.pid) - cpu
        if client.returncode != 0:
            return {**line, "skip": "client: " + (first + errors).strip()[-200:]}
        result = {**line, **json.loads(printed)}
        result["server_cpu_ns_per_op"] = round(cpu * 1e9 / result["n"], 1)
        return result
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return {**line, "skip": str(error)}
    finally:
        server.kill()
        server.wait()


def run(peer, bench, threads):
    """The JSON line of one workload, or None where the peer has no such workload."""
    if bench in IDLE:
        return run_idle(peer, bench, threads)
    if bench in TCP:
        return run_tcp(peer, bench, threads)
    return run_in_process(peer, bench, threads)
