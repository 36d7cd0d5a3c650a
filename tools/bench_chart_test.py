"""Tests of bench/measure/chart.py: the drawing is XML, its bars are to scale, nothing sticks out."""
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

from measure import chart  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def line(peer, bench, threads, ns):
    return {"peer": peer, "bench": bench, "threads": threads, "n": 1000, "median_us": ns, "min_us": ns,
            "max_us": ns, "runs": 7}


def luminance(colour):
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """The ratio of the two colours' luminances, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


LINES = [line("smarm", "ring", 2, 100), line("go", "ring", 2, 1_000), line("caf", "ring", 2, 5_000),
         line("smarm", "big", 2, 10), line("tokio", "big", 2, 10), line("smarm", "skynet", 2, 10)]


class Chart(unittest.TestCase):
    def setUp(self):
        self.root = xml.etree.ElementTree.fromstring(chart.draw(LINES))

    def widths(self, kind):
        return [float(bar.get("width")) for bar in self.root.iter(SVG + "rect")
                if bar.get("class") == kind and bar.get("height") == str(chart.BAR)]

    def test_there_is_a_pair_of_bars_where_both_have_a_figure(self):
        self.assertEqual(len(self.widths("ours")), 2)
        self.assertEqual(len(self.widths("peer")), 2)

    def test_ten_times_as_long_is_a_step_of_the_scale(self):
        whole = chart.WIDTH - chart.LEFT - chart.RIGHT
        (ring_ours, _), (ring_peer, _) = self.widths("ours"), self.widths("peer")
        self.assertAlmostEqual(ring_peer, whole, delta=0.2)
        self.assertAlmostEqual(ring_ours, whole / 2, delta=0.2)

    def test_the_best_peer_is_named_with_its_time(self):
        texts = [text.text for text in self.root.iter(SVG + "text")]
        self.assertIn("go 1.0 µs", texts)
        self.assertIn("100 ns (0.10x)", texts)
        self.assertFalse([text for text in texts if "caf" in text])

    def test_the_best_peer_is_the_one_of_the_targets(self):
        lines = [line("smarm", "panic_isolation", 2, 9), line("go", "panic_isolation", 2, 5),
                 line("erlang", "panic_isolation", 2, 9)]
        self.assertIn("erlang 9.0 ns", chart.draw(lines))

    def test_nothing_is_drawn_outside(self):
        for element in self.root.iter():
            for name, limit in (("x", self.root.get("width")), ("y", self.root.get("height"))):
                place = float(element.get(name, 0))
                self.assertTrue(0 <= place <= float(limit), (element.tag, name, place))

    def test_text_can_be_read_in_both_schemes_and_without_one(self):
        neither, light, dark = self.root.find(SVG + "style").text.split("@media")
        for style, backgrounds, least in ((neither, ("#ffffff", "#0d1117"), 4.0),
                                          (light, ("#ffffff",), 6.0), (dark, ("#0d1117",), 7.0)):
            for kind in ("text", ".small"):
                found = re.search(re.escape(kind) + r" \{[^}]*fill: (#\w{6})", style)
                for background in backgrounds if found else ():
                    self.assertGreaterEqual(contrast(found[1], background), least, (kind, background))
            self.assertIn("text { ", style)

    def test_bars_stand_out_from_both_backgrounds(self):
        neither = self.root.find(SVG + "style").text.split("@media")[0]
        for kind in (".ours", ".peer"):
            fill = re.search(re.escape(kind) + r" \{ fill: (#\w{6})", neither)[1]
            for background in ("#ffffff", "#0d1117"):
                self.assertGreaterEqual(contrast(fill, background), 2.5, (kind, background))

    def test_times_have_the_unit_that_reads_best(self):
        self.assertEqual([chart.time_text(ns) for ns in (9.5, 250, 1_500, 2.5e6, 3e9)],
                         ["9.5 ns", "250 ns", "1.5 µs", "2.5 ms", "3.0 s"])

    def test_lines_without_a_pair_are_refused(self):
        with self.assertRaises(ValueError):
            chart.draw([line("smarm", "ring", 2, 10)])


if __name__ == "__main__":
    unittest.main()
