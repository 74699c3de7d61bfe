// A block of memory that tensors share, its version counter, and the caching allocator behind it.
//
// Raw memory has one door: Storage::read() and Storage::write(). What stands behind it may be plain numbers or work
// that has not been done yet (`pending`), or numbers in another order (`layout`); whoever asks for a pointer gets plain
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/object.h"

namespace rushlight {

/// Built for the address sanitizer: every block comes from the system with its exact size and goes back at once, so
/// that the sanitizer sees each use after the end and each byte beyond it.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

struct Storage;

/// Work that will fill a storage when somebody looks (operators/deferred.h).
struct Pending {
  void (*materialize)(Storage*);  ///< fills the storage, in its layout, and calls Storage::filled()
  void (*discard)(Storage*);      ///< the storage goes away unread
};

/// The order in which a storage's numbers lie, where it is not the row-major one that its tensors' strides tell of.
struct Arrangement {
  enum Order : std::uint8_t {
    Rows,          ///< as the strides say
    ChannelsLast,  ///< numbers of (outer, inner, rest) lie as (outer, rest, inner): activations
    Blocked,       ///< of (outer, inner, rest) as (outer / 16, inner / 16, rest, 16 of inner, 16 of outer): weights
  };
  Order order = Rows;
  std::uint8_t item = 0;  ///< bytes of a number
  std::int64_t outer = 0, inner = 0;
  explicit operator bool() const { return order != Rows; }
  friend bool operator==(const Arrangement&, const Arrangement&) = default;
};

struct Storage {
  std::intptr_t refcount = 1;
  std::byte* bytes = nullptr;     ///< through read() and write() only
  std::size_t size = 0;           ///< in bytes
  std::size_t extent = 0;         ///< the greatest size that it was shrunk from
  std::uint32_t version = 0;      ///< counts in-place changes
  std::uint16_t block_class = 0;  ///< the allocator's size class; 0: not the allocator's
  bool resizable = true;
  bool exposed = false;        ///< the bytes are reachable past this storage (NumPy, .data, data_ptr)
  bool shared = false;         ///< other processes see the bytes
  std::uint32_t exports = 0;   ///< buffers of Python's through which the bytes are reachable until their release
  std::uint32_t readers = 0;   ///< pending computations that will read these bytes
  std::int32_t saved = 0;      ///< tensors over it that nodes keep for their derivatives (a hint: see SavedTensor)
  Pending* pending = nullptr;  ///< null: plain numbers; else work to be done, or a layout to be undone
  Arrangement layout;          ///< of the bytes, or of what the pending work will give
  void* owner = nullptr;       ///< what keeps foreign memory alive
  void (*free_owner)(void*) = nullptr;

  std::byte* read() {
    if (pending) [[unlikely]]
      settle();
    return bytes;
  }
  std::byte* write() {
    if (pending) [[unlikely]]
      settle();
    if (readers) [[unlikely]]
      flush_readers();
    return bytes;
  }
  /// The address for good: whoever has it may write without asking again.
  std::byte* expose() {
    exposed = true;
    return write();
  }
  /// Whether somebody may read or write the bytes without asking.
  bool reachable() const { return exposed || exports; }
  /// Whether the numbers are still to be computed.
  bool deferred() const { return pending && pending->materialize; }

  // for those who know layouts (operators/layout.h)
  /// The numbers as `layout` says. They stay there only while the interpreter lock is held.
  std::byte* read_laid() {
    if (deferred()) pending->materialize(this);
    return bytes;
  }
  std::byte* write_laid() {
    read_laid();
    if (readers) flush_readers();
    return bytes;
  }
  void filled();         ///< the bytes are there, in `layout`
  void settle();         ///< does the pending work and puts the numbers in row-major order
  void flush_readers();  ///< does the work that still needs the old bytes (operators/deferred.cpp)
};

void storage_dispose(Storage*) noexcept;
inline void retain(Storage* s) noexcept { ++s->refcount; }
inline void release(Storage* s) noexcept {
  if (--s->refcount == 0) storage_dispose(s);
}

/// A new storage of `bytes` uninitialised bytes, aligned to 64.
Ref<Storage> new_storage(std::size_t bytes);
/// A storage without memory of its own yet: allocated when its pending work runs.
Ref<Storage> new_pending_storage(std::size_t bytes, Pending* pending);
void allocate_bytes(Storage* storage);
/// Exchanges the memory of two storages of one size that the allocator made.
void exchange_bytes(Storage* a, Storage* b);
/// A storage over memory that `owner` keeps alive; `free_owner(owner)` is called at the end.
Ref<Storage> foreign_storage(void* bytes, std::size_t size, void* owner, void (*free_owner)(void*));
/// The same memory under another version counter (what `.data` gives).
Ref<Storage> alias_storage(Storage* storage);
/// The storage that owns the bytes: the same one for all aliases of it.
Storage* aliased_storage(Storage* storage);
/// Moves the bytes into memory that `owner` keeps alive and that other processes see, for every tensor over them.
void move_storage(Storage* storage, std::byte* to, void* owner, void (*free_owner)(void*));
/// Grows or shrinks, keeping the leading bytes. A shrunk storage keeps its addresses, so that tensors which were larger
/// never point outside of it, and gives its pages back.
void resize_storage(Storage* storage, std::size_t bytes);

struct MemoryStats {
  std::int64_t allocated = 0;     ///< bytes in live storages of the allocator
  std::int64_t peak = 0;          ///< greatest `allocated` since the last reset
  std::int64_t cached = 0;        ///< bytes kept for reuse
  std::int64_t limit = 0;         ///< bound of `cached`
  std::int64_t allocations = 0;   ///< storages handed out
  std::int64_t system_calls = 0;  ///< times that the system was asked for memory
};
MemoryStats& memory_stats();
/// Gives cached blocks back to the system.
void empty_cache();
void set_cache_limit(std::int64_t bytes);

}  // namespace rushlight
