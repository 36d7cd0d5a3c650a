// envelope is one message on its way to a mailbox: a link, what type it holds, and behind it the
// value. Types are told apart by the address of their message_type.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace smarm::detail {

struct envelope;

struct message_type {
  std::size_t size;
  std::size_t align;
  void (*destroy)(void* value) noexcept;
  const std::type_info* info;
  // Takes an envelope back that lies in another's block; null: each has its own.
  void (*give_back)(envelope& empty) noexcept = nullptr;
};

template <class T>
inline constexpr message_type message_type_of{
    sizeof(T), alignof(T), [](void* value) noexcept { std::destroy_at(static_cast<T*>(value)); },
    &typeid(T)};

struct envelope {
  envelope* next = nullptr;
  const message_type* type = nullptr;
};

// payload_of is where the value lies, whether or not it has been made yet.
[[nodiscard]] inline void* payload_of(envelope& of) noexcept {
  const std::size_t align = of.type->align < alignof(void*) ? alignof(void*) : of.type->align;
  return reinterpret_cast<std::byte*>(&of) + ((sizeof(envelope) + align - 1) & ~(align - 1));
}

// envelope_allocate gives memory for a message, its value still to be made; envelope_free takes it
// back when the value has been destroyed; envelope_discard destroys the value first.
// envelope_allocate throws std::bad_alloc.
[[nodiscard]] envelope* envelope_allocate(const message_type& type);
void envelope_free(envelope& empty) noexcept;
inline void envelope_discard(envelope& full) noexcept {
  full.type->destroy(payload_of(full));
  envelope_free(full);
}

struct envelope_discarder {
  void operator()(envelope* full) const noexcept { envelope_discard(*full); }
};
// full_envelope owns an envelope with its value.
using full_envelope = std::unique_ptr<envelope, envelope_discarder>;

// envelope_of puts a value into an envelope of its own.
template <class T>
[[nodiscard]] full_envelope envelope_of(T&& value) {
  using type = std::decay_t<T>;
  static_assert(std::is_object_v<type>, "a message is a value");
  envelope* const fresh = envelope_allocate(message_type_of<type>);
  try {
    ::new (payload_of(*fresh)) type(std::forward<T>(value));
  } catch (...) {
    envelope_free(*fresh);
    throw;
  }
  return full_envelope(fresh);
}

}  // namespace smarm::detail
