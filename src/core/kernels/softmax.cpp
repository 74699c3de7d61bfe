#include "kernels/softmax.h"

#include <algorithm>
#include <memory>

#include "kernels/cpu.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)  \
  namespace isa {               \
  SoftmaxBuild softmax_build(); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

namespace {

const SoftmaxBuild& build() {
  static const SoftmaxBuild chosen = RUSHLIGHT_BEST(softmax_build());
  return chosen;
}

/// Calls f(offset, out, width) for every line, or strip of lines: where it begins in the tensor, and in the results
/// that have one element per line (both in elements).
template <class F>
void for_strips(const Block& b, F&& f) {
  std::int64_t strips = (b.inner + softmax_strip - 1) / softmax_strip, width = std::min(b.inner, softmax_strip);
  std::int64_t work = std::max<std::int64_t>(1, b.n * width);
  parallel_for(
      b.outer * strips, std::max<std::int64_t>(1, (1 << 13) / work), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          std::int64_t block = k / strips, column = k % strips * softmax_strip;
          f(block * b.n * b.inner + column, block * b.inner + column, std::min(softmax_strip, b.inner - column));
        }
      });
}

/// Lines too short to be worth a call each: strips of them are turned, worked on side by side, and turned back.
bool is_short(const Block& b) { return b.inner == 1 && b.n <= 16 && b.outer >= 64; }

/// to[i * width + j] = from[j * n + i]
void turn(DType dtype, const char* from, std::int64_t n, std::int64_t width, char* to) {
  visit_width(item_size(dtype), [&]<class T>() {
    auto* in = reinterpret_cast<const T*>(from);
    auto* out = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < width; ++j) out[i * width + j] = in[j * n + i];
  });
}

/// Calls f(first line, width, room) for strips of short lines; `arrays` of a strip's size fit into the room.
template <class F>
void for_short_lines(DType dtype, const Block& b, int arrays, F&& f) {
  std::int64_t strips = (b.outer + softmax_strip - 1) / softmax_strip;
  parallel_for(
      strips, std::max<std::int64_t>(1, (1 << 13) / (b.n * softmax_strip)), [&](std::int64_t begin, std::int64_t end) {
        auto room =
            std::make_unique_for_overwrite<char[]>(std::size_t(arrays * b.n * softmax_strip * item_size(dtype)));
        for (std::int64_t k = begin; k < end; ++k)
          f(k * softmax_strip, std::min(softmax_strip, b.outer - k * softmax_strip), room.get());
      });
}

}  // namespace

void softmax(SoftmaxKind kind, DType dtype, const Block& b, const void* x, void* y) {
  std::int64_t item = item_size(dtype);
  if (is_short(b))
    return for_short_lines(dtype, b, 2, [&](std::int64_t line, std::int64_t width, char* room) {
      char *in = room, *out = room + b.n * width * item;
      turn(dtype, static_cast<const char*>(x) + line * b.n * item, b.n, width, in);
      build().forward(kind, dtype, in, out, b.n, width, width);
      turn(dtype, out, width, b.n, static_cast<char*>(y) + line * b.n * item);
    });
  for_strips(b, [&](std::int64_t at, std::int64_t, std::int64_t width) {
    build().forward(kind, dtype, static_cast<const char*>(x) + at * item, static_cast<char*>(y) + at * item, b.n,
                    b.inner, width);
  });
}

void softmax_vjp(SoftmaxKind kind, DType dtype, const Block& b, const void* y, const void* g, void* dx) {
  std::int64_t item = item_size(dtype);
  if (is_short(b))
    return for_short_lines(dtype, b, 3, [&](std::int64_t line, std::int64_t width, char* room) {
      std::int64_t bytes = b.n * width * item;
      turn(dtype, static_cast<const char*>(y) + line * b.n * item, b.n, width, room);
      turn(dtype, static_cast<const char*>(g) + line * b.n * item, b.n, width, room + bytes);
      build().vjp(kind, dtype, room, room + bytes, room + 2 * bytes, b.n, width, width);
      turn(dtype, room + 2 * bytes, width, b.n, static_cast<char*>(dx) + line * b.n * item);
    });
  for_strips(b, [&](std::int64_t at, std::int64_t, std::int64_t width) {
    build().vjp(kind, dtype, static_cast<const char*>(y) + at * item, static_cast<const char*>(g) + at * item,
                static_cast<char*>(dx) + at * item, b.n, b.inner, width);
  });
}

void softmax_normalisers(DType dtype, const Block& b, const void* x, void* largest, void* log_sum, bool finite) {
  std::int64_t item = item_size(dtype);
  if (is_short(b))
    return for_short_lines(dtype, b, 1, [&](std::int64_t line, std::int64_t width, char* room) {
      turn(dtype, static_cast<const char*>(x) + line * b.n * item, b.n, width, room);
      build().normalisers(dtype, room, static_cast<char*>(largest) + line * item,
                          static_cast<char*>(log_sum) + line * item, finite, b.n, width, width);
    });
  for_strips(b, [&](std::int64_t at, std::int64_t line, std::int64_t width) {
    build().normalisers(dtype, static_cast<const char*>(x) + at * item, static_cast<char*>(largest) + line * item,
                        static_cast<char*>(log_sum) + line * item, finite, b.n, b.inner, width);
  });
}

void cross_entropy_vjp(DType dtype, const Block& b, const CrossEntropyVjp& v) {
  std::int64_t item = item_size(dtype);
  if (is_short(b))
    return for_short_lines(dtype, b, 2, [&](std::int64_t line, std::int64_t width, char* room) {
      auto from = [&](const void* per_line) { return static_cast<const char*>(per_line) + line * item; };
      char* dx = room + b.n * width * item;
      turn(dtype, static_cast<const char*>(v.x) + line * b.n * item, b.n, width, room);
      CrossEntropyVjp strip{room, from(v.largest), from(v.log_sum), from(v.a), from(v.d), v.weight, dx};
      build().cross_entropy_vjp(dtype, strip, 0, 0, b.n, width, width);
      turn(dtype, dx, width, b.n, static_cast<char*>(v.dx) + line * b.n * item);
    });
  for_strips(b, [&](std::int64_t at, std::int64_t line, std::int64_t width) {
    build().cross_entropy_vjp(dtype, v, at, line, b.n, b.inner, width);
  });
}

}  // namespace rushlight
