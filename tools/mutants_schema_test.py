"""Tests of tools/mutants_schema.py: what it changes, what it leaves alone, and that the result runs."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import mutants_schema

HERE = pathlib.Path(__file__).resolve().parent


def changes(body, heading="void f() {"):
    """The mutants of a function with this body: `change text`, in the order of their numbers."""
    text = f"{heading}\n{body}\n}}\n"
    changed, mutants = mutants_schema.rewrite(text)
    assert changed.count("\n") == text.count("\n")
    return [f"{m.change} {m.text}" for m in mutants]


class Places(unittest.TestCase):
    def test_a_condition_is_forced_both_ways(self):
        self.assertEqual(changes("if (ready()) return;"),
                         ["condition:true if (<<ready()>>) return;", "condition:false if (<<ready()>>) return;"])

    def test_a_loop_is_only_left_out(self):
        self.assertEqual(changes("while (ready()) {\n}"), ["condition:false while (<<ready()>>) {"])
        self.assertEqual(changes("for (int i = 0; more; ++i) {\n}"),
                         ["condition:false for (int i = 0; <<more>>; ++i) {"])
        self.assertEqual(changes("for (;;) {\n}\nwhile (true) {\n}\nfor (int i : all) {\n}"), [])

    def test_a_declaration_in_a_condition_becomes_nothing(self):
        self.assertEqual(changes("if (node* const n = first()) return;"),
                         ["condition:false if (node* const n = <<first()>>) return;"])
        self.assertEqual(changes("if (const int n = f(); late) return;")[0],
                         "condition:true if (const int n = f(); <<late>>) return;")

    def test_an_operand_is_taken_away(self):
        self.assertEqual(changes("const bool x = a() && (b || c);"),
                         ["condition:true const bool x = <<a()>> && (b || c);",
                          "condition:true const bool x = a() && <<(b || c)>>;",
                          "condition:false const bool x = a() && (<<b>> || c);",
                          "condition:false const bool x = a() && (b || <<c>>);"])

    def test_a_choice_is_forced(self):
        self.assertEqual(changes("const int x = late ? 1 : 2;"),
                         ["condition:true const int x = <<late>> ? 1 : 2;",
                          "condition:false const int x = <<late>> ? 1 : 2;"])

    def test_a_comparison_is_moved_by_one(self):
        found = changes("return a->b + 1 < f(c, d);")
        self.assertEqual(found[-1], "compare:<= return <<a->b + 1 < f(c, d)>>;")
        self.assertEqual(len(found), 3)  # forced too

    def test_a_template_is_no_comparison(self):
        self.assertEqual(changes("const auto x = std::max<int>(a, b);\nfoo<bar> baz(a);"), [])

    def test_statements_are_dropped(self):
        for statement in ("wake.wake();", "(void)park(a, b);", "x_ = y;", "++count_;", "all[i].next->push(x);",
                          "delete old;", "x |= bit<int>(1);", "header.~body();", "*place = 1;"):
            self.assertEqual(changes(statement), [f"statement:drop <<{statement[:-1]}>>;"])
        self.assertEqual(changes("if (auto x = y; z) wake();")[-1], "statement:drop if (auto x = y; z) <<wake()>>;")

    def test_declarations_are_not_dropped(self):
        for statement in ("const raw_guard guard(lock_);", "std::unique_lock<mutex> hold(m);", "node* n = first();",
                          "auto [a, b] = f();", "int i = 0;", "std::byte* p{q};", "using a = b;", "foo& x = y;",
                          "throw misuse(a);", "return f();", "const auto x = [&] { return 1; }();",
                          "std::array<waker, 2> two{};"):
            self.assertEqual(changes(statement), [], statement)

    def test_the_statements_of_a_lambda_are_found(self):
        self.assertEqual(changes("each([&](int) {\n  wake();\n});"),
                         ["statement:drop <<each([&](int) {>>", "statement:drop <<wake()>>;"])

    def test_checks_and_constants_are_left_alone(self):
        for statement in ("SMARM_ASSERT(a == b, \"x\", f());", "static_assert(a < b);", "constexpr bool x = a < b;",
                          "if constexpr (a == b) {\n}", "perturb(point);", "pause();", "x.store(1, release);"):
            self.assertEqual(changes(statement), [], statement)

    def test_only_bodies_are_changed(self):
        for text in ("struct a {\n  a(int x);\n  a& operator=(const a&) = delete;\n  bool b = c == d;\n};\n",
                     "namespace a {\nconstexpr bool b = c < d;\nvoid f(int x = 1 < 2);\n}\n",
                     "#define X(y) if (y) f();\n", "// if (x) y();\n", "const char* a = \"if (x) y();\";\n"):
            self.assertEqual(mutants_schema.rewrite(text), (text, []))

    def test_a_member_and_a_constructor_have_bodies(self):
        self.assertEqual(len(changes("if (x) return;\n}", "struct a {\nvoid f() const noexcept {")), 2)
        self.assertEqual(changes("f();", "a::a() noexcept : b_{1}, c_(2) {"), ["statement:drop <<f()>>;"])


PROGRAM = """
#include <cstdio>
struct counter {
  int value = 0;
  void add(int n) { value += n; }
  explicit operator bool() const { return value != 0; }
};
int main() {
  counter c;
  for (int i = 0; i < 3; ++i) c.add(i);
  int* const null = nullptr;
  if (c && null == nullptr) c.add(c.value <= 3 ? 10 : 20);
  if (int* const p = &c.value) ++*p;
  std::printf("%d", c.value);
}
"""


class Running(unittest.TestCase):
    """The rewritten program, as each of its mutants."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        compiler = shutil.which("g++") or shutil.which("clang++-19")
        if compiler is None:
            raise unittest.SkipTest("no compiler")
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        text, cls.mutants = mutants_schema.rewrite(PROGRAM)
        (folder / "a.cpp").write_text(text)
        subprocess.run([compiler, "-std=c++23", "-w", "-include", HERE / "mutants_switch.inc",
                        "-o", folder / "a", folder / "a.cpp"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_as(self, number):
        met = pathlib.Path(self.folder.name) / "met"
        done = subprocess.run([pathlib.Path(self.folder.name) / "a"], capture_output=True, text=True, check=True,
                              env={"SMARM_MUTANT": str(number), "SMARM_MUTANTS_MET": str(met)})
        return done.stdout, [int(line) for line in met.read_text().split()]

    def test_each_mutant_that_is_met_does_what_it_says(self):
        plain, met = self.run_as(0)
        self.assertEqual(plain, "14")
        results = {f"{m.change} {re.search('<<(.*)>>', m.text)[1]}": (self.run_as(m.number)[0], m.number in met)
                   for m in self.mutants}
        self.assertEqual(results, {
            "condition:false i < 3": ("1", True),
            "compare:<= i < 3": ("27", True),
            "condition:true value != 0": ("14", False),
            "condition:false value != 0": ("4", True),
            "condition:true c && null == nullptr": ("14", False),
            "condition:false c && null == nullptr": ("4", True),
            "condition:true c": ("14", False),
            "condition:true null == nullptr": ("14", False),
            "condition:true c.value <= 3": ("14", False),
            "condition:false c.value <= 3": ("24", True),
            "compare:< c.value <= 3": ("24", True),
            "condition:false &c.value": ("13", True),
            "statement:drop value += n": ("1", True),
            "statement:drop c.add(i)": ("1", True),
            "statement:drop c.add(c.value <= 3 ? 10 : 20)": ("4", True),
            "statement:drop ++*p": ("13", True),
            'statement:drop std::printf("%d", c.value)': ("", True),
        })


if __name__ == "__main__":
    unittest.main()
