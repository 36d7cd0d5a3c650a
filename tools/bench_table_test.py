"""Tests of bench/measure/table.py: rounds are merged, limits are marked, gaps are named."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

from measure import table  # noqa: E402


def line(peer, bench, threads, median_us, n=1000):
    return {"peer": peer, "bench": bench, "threads": threads, "n": n, "median_us": median_us,
            "min_us": median_us, "max_us": median_us, "runs": 7}


class Table(unittest.TestCase):
    def test_rounds_become_the_median_of_their_medians(self):
        merged = table.merge([line("go", "ring", 2, us) for us in (30, 10, 20)])
        self.assertEqual(merged["go", "ring", 2]["median_us"], 20)
        self.assertEqual(merged["go", "ring", 2]["max_us"], 30)

    def test_the_herd_limit_is_marked(self):
        calm = table.report([line("smarm", "ping_pong", 2, 100), line("smarm", "ping_pong", 8, 120)])
        herd = table.report([line("smarm", "ping_pong", 2, 100), line("smarm", "ping_pong", 8, 130)])
        self.assertIn("1.20 ok", calm)
        self.assertIn("1.30 > 1.25", herd)

    def test_peers_are_ranked_and_a_ratio_below_one_is_ours(self):
        text = table.report([line("smarm", "ring", 2, 50), line("go", "ring", 2, 100),
                             line("caf", "ring", 2, 200), line("erlang", "ring", 8, 1)])
        self.assertIn("go 100 (0.50x)", text)
        self.assertIn("caf 200 (0.25x)", text)

    def test_redis_ratio(self):
        text = table.report([{**line("smarm", "redis_get_p1", 0, 1), "rps": 70_000},
                             {**line("redis-server", "redis_get_p1", 0, 1), "rps": 100_000}])
        self.assertIn("0.70 < 0.8", text)

    def test_what_has_no_figure_is_named(self):
        self.assertIn("smarm ring (threads 2): failed with status 1",
                      table.report([{"peer": "smarm", "bench": "ring", "threads": 2,
                                     "skip": "failed with status 1"}]))


if __name__ == "__main__":
    unittest.main()
