// access is what a thread asks of shared state, before it is known what it reads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "model/event.hpp"
#include "model/site.hpp"

namespace model {

// function_ref is a callable that somebody else keeps alive for the length of a call.
template <class Signature>
class function_ref;

template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  function_ref() = default;
  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, function_ref>)
  function_ref(Callable&& callable)  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(arguments...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(object_, arguments...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  void* object_ = nullptr;
  Result (*call_)(void*, Arguments...) = nullptr;
};

struct access {
  event_kind kind = event_kind::fence;
  order success = order::relaxed;
  order failure = order::relaxed;
  bool system = false;
  bool timed = false;   // a wait that time ends if nobody else does
  bool sticky = false;  // a wait that is over as soon as any write was acceptable, seen or not
  bool loose = false;   // a mutation: the cas does not compare
  // cas: it may fail without a reason as long as the execution has fewer such failures; 0: strong.
  unsigned weak_max = 0;
  std::uint32_t site = 0;
  std::uint32_t location = no_location;
  std::uint64_t alternatives = 0;     // choose
  value first;                        // the location's initial value
  value operand;                      // store: what; cas: the desired value
  value expected;                     // cas
  event_id source;                    // join: the end event
  function_ref<value(value)> modify;  // update
  function_ref<bool(value)> accepts;  // a read that waits until this is true of what it reads
};

// step is what the thread gets back.
struct step {
  value read;
  bool succeeded = false;  // cas: it has written
  bool spurious = false;
};

}  // namespace model
