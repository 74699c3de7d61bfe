// The thread's switches: is the graph recorded, are version counters kept, is backward watched.
#pragma once

namespace rushlight {

struct Modes {
  bool grad = true;        ///< operations are recorded: `wanted`, and not inference mode
  bool wanted = true;      ///< no_grad / enable_grad / set_grad_enabled
  bool inference = false;  ///< inference_mode
  void want(bool on) {
    wanted = on;
    grad = on && !inference;
  }
  void infer(bool on) {
    inference = on;
    grad = wanted && !on;
  }
};

extern thread_local Modes modes __attribute__((tls_model("initial-exec")));

inline bool grad_enabled() { return modes.grad; }
inline bool inference_mode() { return modes.inference; }

/// Sets recording within a scope.
struct GradScope {
  explicit GradScope(bool on) : before(modes.wanted) { modes.want(on); }
  GradScope(const GradScope&) = delete;
  ~GradScope() { modes.want(before); }
  bool before;
};

/// Process-wide diagnosis, off unless asked for (autograd.detect_anomaly, autograd.set_record_locations).
struct Diagnosis {
  bool anomaly = false;           ///< keep the forward stack with every node, show it with errors of backward
  bool check_nan = true;          ///< under anomaly: refuse NaN gradients
  bool record_locations = false;  ///< keep the source line of each node and of each in-place change
};
extern Diagnosis diagnosis;

}  // namespace rushlight
