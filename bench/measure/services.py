"""The measurements that need a service: idling, sider beside redis-server, memory per connection."""
import contextlib
import csv
import io
import shutil
import socket
import statistics
import subprocess
import sys
import time

from . import machine, peers, workloads

SIDER = peers.ROOT / "build" / "release" / "apps" / "sider" / "sider"
CONTEXT_BENCH = peers.ROOT / "build" / "release" / "src" / "fiber" / "context_bench"
COMMANDS = ["get", "set", "incr", "lpush", "lpop"]
CONNECTIONS = 10_000


@contextlib.contextmanager
def server(argv, port):
    process = subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        machine.wait_port(port, process)
        yield process
    finally:
        process.kill()
        process.wait()


def sider_command(port):
    return [SIDER, "--port", port, "--schedulers", 2]


def redis_command(port):
    return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--maxclients", "20000"]


def line_of(peer, bench, n, medians_us, **more):
    return {"peer": peer, "bench": bench, "threads": 0, "n": n,
            "median_us": round(statistics.median(medians_us), 1), "min_us": round(min(medians_us), 1),
            "max_us": round(max(medians_us), 1), "runs": len(medians_us), **more}


def idle_service(seconds=5.0):
    """A listener, 1,000 parked actors and a timer an hour off: what they cost while nothing happens."""
    for threads in (2, 8):
        port = machine.free_port()
        argv, _ = peers.command("smarm", "idle_service", threads, port)
        try:
            with server(argv, port) as process:
                time.sleep(1.5)  # the probe of wait_port is a connection: let it be over
                yield workloads.idle_line("smarm", "idle_service", threads, process.pid, seconds)
        except RuntimeError as error:
            yield {"peer": "smarm", "bench": "idle_service", "threads": threads, "skip": str(error)}


def switch():
    """A switch of ours beside Boost.Context's, as the fiber layer's own program measures them."""
    if not CONTEXT_BENCH.exists():
        yield {"peer": "smarm", "bench": "switch", "threads": 1, "skip": "context_bench is not built"}
        return
    machine.warm_cpus()
    done = subprocess.run([CONTEXT_BENCH], capture_output=True, text=True, timeout=120, check=False)
    yield {"peer": "smarm", "bench": "switch", "threads": 1, "text": done.stdout.strip()}


def requests_per_second(port, command, pipeline, requests):
    done = subprocess.run(
        ["redis-benchmark", "-p", str(port), "-t", command, "-c", "50", "-n", str(requests), "-P",
         str(pipeline), "--csv"], capture_output=True, text=True, timeout=120, check=True)
    for row in csv.reader(io.StringIO(done.stdout)):
        if row and row[0].lower().startswith(command):
            return float(row[1])
    raise RuntimeError(f"redis-benchmark printed no figure for {command}: {done.stdout[:200]}")


def redis(rounds=3, with_redis=True):
    """redis-benchmark on sider and on redis-server, alternately, command by command."""
    if not SIDER.exists() or shutil.which("redis-benchmark") is None:
        missing = "redis-benchmark is not installed" if SIDER.exists() else "sider is not built"
        yield {"peer": "smarm", "bench": "redis", "threads": 0, "skip": missing}
        return
    ports = {"smarm": machine.free_port()}
    with contextlib.ExitStack() as stack:
        stack.enter_context(server(sider_command(ports["smarm"]), ports["smarm"]))
        if with_redis and shutil.which("redis-server"):
            ports["redis-server"] = machine.free_port()
            stack.enter_context(server(redis_command(ports["redis-server"]), ports["redis-server"]))
        for pipeline, requests in ((1, 100_000), (16, 500_000)):
            figures = {}
            for turn in range(rounds):
                print(f"         redis-benchmark -P {pipeline}, round {turn + 1} of {rounds}",
                      file=sys.stderr, flush=True)
                for command in COMMANDS:
                    for peer, port in ports.items():
                        machine.warm_cpus(0.1)
                        rate = requests_per_second(port, command, pipeline, requests)
                        figures.setdefault((command, peer), []).append(rate)
            for (command, peer), rates in figures.items():
                yield line_of(peer, f"redis_{command}_p{pipeline}", requests,
                              [requests / rate * 1e6 for rate in rates],
                              rps=round(statistics.median(rates)))


def memory_per_connection(peer, argv, port):
    """Connects idle clients, each having sent one PING, and divides the growth of resident memory."""
    clients = []
    try:
        with server(argv, port) as process:
            time.sleep(0.5)
            before = machine.resident_bytes(process.pid)
            begin = time.monotonic()
            for _ in range(CONNECTIONS):
                client = socket.create_connection(("127.0.0.1", port), timeout=20)
                clients.append(client)
                client.sendall(b"PING\r\n")
                reply = client.recv(64)
                if reply != b"+PONG\r\n":
                    raise RuntimeError(f"connection {len(clients)} was answered {reply!r}")
            wall_us = (time.monotonic() - begin) * 1e6
            time.sleep(1.0)
            grown = machine.resident_bytes(process.pid) - before
            yield line_of(peer, "connections_10k", CONNECTIONS, [wall_us],
                          bytes_per_connection=round(grown / CONNECTIONS))
    except (RuntimeError, OSError) as error:
        yield {"peer": peer, "bench": "connections_10k", "threads": 0, "skip": str(error)}
    finally:
        for client in clients:
            client.close()


def connections(with_redis=True):
    """Memory of 10,000 idle connections, each."""
    if machine.raise_fd_limit() < CONNECTIONS + 200:
        yield {"peer": "smarm", "bench": "connections_10k", "threads": 0,
               "skip": "the limit of open files (ulimit -Hn) is below 10,200"}
        return
    if SIDER.exists():
        port = machine.free_port()
        yield from memory_per_connection("smarm", sider_command(port), port)
    if with_redis and shutil.which("redis-server"):
        port = machine.free_port()
        yield from memory_per_connection("redis-server", redis_command(port), port)


SERVICES = {"switch": lambda with_peers: switch(), "idle_service": lambda with_peers: idle_service(),
            "redis": lambda with_peers: redis(with_redis=with_peers),
            "connections_10k": lambda with_peers: connections(with_redis=with_peers)}
