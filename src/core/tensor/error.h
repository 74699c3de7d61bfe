// Errors of the core: a kind that the Python room maps to an exception class, and a message.
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace rushlight {

enum class ErrorKind { Runtime, Type, Value, Index, NotImplemented, OutOfMemory, Overflow, ZeroDivision, Buffer };

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind(kind), message(std::move(message)) {}
  const char* what() const noexcept override { return message.c_str(); }
  ErrorKind kind;
  std::string message;
};

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// Throws an Error of the given kind whose message is the concatenation of `parts`.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, concat(parts...));
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  throw Error(ErrorKind::Runtime, concat(parts...));
}

/// Throws a RuntimeError unless `condition` holds.
template <class... Parts>
inline void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(parts...);
}

template <class... Parts>
inline void check_index(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::Index, parts...);
}

template <class... Parts>
inline void check_value(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::Value, parts...);
}

template <class... Parts>
inline void check_type(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::Type, parts...);
}

}  // namespace rushlight
