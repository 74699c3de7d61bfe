// oneDNN, the library of convolutions, behind a table of functions.
//
// The library is large, so it is not linked to the core: a small extension of ours beside the core (src/core/onednn)
// is, and the two are loaded together when the first convolution asks. Without it everything runs on our own kernels.
#pragma once

#include "kernels/convolution.h"
#include "tensor/storage.h"

namespace rushlight {

enum class ConvPass : std::uint8_t { Forward, Data, Weight };

/// One of the three computations, for arrays in given orders (ChannelsLast or Rows; weights: Blocked or Rows).
struct ConvTask {
  ConvPass pass;
  bool bias;  ///< of the forward pass
  Arrangement::Order x, w, y;
  int threads;
  ConvGeometry geometry;
};

/// What oneDNN asks of us.
struct OnednnServices {
  /// Memory of the caching allocator; `handle` is to be given back.
  std::byte* (*take)(std::size_t bytes, void** handle);
  void (*give)(void* handle) noexcept;
};

/// float32 only. The lock of the interpreter is held throughout.
struct OnednnTable {
  /// A way to do the task: null where the library has no fast one. It stays valid until the next call of plan().
  const void* (*plan)(const ConvTask& task) noexcept;
  /// Does it; which of x, w and y is written depends on the pass. `moved` counts arrays brought into another order.
  bool (*run)(const void* plan, void* x, void* w, const void* bias, void* y, const OnednnServices& services,
              std::int64_t* moved) noexcept;
  /// How many plans are kept, and at most.
  std::int64_t (*plans)() noexcept;
  std::int64_t most_plans;
};

/// Null where the library is not there, is switched off, or would give bits that depend on the number of threads where
/// these are not wanted.
const OnednnTable* onednn();
void set_onednn(bool on);
bool onednn_enabled();
void set_onednn_deterministic(bool on);
bool onednn_deterministic();
/// The version that the core was built with; empty: none.
const char* onednn_version();
const OnednnServices& onednn_services();

}  // namespace rushlight
