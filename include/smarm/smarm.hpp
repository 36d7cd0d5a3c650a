// smarm.hpp is all of the core in one include; each header also stands alone.
#pragma once

// Actors and the runtime that runs them.
#include <smarm/config.hpp>
#include <smarm/deadline.hpp>
#include <smarm/errors.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/term.hpp>
#include <smarm/this_actor.hpp>

// What they say to each other and wait for.
#include <smarm/channel.hpp>
#include <smarm/channel_error.hpp>
#include <smarm/condition_variable.hpp>
#include <smarm/guarded.hpp>
#include <smarm/monitor.hpp>
#include <smarm/mutex.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/select.hpp>
#include <smarm/semaphore.hpp>

// How they find each other, fail together and are looked after.
#include <smarm/application.hpp>
#include <smarm/call.hpp>
#include <smarm/group.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/registry.hpp>
#include <smarm/report.hpp>
#include <smarm/request_collection.hpp>
#include <smarm/scope.hpp>
#include <smarm/server.hpp>
#include <smarm/server_spec.hpp>
#include <smarm/start.hpp>
#include <smarm/state_machine.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/task.hpp>
#include <smarm/this_server.hpp>
#include <smarm/timer.hpp>

// What they do with the world outside.
#include <smarm/blocking.hpp>
#include <smarm/fd.hpp>
#include <smarm/io_result.hpp>
#include <smarm/signals.hpp>
#include <smarm/stream.hpp>
#include <smarm/tcp.hpp>
#include <smarm/unix_socket.hpp>
