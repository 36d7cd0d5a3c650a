// runner makes a program of a set of models: each is a function with a name, and the command line
// says which run, how, and under which mutation.
//
//   MODEL(two_pushes) { ... }                       must pass
//   MODEL_WITH(timed, o.spurious = 0) { ... }       with options
//   MODEL_FAILS(lost_wake_up, "deadlock") { ... }   must fail, and in this way
//   MODEL_MAIN()                                    in one file of the program
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace model {

struct registered {
  const char* name;
  void (*body)();
  const char* fails;  // the kind of failure that is wanted, or empty
  void (*tune)(options&);
};

// registry holds the models of the program, in the order of their definition.
[[nodiscard]] inline std::vector<registered>& registry() {
  static std::vector<registered> all;
  return all;
}

class runner {
 public:
  // run does what the command line says and returns the program's exit status: 0 if every model
  // that was asked for ended as it should, 1 if not, 2 for a wrong command line.
  [[nodiscard]] int run(int argc, char** argv) {
    program_ = argc > 0 ? argv[0] : "model";
    for (int i = 1; i < argc; ++i)
      if (!read(argv[i], i + 1 < argc ? argv[i + 1] : nullptr, i)) return usage(argv[i]);
    if (list_) return list();
    for (const registered& m : registry())
      if (wanted_.empty() || is_wanted(m.name)) run_one(m);
    if (show_sites_) print_sites();
    if (passed_ + failed_ == 0) std::printf("no model of that name; see --list\n");
    if (sites.is_mutating() && sites.struck() == 0)
      std::printf("the mutation met no site: wrong file, line or operation?\n");
    std::printf("%zu passed, %zu failed\n", passed_, failed_);
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  static int usage(const char* wrong) {
    std::fprintf(
        stderr,
        "not understood: %s\n"
        "  --list                  the models\n"
        "  --run NAME              only this one; may be repeated; NAME* is a prefix\n"
        "  --mode exhaustive|random|pct   --runs N   --seed N   --depth N\n"
        "  --executions N          bound of the exhaustive search\n"
        "  --seconds N             bound of its time\n"
        "  --replay STRING         one execution, with --run NAME\n"
        "  --mutate FILE:LINE[:COLUMN][:OPERATION]:ACTION\n"
        "  --sites                 the places that touched shared state, and their mutations\n"
        "  --quiet                 no reports   --progress   a line now and then\n",
        wrong);
    return 2;
  }

  [[nodiscard]] bool read(std::string_view flag, const char* next, int& i) {
    if (flag == "--list") return list_ = true;
    if (flag == "--sites") return show_sites_ = true;
    if (flag == "--quiet") return quiet_ = true;
    if (flag == "--progress") return progress_ = true;
    if (next == nullptr) return false;
    ++i;
    if (flag == "--run") return wanted_.emplace_back(next), true;
    if (flag == "--replay") return replay_ = next, true;
    if (flag == "--mutate") return mutation_ = next, sites.mutate(next);
    if (flag == "--mode") return mode_ = next, is_mode(mode_);
    if (flag == "--runs") return number(next, runs_);
    if (flag == "--seed") return number(next, seed_);
    if (flag == "--depth") return number(next, depth_);
    if (flag == "--executions") return number(next, executions_);
    if (flag == "--seconds") return number(next, seconds_);
    return false;
  }

  [[nodiscard]] static bool is_mode(std::string_view text) {
    return text == "exhaustive" || text == "random" || text == "pct";
  }
  [[nodiscard]] static bool number(const char* text, std::uint64_t& into) {
    char* end = nullptr;
    into = std::strtoull(text, &end, 10);
    return end != text && *end == '\0';
  }

  [[nodiscard]] bool is_wanted(std::string_view name) const {
    for (const std::string& w : wanted_)
      if (w == name || (w.ends_with('*') && name.starts_with(w.substr(0, w.size() - 1))))
        return true;
    return false;
  }

  [[nodiscard]] static int list() {
    for (const registered& m : registry())
      std::printf("%s%s%s\n", m.name, *m.fails != '\0' ? "  has to fail: " : "", m.fails);
    return 0;
  }

  [[nodiscard]] options wishes(const registered& m) const {
    options o;
    o.name = m.name;
    m.tune(o);
    if (mode_ == "exhaustive") o.mode = search_mode::exhaustive;  // of a model that is sampled too
    if (mode_ == "random") o.mode = search_mode::random;
    if (mode_ == "pct") o.mode = search_mode::pct;
    if (runs_ != 0) o.runs = runs_;
    if (seed_ != 0) o.seed = seed_;
    if (depth_ != 0) o.depth = static_cast<unsigned>(depth_);
    if (executions_ != 0) o.executions_max = executions_;
    if (seconds_ != 0) o.seconds_max = static_cast<double>(seconds_);
    o.replay = replay_;
    o.progress = progress_;
    if (quiet_) o.shorter_runs = 0;  // nobody reads the report
    o.command = program_ + " --run " + m.name;
    if (!mutation_.empty()) o.command += " --mutate " + mutation_;
    return o;
  }

  void run_one(const registered& m) {
    const options o = wishes(m);
    const result r = check(o, m.body);
    const bool fails = *m.fails != '\0';
    const bool good =
        fails ? r.outcome == verdict::fail && r.kind == m.fails : r.outcome == verdict::pass;
    ++(good ? passed_ : failed_);
    std::printf("%-44s %-10s %8llu executions %7llu blocked %6llu pruned %8.3f s%s%s\n", m.name,
                name_of(r.outcome), static_cast<unsigned long long>(r.executions),
                static_cast<unsigned long long>(r.blocked),
                static_cast<unsigned long long>(r.pruned), r.seconds, good ? "" : "  <-- ",
                good    ? ""
                : fails ? "has to fail"
                        : r.kind.c_str());
    const bool tell = !quiet_ && !r.report.empty();
    if (!good && tell) std::fputs(r.report.c_str(), stdout);
    if (!good && !tell && !r.message.empty()) std::printf("  %s\n", r.message.c_str());
    std::fflush(stdout);
  }

  static void print_sites() {
    for (const site& s : sites.all()) {
      if (s.hits == 0) continue;
      std::printf("site %s:%u:%u %s %s%s%s %llu\n", s.file, s.line, s.column, s.what,
                  name_of(s.strength), s.has_failure ? " " : "",
                  s.has_failure ? name_of(s.failure) : "", static_cast<unsigned long long>(s.hits));
      for (const mutation change : mutations_of(s))
        std::printf("mutate %s:%u:%u:%s:%s\n", s.file, s.line, s.column, s.what,
                    mutation_names[static_cast<std::size_t>(change)]);
    }
  }

  std::string program_;
  std::vector<std::string> wanted_;
  std::string replay_;
  std::string mutation_;
  std::string mode_;
  std::uint64_t runs_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t depth_ = 0;
  std::uint64_t executions_ = 0;
  std::uint64_t seconds_ = 0;
  bool list_ = false;
  bool show_sites_ = false;
  bool quiet_ = false;
  bool progress_ = false;
  std::size_t passed_ = 0;
  std::size_t failed_ = 0;
};

namespace detail {
[[nodiscard]] inline bool add_model(const registered& m) {
  registry().push_back(m);
  return true;
}
}  // namespace detail

}  // namespace model

#define MODEL_DETAIL(name, kind, ...)                                                          \
  static void model_body_##name();                                                             \
  [[maybe_unused]] static const bool model_known_##name =                                      \
      ::model::detail::add_model({#name, &model_body_##name, kind,                             \
                                  []([[maybe_unused]] ::model::options& o) { __VA_ARGS__; }}); \
  static void model_body_##name()

#define MODEL(name) MODEL_DETAIL(name, "", static_cast<void>(o))
#define MODEL_WITH(name, ...) MODEL_DETAIL(name, "", __VA_ARGS__)
#define MODEL_FAILS(name, kind) MODEL_DETAIL(name, kind, static_cast<void>(o))
#define MODEL_MAIN()                                                            \
  int main(int argc, char** argv) { return ::model::runner{}.run(argc, argv); } \
  static_assert(true)
