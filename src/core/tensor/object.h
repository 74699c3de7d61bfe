// Counted objects.
//
// A tensor and a graph node begin with the two words of a Python object, so each *is* its own Python object: a result
// costs one allocation, identity and attributes need no second object, and Python's garbage collector sees every edge
// of the graph. This room knows nothing else of Python; the functions declared here as `embedding` are defined by
// core/python. Counts change only while the interpreter lock is held (kernels that release it work on raw pointers),
// hence plain integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace rushlight {

struct Object {
  std::intptr_t refcount;
  void* type;
};

/// embedding: called when the count of an object has reached 0.
void object_dispose(Object* object) noexcept;

inline void retain(Object* object) noexcept { ++object->refcount; }
inline void release(Object* object) noexcept {
  if (--object->refcount == 0) object_dispose(object);
}

/// An owning pointer to a counted thing: anything for which retain() and release() are found.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_) retain(p_);
  }
  Ref(const Ref& other) noexcept : Ref(other.p_) {}
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U> other) noexcept : p_(other.detach()) {}
  ~Ref() {
    if (p_) release(p_);
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  /// Takes over a count that the caller owns.
  static Ref adopt(T* p) noexcept {
    Ref ref;
    ref.p_ = p;
    return ref;
  }
  /// Gives the count to the caller.
  T* detach() noexcept { return std::exchange(p_, nullptr); }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

/// What a tracing pass over owned objects (Python's garbage collector) calls for each; returns non-zero to stop.
struct Visitor {
  int (*visit)(void* object, void* state);
  void* state;
  int operator()(Object* object) const { return object ? visit(object, state) : 0; }
  int raw(void* object) const { return object ? visit(object, state) : 0; }
};

/// embedding: lets other threads of the interpreter run while a long kernel works on raw pointers.
void* lock_release() noexcept;
void lock_acquire(void* state) noexcept;

struct Unlocked {
  static inline int running = 0;  ///< how many there are; changed and read under the lock
  void* state = (++running, lock_release());
  Unlocked() = default;
  Unlocked(const Unlocked&) = delete;
  ~Unlocked() {
    lock_acquire(state);
    --running;
  }
};

}  // namespace rushlight
