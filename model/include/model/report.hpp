// report writes a failing execution down for a person: what was found, every event in columns, why
// a read could return an old value, and how to see it again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "model/account.hpp"

namespace model {

class report {
 public:
  report(engine& from, const std::string& command)
      : engine_(from), facts_(from), command_(command), replay_(facts_.replay()) {}

  [[nodiscard]] const std::string& replay() const { return replay_; }

  [[nodiscard]] std::string text() {
    std::vector<event_id> order = facts_.interleaving();
    const bool ordinary = !order.empty();
    if (!ordinary) order = facts_.order();
    add("  " + engine_.kind() + ": " + engine_.message() + "\n");
    add(ordinary ? "  An ordinary interleaving shows it; the events in such an order:\n"
                 : "  No interleaving shows it: it needs weak memory. The events, causes first:\n");
    table(order);
    if (!ordinary) stale_reads(order);
    threads();
    modification_orders();
    add("  replay: " + replay_ + "\n");
    if (!command_.empty()) add("  again:  " + command_ + " --replay " + replay_ + "\n");
    return std::move(text_);
  }

 private:
  using row = std::vector<std::string>;

  void add(const std::string& more) { text_ += more; }

  [[nodiscard]] static std::string name(event_id id) {
    return "T" + std::to_string(id.thread) + "#" + std::to_string(id.index);
  }

  [[nodiscard]] static std::string show(const value& v) {
    char text[64];
    const auto number = static_cast<std::int64_t>(v.low);
    if (v.high != 0) {
      std::snprintf(text, sizeof text, "%#llx:%llx", static_cast<unsigned long long>(v.high),
                    static_cast<unsigned long long>(v.low));
    } else if (v.low == 0xffffffffU) {
      return "-1";
    } else if (number > 99'999 || number < -99'999) {
      std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(v.low));
    } else {
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
    }
    return text;
  }

  [[nodiscard]] std::string location(std::uint32_t id) {
    if (id == no_location) return "";
    place* p = engine_.objects().of(id);
    if (p == nullptr) return "(queue)";
    if (p->name != nullptr) return p->name;
    return "x" + std::to_string(id) + "@" + where(p->site);
  }

  [[nodiscard]] static std::string values(const event& e) {
    switch (e.kind) {
      case event_kind::store:
        return show(e.wrote);
      case event_kind::choose:
        return show(e.read);
      case event_kind::spawn:
        return "T" + show(e.read);
      case event_kind::fence:
      case event_kind::join:
      case event_kind::end:
        return "";
      default:
        break;
    }
    if (e.exclusive) return show(e.read) + " -> " + show(e.wrote);
    return show(e.read) + (e.blocked ? " (waits)" : e.kind == event_kind::cas ? " (fails)" : "");
  }

  [[nodiscard]] row columns(event_id id) {
    const event& e = facts_.execution().at(id);
    std::string who(2 * id.thread, ' ');
    who += name(id);
    const bool ordered = e.location != no_location || e.kind == event_kind::fence;
    const bool bare = e.kind == event_kind::end || e.kind == event_kind::join;
    std::string from;
    if (is_reader(e.kind)) from = is_initial(e.source) ? "<- initial" : "<- " + name(e.source);
    if (e.kind == event_kind::join) from = "<- " + name(e.source);
    return {who,
            e.kind == event_kind::end ? "end" : sites.at(e.site).what,
            ordered && !e.system ? name_of(e.strength) : "",
            bare ? "" : location(e.location),
            values(e),
            from,
            e.kind == event_kind::end ? "" : where(e.site)};
  }

  void table(const std::vector<event_id>& order) {
    std::vector<row> rows{
        {"thread", "operation", "order", "location", "value", "reads from", "at"}};
    for (const event_id id : order) rows.push_back(columns(id));
    std::vector<std::size_t> widths(rows[0].size());
    for (const row& r : rows)
      for (std::size_t c = 0; c < r.size(); ++c) widths[c] = std::max(widths[c], r[c].size());
    for (const row& r : rows) {
      std::string line = "    ";
      for (std::size_t c = 0; c < r.size(); ++c)
        line += r[c] + std::string(widths[c] - r[c].size() + 2, ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      add(line + "\n");
    }
  }

  // stale_reads: for each read that passed over newer writes, why the language lets it.
  void stale_reads(const std::vector<event_id>& order) {
    clock at;
    for (const event_id id : order) {
      const event& e = facts_.execution().at(id);
      if (is_reader(e.kind) && !e.system) {
        const auto passed = facts_.newer(e, at);
        if (!passed.empty()) explain(e, passed);
      }
      at.count[id.thread] = static_cast<std::uint16_t>(id.index + 1);
    }
  }

  void explain(const event& e, const std::vector<event_id>& passed) {
    add("  " + name(e.id) + " may read " +
        (is_initial(e.source) ? std::string{"the initial value"} : "the older " + name(e.source)) +
        ":");
    const event* earlier = facts_.execution().predecessor(e.id);
    for (const event_id id : passed) {
      const event& w = facts_.execution().at(id);
      add(" " + name(id) + " wrote " + show(w.wrote) + ", which does not happen before it");
      if (earlier != nullptr && earlier->causes.has(id))
        add(" (T" + std::to_string(e.id.thread) +
            " has heard of it, but through accesses that do not synchronise)");
      add(id == passed.back() ? "\n" : ";");
    }
  }

  // threads: what each one that did not end waits for, and who last wrote that.
  void threads() {
    for (std::size_t t = 0; t < threads_max; ++t) {
      const thread_state& s = engine_.of(t);
      const bool waits = s.status == thread_status::waiting ||
                         s.status == thread_status::retrying || s.status == thread_status::spinning;
      if (!waits) continue;
      add("  T" + std::to_string(t) + " waits in " + sites.at(s.waits_at).what + " at " +
          where(s.waits_at));
      const auto& events = facts_.execution().of(t);
      for (std::size_t i = s.count; i-- > 0;) {
        if (events[i].location == no_location) continue;
        const auto& writes = facts_.execution().location(events[i].location).writes;
        add(" on " + location(events[i].location) + ", last written " +
            (writes.empty() ? std::string{"never"} : "by " + name(writes.back())));
        break;
      }
      add("\n");
    }
  }

  void modification_orders() {
    const auto& locations = facts_.execution().locations();
    for (std::uint32_t id = 0; id < locations.size(); ++id) {
      std::string line;
      std::size_t writes = 0;
      for (const event_id w : locations[id].writes)
        if (facts_.is_done(w)) {
          line += " < " + name(w) + "=" + show(facts_.execution().at(w).wrote);
          ++writes;
        }
      place* p = engine_.objects().of(id);
      if (writes > 1 && p != nullptr)
        add("  order of writes to " + location(id) + ": " + show(p->first) + line + "\n");
    }
  }

  engine& engine_;
  account facts_;
  std::string command_;
  std::string replay_;
  std::string text_;
};

}  // namespace model
