// Glob patterns as KEYS, SCAN and PSUBSCRIBE know them: `*`, `?`, `[a-z]`, `[^a-z]`, `\x`.
//
// Odd patterns mean what they mean in Redis: a class that is never closed ends with the pattern, a
// range written backwards is turned round, a backslash at the very end is itself.
// Why not recursion: on a mismatch only the last `*` is tried again, one byte further on. Any match
// that an earlier `*` could still find, the last one finds too, so the cost is at most pattern
// times text, where trying every `*` makes "a*a*a*a*b" exponential. Threads: any; pure.
#pragma once

#include <string_view>

namespace sider {

// glob_matches tells whether all of `text` fits `pattern`. LIMIT: O(|pattern| * |text|).
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace sider
