// this_server is what a server's handler, or its constructor, may ask for.
//
//   void handle(shut_down) { smarm::this_server::stop(); }
//   explicit cache(path where) { smarm::this_server::continue_with([this] { load(); }); }
//
// Nothing here parks or is a stop point; outside of a server each call throws misuse.
#pragma once

#include <functional>

#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>

namespace smarm::this_server {

// stop ends the server when the handler returns; the first reason counts. In a constructor or init
// it fails the start.
void stop(exit_reason why = {});

// ignore, in a constructor or init: there is nothing to do; the start answers `ignored`.
void ignore();

// set_timeout has handle(timeout) called when no message has come until then; the next message
// cancels it. Requests of the system do not.
void set_timeout(deadline until);

// hibernate has the wait for the next message give the memory of the stack that is not in use back
// to the system (smarm::hibernate), once: each handler that wants it asks for it.
void hibernate();

// continue_with has the function called when the handler has returned, before any message that is
// queued.
void continue_with(std::move_only_function<void()> step);

}  // namespace smarm::this_server
