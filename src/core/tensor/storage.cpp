#include "tensor/storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "tensor/error.h"

namespace rushlight {
namespace {

// Small requests come in multiples of 64 bytes up to 4 KiB, carved from slabs that are never returned; larger ones in
// eight classes per power of two, each with a free list whose total is bounded. All under the interpreter lock.
constexpr std::size_t small_step = 64, small_limit = 4096, slab_bytes = 1 << 18;
constexpr std::size_t huge_page = std::size_t(1) << 21;
constexpr int small_classes = small_limit / small_step;
constexpr int large_classes = 8 * (48 - 12);

struct FreeBlock {
  FreeBlock* next;
};

struct Allocator {
  FreeBlock* small[small_classes + 1] = {};
  std::vector<std::byte*> large[large_classes];
  std::byte* slab = nullptr;
  std::size_t slab_left = 0;
  FreeBlock* headers = nullptr;
  MemoryStats stats;

  Allocator() {
    const char* text = std::getenv("RUSHLIGHT_CACHE_LIMIT");
    char* end = nullptr;
    long long given = text ? std::strtoll(text, &end, 10) : -1;
    auto machine = std::int64_t(sysconf(_SC_PHYS_PAGES)) * std::int64_t(sysconf(_SC_PAGESIZE));
    stats.limit = text && end != text && *end == 0 && given >= 0 ? given : machine / 8;
  }

  static int large_class(std::size_t bytes) {  // 4097..: octave and eighth, rounded up
    int octave = std::bit_width(bytes - 1) - 1;
    std::size_t step = std::size_t(1) << (octave - 3);
    return (octave - 12) * 8 + int((bytes - 1 - (std::size_t(1) << octave)) / step);
  }
  static std::size_t large_bytes(int c) {
    int octave = c / 8 + 12;
    return (std::size_t(1) << octave) + (std::size_t(c % 8) + 1) * (std::size_t(1) << (octave - 3));
  }
  static std::uint16_t class_of(std::size_t bytes) {
    if (bytes > small_limit) return std::uint16_t(small_classes + 1 + large_class(bytes));
    return std::uint16_t(std::max<std::size_t>((bytes + small_step - 1) / small_step, 1));
  }
  static std::size_t class_bytes(std::uint16_t c) {
    return c <= small_classes ? c * small_step : large_bytes(c - small_classes - 1);
  }

  /// As many bytes as asked for (aligned_alloc gives whole alignments only); null where there are none.
  static void* exact(std::size_t bytes) {
    void* memory = nullptr;
    return posix_memalign(&memory, small_step, bytes) == 0 ? memory : nullptr;
  }

  void* carve(std::size_t bytes) {
    if (sanitized) return exact(bytes);
    if (slab_left < bytes) {
      slab = static_cast<std::byte*>(std::aligned_alloc(small_step, slab_bytes));
      if (!slab) fail(ErrorKind::OutOfMemory, "not enough memory: you tried to allocate ", slab_bytes, " bytes.");
      slab_left = slab_bytes;
      ++stats.system_calls;
    }
    slab_left -= bytes;
    return std::exchange(slab, slab + bytes);
  }

  std::byte* map_large(std::size_t bytes) {
    // At page boundaries the heap's own words would cost a page more for each block.
    void* p = std::aligned_alloc(bytes >= huge_page ? huge_page : small_step, bytes);
    if (p && bytes >= huge_page) madvise(p, bytes, MADV_HUGEPAGE);
    if (p) ++stats.system_calls;
    return static_cast<std::byte*>(p);
  }

  void take(Storage* s, std::size_t bytes) {
    ++stats.allocations;
    if (sanitized && bytes <= (std::size_t(1) << 47)) {
      s->bytes = static_cast<std::byte*>(exact(bytes));
      if (!s->bytes) out_of_memory(bytes);
      s->block_class = class_of(bytes);
    } else if (bytes <= small_limit) {
      std::uint16_t c = class_of(bytes);
      if (FreeBlock* block = small[c]) {
        small[c] = block->next;
        s->bytes = reinterpret_cast<std::byte*>(block);
      } else {
        s->bytes = static_cast<std::byte*>(carve(c * small_step));
      }
      s->block_class = c;
    } else {
      if (bytes > (std::size_t(1) << 47)) out_of_memory(bytes);
      int l = large_class(bytes);
      auto& list = large[l];
      if (!list.empty()) {
        s->bytes = list.back();
        list.pop_back();
        stats.cached -= std::int64_t(large_bytes(l));
      } else {
        s->bytes = map_large(large_bytes(l));
        if (!s->bytes) {
          drop_cache();
          s->bytes = map_large(large_bytes(l));
        }
        if (!s->bytes) out_of_memory(bytes);
      }
      s->block_class = class_of(bytes);
    }
    s->size = bytes;
    stats.allocated += std::int64_t(class_bytes(s->block_class));
    if (stats.allocated > stats.peak) stats.peak = stats.allocated;
  }

  void give_back(std::byte* bytes, std::uint16_t c) {
    std::size_t size = class_bytes(c);
    stats.allocated -= std::int64_t(size);
    if (sanitized) {
      std::free(bytes);
    } else if (c <= small_classes) {
      auto* block = reinterpret_cast<FreeBlock*>(bytes);
      block->next = small[c];
      small[c] = block;
    } else if (stats.cached + std::int64_t(size) <= stats.limit) {
      large[c - small_classes - 1].push_back(bytes);
      stats.cached += std::int64_t(size);
    } else {
      std::free(bytes);
    }
  }

  void drop_cache() {
    for (int c = 0; c < large_classes; ++c) {
      for (auto* block : large[c]) std::free(block);
      stats.cached -= std::int64_t(large[c].size() * large_bytes(c));
      large[c].clear();
    }
  }

  [[noreturn]] static void out_of_memory(std::size_t bytes) {
    fail(ErrorKind::OutOfMemory, "not enough memory: you tried to allocate ", bytes, " bytes.");
  }
};

Allocator& allocator() {
  static auto* instance = new Allocator;  // outlives every tensor
  return *instance;
}

Storage* new_header() {
  auto& a = allocator();
  static_assert(sizeof(Storage) <= 128);
  void* memory;
  if (a.headers) {
    memory = a.headers;
    a.headers = a.headers->next;
  } else {
    memory = a.carve((sizeof(Storage) + small_step - 1) / small_step * small_step);
  }
  return new (memory) Storage;
}

void free_bytes(Storage* s) noexcept {
  if (s->block_class) {
    allocator().give_back(s->bytes, s->block_class);
    s->block_class = 0;
  } else if (s->free_owner) {
    s->free_owner(s->owner);
    s->free_owner = nullptr;
  }
  s->bytes = nullptr;
}

}  // namespace

void storage_dispose(Storage* s) noexcept {
  if (s->deferred()) s->pending->discard(s);
  free_bytes(s);
  if (sanitized) return std::free(s);
  auto* block = reinterpret_cast<FreeBlock*>(s);
  block->next = allocator().headers;
  allocator().headers = block;
}

Ref<Storage> new_storage(std::size_t bytes) {
  auto s = Ref<Storage>::adopt(new_header());
  if (bytes) allocator().take(s.get(), bytes);
  return s;
}

Ref<Storage> new_pending_storage(std::size_t bytes, Pending* pending) {
  auto s = Ref<Storage>::adopt(new_header());
  s->size = bytes;
  s->pending = pending;
  return s;
}

void allocate_bytes(Storage* s) {
  if (s->size) allocator().take(s, s->size);
}

void exchange_bytes(Storage* a, Storage* b) {
  std::swap(a->bytes, b->bytes);
  std::swap(a->block_class, b->block_class);
}

Ref<Storage> foreign_storage(void* bytes, std::size_t size, void* owner, void (*free_owner)(void*)) {
  auto s = Ref<Storage>::adopt(new_header());
  s->bytes = static_cast<std::byte*>(bytes);
  s->size = size;
  s->owner = owner;
  s->free_owner = free_owner;
  s->resizable = false;
  s->exposed = true;
  return s;
}

namespace {
void release_aliased(void* storage) { release(static_cast<Storage*>(storage)); }

/// What a moved storage keeps: the memory that it left, if others point into it, and the owner of the new one.
struct Moved {
  Storage left;
  void* owner;
  void (*free_owner)(void*);
};

void free_moved(void* p) {
  std::unique_ptr<Moved> moved(static_cast<Moved*>(p));
  free_bytes(&moved->left);
  moved->free_owner(moved->owner);
}
}  // namespace

Ref<Storage> alias_storage(Storage* storage) {
  std::byte* bytes = storage->expose();
  storage->resizable = false;  // the alias points into it
  retain(storage);
  return foreign_storage(bytes, storage->size, storage, release_aliased);
}

Storage* aliased_storage(Storage* storage) {
  while (storage->free_owner == release_aliased) storage = static_cast<Storage*>(storage->owner);
  return storage;
}

void move_storage(Storage* storage, std::byte* to, void* owner, void (*free_owner)(void*)) {
  Storage* s = aliased_storage(storage);
  check(!s->exports && !storage->exports, "a storage cannot be moved while a buffer points into it");
  check(s->extent <= s->size, "a storage that was resized to less cannot be moved");
  if (s->size) std::memcpy(to, s->write(), s->size);
  if (s->exposed) {
    auto* moved = new Moved{{}, owner, free_owner};
    moved->left.bytes = s->bytes;
    moved->left.block_class = s->block_class;
    moved->left.owner = s->owner;
    moved->left.free_owner = s->free_owner;
    owner = moved;
    free_owner = free_moved;
  } else {
    free_bytes(s);
  }
  s->bytes = storage->bytes = to;
  s->block_class = 0;
  s->owner = owner;
  s->free_owner = free_owner;
  s->resizable = false;
  s->exposed = s->shared = storage->shared = true;
}

/// The whole pages among these bytes go back to the system; the addresses stay, and read as zeros.
static void give_pages_back(std::byte* from, std::size_t bytes) {
  auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  auto begin = (reinterpret_cast<std::uintptr_t>(from) + page - 1) / page * page;
  auto end = (reinterpret_cast<std::uintptr_t>(from) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void resize_storage(Storage* s, std::size_t bytes) {
  if (bytes == s->size) return;
  check(s->resizable && !s->exports, "Trying to resize storage that is not resizable");
  std::byte* from = s->write();
  s->extent = std::max(s->extent, s->size);
  if (bytes <= s->extent) {
    if (bytes < s->size) give_pages_back(from + bytes, s->size - bytes);
    s->size = bytes;
    return;
  }
  Storage old;
  old.bytes = from;
  old.block_class = s->block_class;
  std::size_t keep = s->size;
  s->bytes = nullptr;
  s->block_class = 0;
  try {
    allocator().take(s, bytes);
  } catch (...) {
    s->bytes = old.bytes;
    s->block_class = old.block_class;
    throw;
  }
  if (keep) std::memcpy(s->bytes, old.bytes, keep);
  free_bytes(&old);
}

MemoryStats& memory_stats() { return allocator().stats; }
void empty_cache() { allocator().drop_cache(); }
void set_cache_limit(std::int64_t bytes) {
  check_value(bytes >= 0, "the cache limit must not be negative, got ", bytes);
  allocator().stats.limit = bytes;
  if (allocator().stats.cached > bytes) allocator().drop_cache();
}

}  // namespace rushlight
