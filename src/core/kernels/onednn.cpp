#include "kernels/onednn.h"

#include "kernels/parallel.h"

#ifdef RUSHLIGHT_ONEDNN
#include <dlfcn.h>

#include <string>
#endif

namespace rushlight {
namespace {

bool enabled = true;
bool repeatable = false;

#ifdef RUSHLIGHT_ONEDNN
/// The extension beside the library that this function is in.
const OnednnTable* load() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<void*>(&load), &here) || !here.dli_fname) return nullptr;
  std::string path = here.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "_C_onednn.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  using Get = const OnednnTable* (*)();
  auto get = reinterpret_cast<Get>(dlsym(library, "rushlight_onednn"));
  return get ? get() : nullptr;
}
#endif

}  // namespace

const OnednnTable* onednn() {
#ifdef RUSHLIGHT_ONEDNN
  if (!enabled || repeatable || deterministic()) return nullptr;
  static const OnednnTable* table = load();
  return table;
#else
  return nullptr;
#endif
}

void set_onednn(bool on) { enabled = on; }
bool onednn_enabled() { return enabled; }
void set_onednn_deterministic(bool on) { repeatable = on; }
bool onednn_deterministic() { return repeatable; }

const char* onednn_version() {
#ifdef RUSHLIGHT_ONEDNN
  return RUSHLIGHT_ONEDNN;
#else
  return "";
#endif
}

const OnednnServices& onednn_services() {
  static const OnednnServices services{[](std::size_t bytes, void** handle) {
                                         Ref<Storage> s = new_storage(bytes);
                                         std::byte* at = s->bytes;
                                         *handle = s.detach();
                                         return at;
                                       },
                                       [](void* handle) noexcept { release(static_cast<Storage*>(handle)); }};
  return services;
}

}  // namespace rushlight
