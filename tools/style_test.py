"""Tests of tools/style: each rule finds its fault in a small tree, and leaves a sound one alone."""
import unittest

from style import docs, graph, text
from style.source import Tree, strip

PROSE = "// What this file is, in one sentence.\n"
LAYER = "smarm_layer(sync DEPS sched base)\n"


def findings(rule, files):
    return [f"{f.path}:{f.line}" for f in rule(Tree(files))]


class Graph(unittest.TestCase):
    HOUSE = {
        "src/base/assert.hpp": PROSE, "src/sched/park.hpp": PROSE, "src/sync/channel_core.hpp": PROSE,
        "src/io/driver.hpp": PROSE, "include/smarm/pid.hpp": PROSE,
        "include/smarm/detail/box.hpp": PROSE, "tests/support/seed.hpp": PROSE,
        "tests/model/actors.hpp": PROSE, "model/runner.hpp": PROSE,
    }

    def edge(self, rule, path, name):
        return findings(rule, {**self.HOUSE, path: f'{PROSE}#include "{name}"\n'})

    def test_a_layer_may_look_down_and_at_public_headers(self):
        for name in ("base/assert.hpp", "sched/park.hpp", "smarm/pid.hpp", "sync/channel_core.hpp"):
            self.assertEqual(self.edge(graph.upward_include, "src/sync/x.cpp", name), [])

    def test_a_layer_may_not_look_up(self):
        self.assertEqual(self.edge(graph.upward_include, "src/base/x.cpp", "sched/park.hpp"),
                         ["src/base/x.cpp:2"])

    def test_a_layer_may_not_look_at_its_users_or_the_fixtures(self):
        self.assertEqual(self.edge(graph.upward_include, "src/io/x.cpp", "tests/support/seed.hpp"),
                         ["src/io/x.cpp:2"])
        self.assertEqual(self.edge(graph.upward_include, "src/io/x_test.cpp", "tests/support/seed.hpp"), [])

    def test_a_model_may_look_at_the_checker_and_its_stand_ins(self):
        for name in ("tests/model/actors.hpp", "model/runner.hpp"):
            self.assertEqual(self.edge(graph.upward_include, "src/io/x_model.cpp", name), [])

    def test_neighbours_do_not_know_each_other(self):
        self.assertEqual(self.edge(graph.sideways_include, "src/sync/x.cpp", "io/driver.hpp"),
                         ["src/sync/x.cpp:2"])

    def test_an_app_includes_public_headers_and_base_only(self):
        path = "apps/sider/x.cpp"
        self.assertEqual(self.edge(graph.private_header, path, "sched/park.hpp"), [path + ":2"])
        self.assertEqual(self.edge(graph.private_header, path, "base/assert.hpp"), [])
        self.assertEqual(self.edge(graph.private_header, "bench/x.cpp", "base/assert.hpp"), ["bench/x.cpp:2"])
        self.assertEqual(self.edge(graph.private_header, path, "smarm/detail/box.hpp"), [path + ":2"])
        self.assertEqual(self.edge(graph.private_header, path, "smarm/pid.hpp"), [])

    def test_a_public_header_includes_std_only(self):
        def check(line):
            return findings(graph.public_header_std_only,
                            {**self.HOUSE, "include/smarm/x.hpp": f"{PROSE}{line}\n"})
        self.assertEqual(check("#include <vector>"), [])
        self.assertEqual(check("#include <smarm/pid.hpp>"), [])
        for line in ("#include <sys/epoll.h>", '#include "base/assert.hpp"', "#include <boost/x.hpp>"):
            self.assertEqual(check(line), ["include/smarm/x.hpp:2"])

    def test_a_library_has_one_place(self):
        def check(path):
            return findings(graph.foreign_library, {path: PROSE + "#include <gtest/gtest.h>\n"})
        self.assertEqual(check("src/io/x.cpp"), ["src/io/x.cpp:2"])
        self.assertEqual(check("src/io/x_test.cpp"), [])

    def test_dependencies_are_declared(self):
        files = {**self.HOUSE, "src/sync/CMakeLists.txt": LAYER,
                 "src/sync/x.cpp": PROSE + '#include "base/assert.hpp"\n#include "fiber/f.hpp"\n',
                 "src/fiber/f.hpp": PROSE}
        self.assertEqual(findings(graph.declared_dependencies, files), ["src/sync/x.cpp:3"])

    def test_a_cycle_is_found(self):
        files = {"src/base/a.hpp": '#include "base/b.hpp"\n', "src/base/b.hpp": '#include "base/a.hpp"\n'}
        self.assertEqual(len(findings(graph.include_cycle, files)), 1)

    def test_every_file_is_built_or_included(self):
        files = {"src/sync/CMakeLists.txt": LAYER, "src/sync/a.cpp": '#include "sync/a.hpp"\n',
                 "src/sync/a.hpp": "", "src/sync/deep/b.cpp": "", "src/sync/unused.hpp": "",
                 "bench/CMakeLists.txt": "file(GLOB programs *.cpp)\n", "bench/c.cpp": "",
                 "apps/x/CMakeLists.txt": "add_executable(x main.cpp)\n", "apps/x/main.cpp": "",
                 "apps/x/forgotten.cpp": ""}
        self.assertEqual(findings(graph.in_some_target, files),
                         ["apps/x/forgotten.cpp:1", "src/sync/deep/b.cpp:1", "src/sync/unused.hpp:1"])


class Text(unittest.TestCase):
    def one(self, rule, body, path="src/sync/x.cpp"):
        return findings(rule, {path: PROSE + body})

    def test_lengths(self):
        self.assertEqual(len(self.one(text.file_length, "\n" * 700)), 1)
        self.assertEqual(self.one(text.file_length, "\n" * 699), [])
        self.assertEqual(len(self.one(text.file_length, "\n" * 300, "src/sync/x.hpp")), 1)
        self.assertEqual(len(self.one(text.line_length, "x" * 101)), 1)
        self.assertEqual(self.one(text.line_length, "x" * 100), [])
        self.assertEqual(len(self.one(text.line_length, "int a; \n\tint b;\n")), 2)

    def test_functions_are_found_and_measured(self):
        long_body = "  f();\n" * 69
        for heading in ("int f() {", "template <class T>\nvoid f(T t) {", "f::f() : a_{1}, b_{2} {",
                        "auto f() const noexcept -> int {", "TEST(a, b) {"):
            for wrapped in ("%s", "namespace a {\n%s}\n", "struct s {\n%s};\n"):
                def body(lines):
                    return wrapped % f"{heading}\n{lines}}}\n"
                self.assertEqual(len(self.one(text.function_length, body(long_body))), 1, heading)
                self.assertEqual(self.one(text.function_length, body("  f();\n" * 60)), [], heading)

    def test_a_long_class_or_namespace_is_no_function(self):
        for heading in ("namespace a {", "class alignas(64) a : public b<c> {", "enum class e {"):
            self.assertEqual(self.one(text.function_length, heading + "\n  x;" * 100 + "\n};\n"), [])

    def test_a_file_starts_with_prose(self):
        self.assertEqual(findings(text.file_prose, {"src/io/x.cpp": "#include <vector>\n"}),
                         ["src/io/x.cpp:1"])
        self.assertEqual(findings(text.file_prose, {"src/io/x.cpp": PROSE}), [])
        self.assertEqual(findings(text.file_prose, {"src/io/x.hpp": PROSE}), ["src/io/x.hpp:1"])

    def test_misplaced_words(self):
        for word in ("std::atomic<int> x;", "thread_local int x;", "std::mutex m;", "assert(x);",
                     "volatile int x;", "std::this_thread::sleep_for(x);", "using namespace std;",
                     "// TODO tidy"):
            self.assertEqual(len(self.one(text.misplaced_word, word + "\n")), 1, word)
        for word in ("static_assert(x);", "asm volatile(\"\");", "// a volatile matter", "SMARM_ASSERT(x);",
                     "using namespace std::chrono_literals;", "smarm::mutex m;", "smarm::sleep_for(x);"):
            self.assertEqual(self.one(text.misplaced_word, word + "\n"), [], word)

    def test_the_place_for_a_word(self):
        self.assertEqual(self.one(text.misplaced_word, "std::atomic<int> x;\n", "src/base/atomic.hpp"), [])
        self.assertEqual(self.one(text.misplaced_word, "thread_local int x;\n", "src/fiber/current.cpp"), [])

    def test_blocking_calls(self):
        for call in ("::read(fd, p, n);", "n = epoll_wait(a, b, c, d);", "::poll(p, 1, -1);"):
            self.assertEqual(len(self.one(text.blocking_call, call + "\n")), 1, call)
            self.assertEqual(self.one(text.blocking_call, call + "\n", "src/io/x.cpp"), [], call)
        for call in ("::write(STDERR_FILENO, p, n);", "stream.read(p);", "file::read(p);", "send(x);",
                     "::poll(&p, 1, 0);", "::recv(fd, p, n, MSG_PEEK | MSG_DONTWAIT);"):
            self.assertEqual(self.one(text.blocking_call, call + "\n"), [], call)

    def test_atomic_accesses_are_explained(self):
        field = "atomic<int> x_;\n\n\n\n\n\n"
        self.assertEqual(len(self.one(text.atomic_comment, field + "x_.load(acquire);\n")), 1)
        self.assertEqual(len(self.one(text.atomic_comment, field + "x_.load();  // pairs with f\n")), 1)
        self.assertEqual(self.one(text.atomic_comment, field + "// with f\n\n\nx_.load(acquire);\n"), [])
        self.assertEqual(self.one(text.atomic_comment, field + "ours_.load();\n"), [])

    def test_comments_and_literals_are_no_code(self):
        self.assertEqual(strip('a("b // c"); // d\nR"(e\n)";'), 'a("");  \n""\n;')
        self.assertEqual(strip("1'000'000 + '\"' + x"), "1'000'000 + ' ' + x")


class Docs(unittest.TestCase):
    def test_links(self):
        files = {"a.md": "# A\n[x](docs/b.md#the-heading) [y](docs) [z](https://x.y)\n", "docs/b.md":
                 "# B\n## The heading\n"}
        self.assertEqual(findings(docs.dead_link, files), [])
        files["a.md"] = "# A\n[x](docs/c.md)\n[y](docs/b.md#none)\n`[z](no)`\n"
        self.assertEqual(findings(docs.dead_link, files), ["a.md:2", "a.md:3"])

    def test_mentions(self):
        self.assertEqual(findings(docs.dead_mention, {"a.cpp": "// see NOWHERE.md\n"}), ["a.cpp:1"])
        self.assertEqual(findings(docs.dead_mention, {"a.cpp": "// see README.md\n", "README.md": ""}), [])

    def test_titles(self):
        self.assertEqual(findings(docs.one_title, {"a.md": "# A\n```\n# no title\n```\n"}), [])
        self.assertEqual(findings(docs.one_title, {"a.md": "# A\n# B\n"}), ["a.md:2"])

    def test_words(self):
        for line in ("see /home/x/y", "as issue 12 asks", "the brief says so"):
            self.assertEqual(findings(docs.forbidden_words, {"a.cpp": line + "\n"}), ["a.cpp:1"])
        for line in ("an issue of order", "libunwind/libunwind#580", "src/work/x", "/proc/self/stat"):
            self.assertEqual(findings(docs.forbidden_words, {"a.cpp": line + "\n"}), [])


if __name__ == "__main__":
    unittest.main()
