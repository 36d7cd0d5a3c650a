// fiber: what a thread does once before it runs fibers. The switches themselves are inline.
#include "fiber/fiber.hpp"

#include <pthread.h>

namespace smarm::detail {

void adopt_thread(fiber& native) noexcept {
  native = fiber{};
  bind_thread_words();
#if defined(SMARM_ADDRESS_SANITIZER)
  // It must be told the bounds of the stack it comes back to. The C library knows them.
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
  }
  native.stack = {static_cast<std::byte*>(low), size};
#elif defined(SMARM_THREAD_SANITIZER)
  native.twin = __tsan_get_current_fiber();
#endif
}

}  // namespace smarm::detail
