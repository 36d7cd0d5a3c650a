// The interpreter of litmus programs: parser, threads, comparison with what has to come out.
#include "litmus.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "model/cell.hpp"

namespace litmus {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in{text};
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> tokens_of(std::string source) {
  for (std::size_t i = 0; i < source.size(); ++i)
    if (source[i] == ';' || source[i] == '{' || source[i] == '}') {
      source.insert(i, " ");
      source.insert(i + 2, " ");
      i += 2;
    }
  return split(source);
}

std::vector<statement> parse(const std::vector<std::string>& tokens, std::size_t& at,
                             std::uint32_t& line) {
  std::vector<statement> block;
  while (at < tokens.size() && tokens[at] != "}") {
    if (tokens[at] == ";") {
      ++at;
      continue;
    }
    statement s;
    s.line = ++line;
    while (at < tokens.size() && tokens[at] != ";" && tokens[at] != "}" && tokens[at] != "{")
      s.words.push_back(tokens[at++]);
    if (at < tokens.size() && tokens[at] == "{") {
      s.body = parse(tokens, ++at, line);
      ++at;
    } else if (s.words.size() > 1 && s.words[1] == "=") {
      s.target = s.words[0];
      s.words.erase(s.words.begin(), s.words.begin() + 2);
    }
    block.push_back(std::move(s));
  }
  return block;
}

void collect_registers(const std::vector<statement>& block, std::vector<std::string>& registers) {
  for (const statement& s : block) {
    if (!s.target.empty() && std::ranges::find(registers, s.target) == registers.end())
      registers.push_back(s.target);
    collect_registers(s.body, registers);
  }
}

std::memory_order order_of(const std::string& word) {
  if (word == "rlx") return std::memory_order_relaxed;
  if (word == "acq") return std::memory_order_acquire;
  if (word == "rel") return std::memory_order_release;
  if (word == "ar") return std::memory_order_acq_rel;
  return std::memory_order_seq_cst;
}

bool is_number(const std::string& word) {
  return word.find_first_not_of("-0123456789") == std::string::npos;
}

// The state of one execution: the locations, and what each thread has in its registers.
struct world {
  std::map<std::string, std::unique_ptr<model::atomic<std::int64_t>>> atomics;
  std::map<std::string, std::unique_ptr<model::plain<std::int64_t>>> plains;
  std::map<std::string, std::unique_ptr<model::cell<std::int64_t>>> cells;
};

// One thread of one execution.
class runner {
 public:
  explicit runner(world& shared) : shared_(shared) {}

  void run(const std::vector<statement>& block) {
    for (const statement& s : block) {
      if (s.words[0] == "IF") {
        if (holds(s.words)) run(s.body);
      } else {
        step(s);
      }
    }
  }

  [[nodiscard]] std::string show(const std::vector<std::string>& registers) const {
    std::string text;
    for (const std::string& r : registers) {
      const auto known = values_.find(r);
      text += " " + (known == values_.end() ? "-" : prefix(r) + std::to_string(known->second));
    }
    return text;
  }

 private:
  [[nodiscard]] std::string prefix(const std::string& r) const {
    const auto known = prefixes_.find(r);
    return known == prefixes_.end() ? "" : known->second;
  }

  [[nodiscard]] std::optional<std::int64_t> value(const std::string& word) const {
    if (is_number(word)) return std::stoll(word);
    const auto known = values_.find(word);
    if (known == values_.end()) return std::nullopt;
    return known->second;
  }

  [[nodiscard]] bool holds(const std::vector<std::string>& words) const {
    const auto left = value(words[1]);
    const auto right = value(words[3]);
    return left && left == right;
  }

  void step(const statement& s) {
    const std::vector<std::string>& w = s.words;
    const std::string& what = w[0];
    if (what == "F" && w[1] == "light") return model::fence_light();
    if (what == "F" && w[1] == "heavy") return model::fence_heavy();
    if (what == "F") return model::fence(order_of(w[1]));
    if (what == "NW" || what == "NR") return plain_step(s);
    model::atomic<std::int64_t>& x = *shared_.atomics.at(w[1]);
    if (what == "W") return x.store(*value(w[2]), order_of(w[3]));
    std::int64_t read = 0;
    if (what == "R") read = x.load(order_of(w[2]));
    if (what == "ADD") read = x.fetch_add(*value(w[2]), order_of(w[3]));
    if (what == "XCHG") read = x.exchange(*value(w[2]), order_of(w[3]));
    if (what == "CAS" || what == "CASW") {
      read = *value(w[2]);
      const bool weak = what == "CASW";
      const bool done =
          weak ? x.compare_exchange_weak(read, *value(w[3]), order_of(w[4]), order_of(w[5]))
               : x.compare_exchange_strong(read, *value(w[3]), order_of(w[4]), order_of(w[5]));
      if (weak) prefixes_[s.target] = done ? "ok" : "no";
    }
    values_[s.target] = read;
  }

  void plain_step(const statement& s) {
    const std::vector<std::string>& w = s.words;
    const auto cell = shared_.cells.find(w[1]);
    if (cell != shared_.cells.end()) {
      if (w[0] == "NW") return cell->second->write(*value(w[2]));
      values_[s.target] = cell->second->read();
    } else {
      model::plain<std::int64_t>& x = *shared_.plains.at(w[1]);
      if (w[0] == "NW") return x.write(*value(w[2]));
      values_[s.target] = x.read();
    }
  }

  world& shared_;
  std::map<std::string, std::int64_t> values_;
  std::map<std::string, std::string> prefixes_;
};

void collect_locations(const std::vector<statement>& block, std::set<std::string>& atomics,
                       std::set<std::string>& plains) {
  for (const statement& s : block) {
    const std::string& what = s.words[0];
    if (what == "NW" || what == "NR") plains.insert(s.words[1]);
    if (what != "NW" && what != "NR" && what != "F" && what != "IF") atomics.insert(s.words[1]);
    collect_locations(s.body, atomics, plains);
  }
}

std::int64_t initial_of(const program& p, const std::string& location) {
  const auto given = p.initial.find(location);
  return given == p.initial.end() ? 0 : given->second;
}

}  // namespace

std::vector<program> read(const std::string& path) {
  std::vector<program> programs;
  std::ifstream in{path};
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> words = split(line);
    if (words.empty()) continue;
    if (words[0] == "program") {
      programs.emplace_back();
      programs.back().id = words[1];
      programs.back().name = words[2];
      continue;
    }
    program& p = programs.back();
    if (words[0] == "thread") {
      p.sources.push_back(line.substr(7));
      std::size_t at = 0;
      auto number = static_cast<std::uint32_t>(100 * p.sources.size());
      p.threads.push_back(parse(tokens_of(p.sources.back()), at, number));
      collect_registers(p.threads.back(), p.registers.emplace_back());
    }
    if (words[0] == "init") p.initial[words[1]] = std::stoll(words[2]);
    if (words[0] == "finals") p.finals.assign(words.begin() + 1, words.end());
    if (words[0] == "executions") p.executions = std::stoull(words[1]);
    if (words[0] == "race") p.races = true;
    if (words[0] == "outcome") p.outcomes.insert(line.size() > 8 ? line.substr(7) : "");
  }
  return programs;
}

found run(const program& p, model::options wished, plain_as plain) {
  std::set<std::string> atomics;
  std::set<std::string> plains;
  for (const auto& thread : p.threads) collect_locations(thread, atomics, plains);
  for (const std::string& x : p.finals)
    if (!plains.contains(x)) atomics.insert(x);
  found result;
  result.result = model::check(wished, [&] {
    world shared;
    for (const std::string& x : atomics)
      shared.atomics[x] = std::make_unique<model::atomic<std::int64_t>>(initial_of(p, x));
    for (const std::string& x : plains) {
      if (plain == plain_as::cells) {
        shared.cells[x] = std::make_unique<model::cell<std::int64_t>>(initial_of(p, x));
      } else {
        shared.plains[x] = std::make_unique<model::plain<std::int64_t>>(initial_of(p, x));
      }
    }
    std::vector<std::unique_ptr<runner>> runners;
    std::vector<model::thread> threads;
    for (const auto& source : p.threads) {
      runners.push_back(std::make_unique<runner>(shared));
      threads.emplace_back([&source, one = runners.back().get()] { one->run(source); });
    }
    for (model::thread& t : threads) t.join();
    std::string outcome;
    for (std::size_t t = 0; t < runners.size(); ++t) outcome += runners[t]->show(p.registers[t]);
    for (const std::string& x : p.finals) {
      const bool is_plain = plains.contains(x);
      const auto value = !is_plain ? shared.atomics.at(x)->load(std::memory_order_relaxed)
                         : plain == plain_as::cells ? shared.cells.at(x)->read()
                                                    : shared.plains.at(x)->read();
      outcome += " " + std::to_string(value);
    }
    result.outcomes.insert(outcome);
  });
  return result;
}

std::string difference(const program& p, const found& f) {
  std::string text;
  for (const std::string& o : p.outcomes)
    if (!f.outcomes.contains(o)) text += " missing" + o;
  for (const std::string& o : f.outcomes)
    if (!p.outcomes.contains(o)) text += " extra" + o;
  if (f.result.executions != p.executions)
    text += " executions " + std::to_string(f.result.executions) + " instead of " +
            std::to_string(p.executions);
  if (p.races != (f.result.races > 0)) text += p.races ? " race not seen" : " race seen";
  if (f.result.outcome != model::verdict::pass)
    text += std::string{" "} + name_of(f.result.outcome) + " " + f.result.message;
  return text;
}

}  // namespace litmus
