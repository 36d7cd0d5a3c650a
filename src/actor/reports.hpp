// What the actors of this layer report of themselves.
#pragma once

#include <string>
#include <utility>

#include <smarm/exit_reason.hpp>
#include <smarm/report.hpp>
#include <smarm/this_actor.hpp>

namespace smarm::detail {

// report_of_self reports an event of the calling actor. Throws std::bad_alloc.
inline void report_of_self(report_kind kind, exit_reason why, std::string text = {}) {
  emit_report({.kind = kind,
               .who = self(),
               .name = std::string(self_name()),
               .reason = std::move(why),
               .text = std::move(text)});
}

}  // namespace smarm::detail
