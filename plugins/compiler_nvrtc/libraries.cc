#include "plugins/compiler_nvrtc/libraries.h"

#include <dlfcn.h>

#include <array>
#include <vector>

namespace weir::compiler_nvrtc {
namespace {

// The entry points that are called, as NVIDIA documents them. Handles are opaque pointers and results are ints.
struct Nvrtc {
  int (*CreateProgram)(void** program, const char* source, const char* name, int header_count,
                       const char* const* headers, const char* const* header_names) = nullptr;
  int (*CompileProgram)(void* program, int option_count, const char* const* options) = nullptr;
  int (*GetPTXSize)(void* program, size_t* bytes) = nullptr;
  int (*GetPTX)(void* program, char* ptx) = nullptr;
  int (*GetProgramLogSize)(void* program, size_t* bytes) = nullptr;
  int (*GetProgramLog)(void* program, char* log) = nullptr;
  int (*DestroyProgram)(void** program) = nullptr;
  const char* (*GetErrorString)(int code) = nullptr;
  std::string why;  // not empty: it cannot be used
};

struct Driver {
  int (*Init)(unsigned flags) = nullptr;
  int (*DeviceGetCount)(int* count) = nullptr;
  int (*LibraryLoadData)(void** library, const void* code, const void* jit_options, void** jit_values,
                         unsigned jit_count, const void* options, void** values, unsigned count) = nullptr;
  int (*LibraryGetKernel)(void** kernel, void* library, const char* name) = nullptr;
  int (*LibraryUnload)(void* library) = nullptr;
  int (*StreamGetCtx)(void* stream, void** context) = nullptr;
  int (*CtxPushCurrent)(void* context) = nullptr;
  int (*CtxPopCurrent)(void** context) = nullptr;
  int (*LaunchKernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                      void** extra) = nullptr;
  int (*GetErrorName)(int code, const char** name) = nullptr;
  std::string why;
};

/// The first of these libraries that the system has; null if it has none.
template <size_t n>
void* OpenFirst(const std::array<const char*, n>& names) {
  for (const char* name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

template <class Fn>
void Find(void* library, const char* symbol, Fn* fn, std::string* why) {
  *fn = reinterpret_cast<Fn>(dlsym(library, symbol));
  if (*fn == nullptr && why->empty()) *why = "the library has no " + std::string(symbol);
}

Nvrtc OpenNvrtc() {
  Nvrtc api;
  void* const library = OpenFirst(std::array{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                             "/usr/local/cuda/lib64/libnvrtc.so"});
  if (library == nullptr) {
    api.why = "NVRTC is not installed (libnvrtc.so.13 or .12)";
    return api;
  }
  Find(library, "nvrtcCreateProgram", &api.CreateProgram, &api.why);
  Find(library, "nvrtcCompileProgram", &api.CompileProgram, &api.why);
  Find(library, "nvrtcGetPTXSize", &api.GetPTXSize, &api.why);
  Find(library, "nvrtcGetPTX", &api.GetPTX, &api.why);
  Find(library, "nvrtcGetProgramLogSize", &api.GetProgramLogSize, &api.why);
  Find(library, "nvrtcGetProgramLog", &api.GetProgramLog, &api.why);
  Find(library, "nvrtcDestroyProgram", &api.DestroyProgram, &api.why);
  Find(library, "nvrtcGetErrorString", &api.GetErrorString, &api.why);
  return api;
}

Driver OpenDriver() {
  Driver api;
  void* const library = OpenFirst(std::array{"libcuda.so.1"});
  if (library == nullptr) {
    api.why = "the CUDA driver is not installed (libcuda.so.1)";
    return api;
  }
  Find(library, "cuInit", &api.Init, &api.why);
  Find(library, "cuDeviceGetCount", &api.DeviceGetCount, &api.why);
  Find(library, "cuLibraryLoadData", &api.LibraryLoadData, &api.why);
  Find(library, "cuLibraryGetKernel", &api.LibraryGetKernel, &api.why);
  Find(library, "cuLibraryUnload", &api.LibraryUnload, &api.why);
  Find(library, "cuStreamGetCtx", &api.StreamGetCtx, &api.why);
  Find(library, "cuCtxPushCurrent_v2", &api.CtxPushCurrent, &api.why);
  Find(library, "cuCtxPopCurrent_v2", &api.CtxPopCurrent, &api.why);
  Find(library, "cuLaunchKernel", &api.LaunchKernel, &api.why);
  Find(library, "cuGetErrorName", &api.GetErrorName, &api.why);
  int count = 0;
  if (api.why.empty() && (api.Init(0) != 0 || api.DeviceGetCount(&count) != 0 || count == 0)) {
    api.why = "the CUDA driver finds no card";
  }
  return api;
}

const Nvrtc& TheNvrtc() {
  static const Nvrtc api = OpenNvrtc();
  return api;
}
const Driver& TheDriver() {
  static const Driver api = OpenDriver();
  return api;
}

/// Destroys the program at the end.
class ProgramHandle {
 public:
  explicit ProgramHandle(const Nvrtc& api) : api_(api) {}
  ~ProgramHandle() {
    if (handle != nullptr) api_.DestroyProgram(&handle);
  }
  ProgramHandle(const ProgramHandle&) = delete;
  ProgramHandle& operator=(const ProgramHandle&) = delete;
  void* handle = nullptr;

 private:
  const Nvrtc& api_;
};

}  // namespace

bool CompileToPtx(const std::string& source, std::string* ptx, std::string* why) {
  const Nvrtc& api = TheNvrtc();
  if (!api.why.empty()) {
    *why = api.why;
    return false;
  }
  ProgramHandle program(api);
  int code = api.CreateProgram(&program.handle, source.c_str(), "region.cu", 0, nullptr, nullptr);
  const std::string architecture = std::string("--gpu-architecture=") + kArchitecture;
  const std::vector<const char*> options = {architecture.c_str(), "--std=c++17", "--fmad=false"};
  if (code == 0) code = api.CompileProgram(program.handle, static_cast<int>(options.size()), options.data());
  if (code != 0) {
    *why = std::string("NVRTC: ") + api.GetErrorString(code);
    size_t bytes = 0;
    if (program.handle != nullptr && api.GetProgramLogSize(program.handle, &bytes) == 0 && bytes > 1) {
      std::string log(bytes, '\0');
      if (api.GetProgramLog(program.handle, log.data()) == 0) *why += ": " + std::string(log.c_str());
    }
    return false;
  }
  size_t bytes = 0;
  code = api.GetPTXSize(program.handle, &bytes);
  ptx->assign(bytes, '\0');
  if (code == 0) code = api.GetPTX(program.handle, ptx->data());
  if (code != 0) *why = std::string("NVRTC: ") + api.GetErrorString(code);
  return code == 0;
}

bool HasDriver(std::string* why) {
  *why = TheDriver().why;
  return why->empty();
}

std::unique_ptr<LoadedKernel> LoadedKernel::Load(const std::string& ptx, const char* entry, std::string* why) {
  if (!HasDriver(why)) return nullptr;
  const Driver& api = TheDriver();
  std::unique_ptr<LoadedKernel> made(new LoadedKernel);
  int code = api.LibraryLoadData(&made->library_, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code == 0) code = api.LibraryGetKernel(&made->kernel_, made->library_, entry);
  if (code == 0) return made;
  *why = std::string("the driver does not load the code: ") + NameOf(code);
  return nullptr;
}

LoadedKernel::~LoadedKernel() {
  if (library_ != nullptr) TheDriver().LibraryUnload(library_);
}

int LoadedKernel::Launch(uint64_t stream, uint32_t blocks, uint32_t threads, void** arguments) const {
  const Driver& api = TheDriver();
  auto* const queue = reinterpret_cast<void*>(stream);
  void *context = nullptr, *popped = nullptr;
  int code = api.StreamGetCtx(queue, &context);
  if (code != 0) return code;
  if (code = api.CtxPushCurrent(context); code != 0) return code;
  code = api.LaunchKernel(kernel_, blocks, 1, 1, threads, 1, 1, 0, queue, arguments, nullptr);
  const int restored = api.CtxPopCurrent(&popped);
  return code != 0 ? code : restored;
}

const char* LoadedKernel::NameOf(int code) {
  const char* name = nullptr;
  const Driver& api = TheDriver();
  return api.GetErrorName != nullptr && api.GetErrorName(code, &name) == 0 && name != nullptr ? name : "unknown error";
}

}  // namespace weir::compiler_nvrtc
