"""Tests of bench/measure: rounds are merged, rivals found, targets judged, gaps named."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

from measure import figures, peers, table, targets, workloads  # noqa: E402


def line(peer, bench, threads, median_us, n=1000, **more):
    return {"peer": peer, "bench": bench, "threads": threads, "n": n, "median_us": median_us,
            "min_us": median_us, "max_us": median_us, "runs": 7, **more}


def row_of(text, *words):
    """The cells of the first row whose first cells are these."""
    for row in text.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[:len(words)] == list(words):
            return cells
    raise AssertionError(f"no row {words} in\n{text}")


class Figures(unittest.TestCase):
    def test_rounds_without_samples_become_the_median_of_their_medians(self):
        merged = figures.merge([line("go", "ring", 2, us) for us in (30, 10, 20)])
        self.assertEqual(merged["go", "ring", 2]["median_us"], 20)
        self.assertEqual(merged["go", "ring", 2]["max_us"], 30)
        self.assertEqual(merged["go", "ring", 2]["q3_us"], 30)

    def test_the_samples_of_all_rounds_are_one_set(self):
        merged = figures.merge([line("go", "ring", 2, 1, samples_us=[1.0, 2.0, 3.0]),
                                line("go", "ring", 2, 50, samples_us=[4.0, 50.0])])["go", "ring", 2]
        self.assertEqual((merged["median_us"], merged["q1_us"], merged["q3_us"]), (3.0, 2.0, 4.0))
        self.assertEqual(merged["runs"], 14)

    def test_a_round_that_failed_does_not_hide_one_that_did_not(self):
        merged = figures.merge([line("go", "ring", 2, 10),
                                {"peer": "go", "bench": "ring", "threads": 2, "skip": "failed"}])
        self.assertEqual(merged["go", "ring", 2]["median_us"], 10)

    def test_a_round_that_failed_is_not_hidden_by_one_that_did_not(self):
        text = table.report([{"peer": "smarm", "bench": "ring", "threads": 2, "skip": "failed with status 1"},
                             line("smarm", "ring", 2, 10)])
        self.assertIn("smarm ring (threads 2): in one round failed with status 1", text)

    def test_the_best_peer_is_sought_at_the_same_number_of_threads(self):
        data = figures.merge([line("go", "ring", 2, 100), line("caf", "ring", 2, 200),
                              line("erlang", "ring", 8, 1), line("std_thread", "ring", 2, 1)])
        self.assertEqual(figures.best(data, "ring", 2).peer, "go")
        self.assertIsNone(figures.best(data, "ring", 1))


class Targets(unittest.TestCase):
    def test_a_ratio_is_ok_up_to_its_target(self):
        text = table.report([line("smarm", "ring", 2, 60), line("go", "ring", 2, 100)])
        self.assertEqual(row_of(text, "ring (hop)", "2")[-1], "0.60 ok")
        text = table.report([line("smarm", "ring", 2, 61), line("go", "ring", 2, 100)])
        self.assertEqual(row_of(text, "ring (hop)", "2")[-1], "0.61 > 0.6 missed")

    def test_a_workload_without_a_target_of_its_own_is_not_to_be_slower(self):
        text = table.report([line("smarm", "big", 1, 101), line("tokio_ct", "big", 1, 100)])
        self.assertEqual(row_of(text, "big (ping + pong)", "1")[2:],
                         ["101", "tokio_ct", "100", "1.01 > 1 missed"])

    def test_go_does_not_count_where_its_panics_unwind_no_frames(self):
        text = table.report([line("smarm", "panic_isolation", 2, 50), line("go", "panic_isolation", 2, 1),
                             line("erlang", "panic_isolation", 2, 100)])
        self.assertEqual(row_of(text, "panic_isolation (spawn + failed join)", "2")[3], "erlang")

    def test_timers_are_judged_by_cpu_time_too(self):
        text = table.report([line("smarm", "many_timers", 2, 1, cpu_us=30),
                             line("go", "many_timers", 2, 9, cpu_us=20),
                             line("tokio", "many_timers", 2, 9, cpu_us=1)])
        self.assertEqual(row_of(text, "many_timers (CPU time)", "2")[3:], ["go", "20.0", "1.50 > 1 missed"])

    def test_eight_schedulers_are_held_against_two(self):
        calm = table.report([line("smarm", "big", 2, 100), line("smarm", "big", 8, 115)])
        herd = table.report([line("smarm", "big", 2, 100), line("smarm", "big", 8, 130)])
        self.assertIn("1.15 ok", calm)
        self.assertIn("1.30 > 1.15 missed", herd)

    def test_redis_ratio(self):
        text = table.report([{**line("smarm", "redis_get_p1", 0, 1), "rps": 70_000},
                             {**line("redis-server", "redis_get_p1", 0, 1), "rps": 100_000}])
        self.assertIn("0.70 < 0.95 missed", text)

    def test_a_million_parked_actors_have_a_limit_of_bytes_and_of_mappings(self):
        parked = {"bytes_per_task": 4700, "mappings": 120, "wake_us": 1, "stop_us": 1, "rss_before": 0,
                  "rss_end": 2**20}
        text = table.report([line("smarm", "idle_memory_1m", 2, 1, **parked)])
        self.assertIn("4,700 ok, 120 > 99 missed", text)

    def test_tcp_is_judged_by_cpu_and_tail_and_against_bare_epoll(self):
        def echo(peer, cpu, p99):
            return {"peer": peer, "bench": "tcp_echo_64", "threads": 1, "n": 1, "rps": 1, "p50_us": 1,
                    "p99_us": p99, "p999_us": p99, "server_cpu_ns_per_op": cpu}
        text = table.report([echo("smarm", 6000, 50), echo("tokio", 6600, 40), echo("epoll_raw", 5000, 9)])
        self.assertIn("0.91 ok, 1.25 > 1 missed, 1.25 > 1 missed, 1.20 > 1.1 missed", text)

    def test_every_target_is_of_a_workload_that_exists(self):
        for bench in [*targets.RATIO, *targets.AGAINST, *targets.CPU_RATIO]:
            self.assertIn(bench, workloads.IN_PROCESS)
        for bench in targets.MEMORY:
            self.assertIn(bench, workloads.MEMORY)


class Table(unittest.TestCase):
    def test_a_figure_shows_its_quartiles(self):
        text = table.report([line("smarm", "ring", 1, 20, samples_us=[10.0, 20.0, 40.0])])
        self.assertEqual(row_of(text, "ring (hop)", "1")[2], "20.0 (15.0–30.0)")

    def test_a_figure_of_few_runs_is_marked(self):
        text = table.report([{**line("smarm", "ring", 1, 20), "runs": 4}])
        self.assertEqual(row_of(text, "ring (hop)", "1")[2], "20.0*")
        self.assertIn("fewer than 7 runs", text)

    def test_cpu_time_and_switches_are_shown_when_asked_for(self):
        lines = [line("smarm", "ring", 2, 50, cpu_us=70, vol_cs=20, invol_cs=5),
                 line("go", "ring", 2, 100, cpu_us=140, vol_cs=2, invol_cs=1)]
        self.assertNotIn("ring (CPU time)", table.report(lines))
        text = table.report(lines, ["cpu", "switches", "every"])
        self.assertEqual(row_of(text, "ring (CPU time)", "2")[2:], ["70.0", "go", "140", "0.50"])
        self.assertEqual(row_of(text, "ring", "2", "smarm")[3:], ["0.02000", "0.00500"])
        self.assertEqual(row_of(text, "ring", "2", "50.0")[5], "100")

    def test_idling_is_not_mistaken_for_work(self):
        text = table.report([line("go", "idle_cpu", 2, 1000, n=1, wall_s=2, vol_cs=4, invol_cs=0)])
        self.assertEqual(row_of(text, "idle_cpu", "2", "go")[3:5], ["0.500", "2.0"])

    def test_every_workload_has_a_unit(self):
        self.assertEqual(set(table.UNITS), set(workloads.IN_PROCESS))

    def test_what_has_no_figure_is_named(self):
        self.assertIn("smarm ring (threads 2): failed with status 1",
                      table.report([{"peer": "smarm", "bench": "ring", "threads": 2,
                                     "skip": "failed with status 1"}]))


class Commands(unittest.TestCase):
    def test_erlang_is_allowed_a_million_processes_where_it_takes_them(self):
        self.assertIn("+P", peers.command("erlang", "skynet_1m", 2)[0])
        self.assertNotIn("+P", peers.command("erlang", "skynet", 2)[0])

    def test_spinning_workers_get_a_cpu_each_and_sleeping_ones_need_no_such_thing(self):
        self.assertIsNone(peers.command("boost_fiber", "ring", 100_000))
        self.assertEqual(peers.command("boost_fiber", "ring", 1)[1], {"BF_ALGO": "ws"})
        self.assertIsNone(peers.command("boost_fiber_shared", "ring", 1))
        self.assertEqual(peers.command("boost_fiber_shared", "ring", 8)[1], {"BF_ALGO": "shared_suspend"})
        self.assertEqual(peers.program_of("boost_fiber_shared"), "boost_fiber_peer")

    def test_who_lacks_a_workload_is_not_asked(self):
        self.assertIsNone(peers.command("caf", "mutex_contention", 2))
        self.assertIsNone(peers.command("caf", "philosophers", 1))
        self.assertIsNotNone(peers.command("caf", "philosophers", 2))
        self.assertIsNone(peers.command("caf", "idle_memory_1m", 2))
        self.assertIsNone(peers.command("std_thread", "big", 2))


if __name__ == "__main__":
    unittest.main()
