"""Tests of tools/junit_counts: what did not run is no success."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

PATH = str(pathlib.Path(__file__).resolve().parent / "junit_counts")
LOADER = importlib.machinery.SourceFileLoader("junit_counts", PATH)
SPEC = importlib.util.spec_from_loader("junit_counts", LOADER)
junit_counts = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(junit_counts)


class Counts(unittest.TestCase):
    def test_each_status(self):
        cases = ('<testcase status="run"/><testcase status="run"/><testcase status="fail"/>'
                 '<testcase status="disabled"/><testcase status="notrun"><skipped/></testcase>'
                 '<testcase status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>')
        self.assertEqual(junit_counts.counts(f"<testsuite>{cases}</testsuite>"), (2, 2))
