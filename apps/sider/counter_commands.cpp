// Commands that count: a string that reads as a number is replaced by another that does.
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "command.hpp"
#include "text.hpp"

namespace sider::run {

namespace {

constexpr std::string_view overflow_error = "ERR increment or decrement would overflow";
constexpr std::string_view not_a_float_error = "ERR value is not a valid float";

// add_integer adds `step` to the key's value, which is 0 if there is none.
void add_integer(shard_call& call, std::int64_t step) {
  entry* found = call.store.find(call.key, call.now_ms);
  std::string* text = found == nullptr ? nullptr : string_in(*found);
  if (found != nullptr && text == nullptr) return call.reply.error(wrong_type_error);
  std::int64_t value = 0;
  if (text != nullptr) {
    const auto parsed = parse_integer(*text);
    if (!parsed) return call.reply.error(not_an_integer_error);
    value = *parsed;
  }
  if (__builtin_add_overflow(value, step, &value)) return call.reply.error(overflow_error);
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::string_view printed(digits, static_cast<std::size_t>(end - digits));
  if (text != nullptr) {
    *text = printed;  // in place, so the deadline stays
  } else {
    call.store.set(call.key, std::string(printed));
  }
  call.reply.integer(value);
}

}  // namespace

void incr(shard_call& call) { add_integer(call, 1); }

void decr(shard_call& call) { add_integer(call, -1); }

void incrby(shard_call& call) {
  const auto step = parse_integer(call.arguments[2]);
  if (!step) return call.reply.error(not_an_integer_error);
  add_integer(call, *step);
}

void decrby(shard_call& call) {
  const auto step = parse_integer(call.arguments[2]);
  if (!step) return call.reply.error(not_an_integer_error);
  if (*step == std::numeric_limits<std::int64_t>::min()) {
    return call.reply.error("ERR decrement would overflow");
  }
  add_integer(call, -*step);
}

void incrbyfloat(shard_call& call) {
  entry* found = call.store.find(call.key, call.now_ms);
  std::string* text = found == nullptr ? nullptr : string_in(*found);
  if (found != nullptr && text == nullptr) return call.reply.error(wrong_type_error);
  const auto value = text == nullptr ? std::optional<long double>(0) : parse_long_double(*text);
  const auto step = parse_long_double(call.arguments[2]);
  if (!value || !step) return call.reply.error(not_a_float_error);
  const long double sum = *value + *step;
  if (std::isnan(sum) || std::isinf(sum)) {
    return call.reply.error("ERR increment would produce NaN or Infinity");
  }
  std::string printed = format_long_double(sum);
  call.reply.bulk(printed);
  if (text != nullptr) {
    *text = std::move(printed);
  } else {
    call.store.set(call.key, std::move(printed));
  }
}

}  // namespace sider::run
