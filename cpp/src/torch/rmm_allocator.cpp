// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/torch/rmm_allocator.hpp>

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <typeinfo>

namespace rmm_uvm::torch {
namespace {

/**
 * @brief `c10::OutOfMemoryError`, made without torch's headers, which differ from version to
 * version where its binary interface is one.
 *
 * Its constructor is that of its base. What is left to do is what a compiler does: to point to the
 * table of its virtual functions.
 */
class torch_error {
 public:
  /** @brief Finds it in libraries that are loaded. @return whether it is there */
  [[nodiscard]] bool find() noexcept
  {
    for (auto const* name : {"libc10.so", "libc10_cuda.so"}) {
      auto* const library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
      if (library == nullptr) { continue; }
      look_up(
        library,
        "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIc"
        "EEE",
        construct_);
      look_up(library, "_ZTVN3c1016OutOfMemoryErrorE", table_);
      look_up(library, "_ZTIN3c1016OutOfMemoryErrorE", type_);
      ::dlclose(library);  // it stays: others have it
    }
    return construct_ != nullptr && table_ != nullptr && type_ != nullptr;
  }

  /** @pre `find` answered true */
  [[noreturn]] void raise(std::string const& message) const
  {
    auto* const error = abi::__cxa_allocate_exception(most_bytes);
    try {
      construct_(error, {__func__, __FILE__, __LINE__}, message);
    } catch (...) {
      abi::__cxa_free_exception(error);
      throw;
    }
    // Before the functions: where the object lies in a larger one, and its type.
    auto const* const functions        = table_ + 2;
    *static_cast<void* const**>(error) = functions;
    auto const destroy                 = reinterpret_cast<destructor>(functions[0]);
    abi::__cxa_throw(error, type_, destroy);
  }

 private:
  struct source_location {
    char const* function;
    char const* file;
    std::uint32_t line;
  };
  using constructor = void (*)(void*, source_location, std::string);
  using destructor  = void (*)(void*);

  static constexpr std::size_t most_bytes = 4096;  // of the object: a few hundred

  template <typename Symbol>
  static void look_up(void* library, char const* name, Symbol& found) noexcept
  {
    if (found == nullptr) { found = reinterpret_cast<Symbol>(::dlsym(library, name)); }
  }

  constructor construct_{nullptr};
  void* const* table_{nullptr};
  std::type_info* type_{nullptr};
};

/** @brief What the functions of this file go through. */
struct passed_on {
  rmm_functions rmm;
  torch_error error;
  bool found{false};
};

[[nodiscard]] passed_on& way() noexcept
{
  static passed_on one;
  return one;
}

/** @brief What RMM says without the names of its errors. */
[[nodiscard]] std::string_view without_names(std::string_view message) noexcept
{
  for (std::string_view const before : {"std::bad_alloc: ", "out_of_memory: "}) {
    if (message.starts_with(before)) { message.remove_prefix(before.size()); }
  }
  return message;
}

}  // namespace

bool go_through(rmm_functions functions) noexcept
{
  way().rmm   = functions;
  way().found = way().error.find();
  return way().found;
}

}  // namespace rmm_uvm::torch

void* rmm_uvm_allocate_through_rmm(std::ptrdiff_t bytes, int device, void* stream)
{
  using namespace rmm_uvm::torch;
  auto const& by = way();
  try {
    return by.rmm.allocate(bytes, device, stream);
  } catch (std::bad_alloc const& error) {
    if (!by.found) { throw; }
    // The first words are torch's: programs look for them.
    by.error.raise("CUDA out of memory. " + std::string{without_names(error.what())});
  }
}

void rmm_uvm_deallocate_through_rmm(void* memory, std::ptrdiff_t bytes, int device, void* stream)
{
  rmm_uvm::torch::way().rmm.deallocate(memory, bytes, device, stream);
}
