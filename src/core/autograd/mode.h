// The thread's switches: is the graph recorded, are version counters kept, are tangents carried, is backward watched.
#pragma once

#include <cstdint>

namespace rushlight {

struct Modes {
  bool grad = true;         ///< operations are recorded: `wanted`, and not inference mode
  bool wanted = true;       ///< no_grad / enable_grad / set_grad_enabled
  bool inference = false;   ///< inference_mode
  bool forward = true;      ///< tangents are carried at all (_set_fwd_grad_enabled)
  std::uint8_t levels = 0;  ///< open levels of forward mode (autograd/tangent.h)
  std::uint8_t dual = 0;    ///< operations carry the tangents of levels below this one; 0: forward mode costs nothing
  void want(bool on) {
    wanted = on;
    grad = on && !inference;
  }
  void infer(bool on) {
    inference = on;
    grad = wanted && !on;
    see();
  }
  /// Carries the tangents of all open levels, where they are carried at all.
  void see() { dual = forward && !inference ? levels : std::uint8_t(0); }
};

extern thread_local Modes modes __attribute__((tls_model("initial-exec")));

inline bool grad_enabled() { return modes.grad; }
inline bool inference_mode() { return modes.inference; }
/// True where what is computed now may be differentiated: a derivative then has to be made of recorded operators.
inline bool differentiates() { return modes.grad || modes.dual; }

/// Sets recording within a scope.
struct GradScope {
  explicit GradScope(bool on) : before(modes.wanted) { modes.want(on); }
  GradScope(const GradScope&) = delete;
  ~GradScope() { modes.want(before); }
  bool before;
};

/// Hides the tangents of `level` and above within a scope.
struct TangentsBelow {
  explicit TangentsBelow(int level) : before(modes.dual) { modes.dual = std::uint8_t(level); }
  TangentsBelow(const TangentsBelow&) = delete;
  ~TangentsBelow() { modes.dual = before; }
  std::uint8_t before;
};

/// Process-wide diagnosis, off unless asked for (autograd.detect_anomaly, autograd.set_record_locations).
struct Diagnosis {
  bool anomaly = false;           ///< keep the forward stack with every node, show it with errors of backward
  bool check_nan = true;          ///< under anomaly: refuse NaN gradients
  bool record_locations = false;  ///< keep the source line of each node and of each in-place change
};
extern Diagnosis diagnosis;

}  // namespace rushlight
