// Does not compile: a child's arguments are copied at each start, and this one cannot be copied.
#include <memory>

#include <smarm/server_spec.hpp>

struct owner {
  std::unique_ptr<int> held;
};

smarm::child_spec wrong() {
  return smarm::server_spec<owner>("owner", {}, std::make_unique<int>(1));
}
