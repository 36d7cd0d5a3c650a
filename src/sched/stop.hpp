// forced_stop is the exception by which a requested stop unwinds an actor.
//
// It is no std::exception, so handlers for errors let it pass; a catch (...) that swallows it only
// puts the end off to the next stop point, because the request itself stays in the state word.
#pragma once

namespace smarm::detail {

struct forced_stop {};

}  // namespace smarm::detail
