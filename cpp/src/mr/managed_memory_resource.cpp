// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/mr/detail/checked_alignment.hpp>
#include <rmm_uvm/mr/detail/managed_memory_resource_impl.hpp>
#include <rmm_uvm/mr/detail/refused_free.hpp>
#include <rmm_uvm/mr/detail/size_text.hpp>
#include <rmm_uvm/process/forks.hpp>

#include <rmm/error.hpp>
#include <rmm/process_is_exiting.hpp>

#include <string>
#include <utility>

namespace rmm_uvm::mr::detail {
namespace {

[[noreturn]] void throw_failed(std::size_t bytes, status result, device_info const& info)
{
  auto const message = std::to_string(bytes) + " bytes of managed memory asked of " + info.name +
                       ": " + result.call + " answered " + to_string(result.code) + " (" +
                       std::to_string(result.native_error) + ")";
  if (result.code == status_code::out_of_memory) { throw rmm::out_of_memory{message}; }
  throw rmm::bad_alloc{message};
}

}  // namespace

managed_memory_resource_impl::managed_memory_resource_impl(
  std::shared_ptr<rmm_uvm::managed_residency> residency,
  std::shared_ptr<managed_account> account,
  prefetch_mode slab_mode)
  : residency_{std::move(residency)}, account_{std::move(account)}, slab_mode_{slab_mode}
{
}

void* managed_memory_resource_impl::allocate(cuda::stream_ref stream,
                                             std::size_t bytes,
                                             std::size_t alignment)
{
  check_alignment(alignment);
  if (bytes == 0) { return nullptr; }
  fork_call const call;
  auto& room = residency_->room();
  if (!room.admits_slab(bytes)) {
    throw rmm::out_of_memory{"a slab of " + as_text(bytes) + " passes the pool's maximum of " +
                             as_text(room.maximum_bytes()) +
                             ": ask for less, or raise maximum_pool_size"};
  }
  if (!account_->try_reserve(bytes)) {
    throw rmm::out_of_memory{as_text(bytes) + " of managed memory asked, " +
                             as_text(account_->used_bytes()) + " of " +
                             as_text(account_->limit_bytes()) +
                             " in use: free some, or ask for less (RMM_UVM_MANAGED_LIMIT)"};
  }
  std::uintptr_t address = 0;
  auto& driver           = residency_->driver();
  if (auto const result = driver.allocate_managed(bytes, address); !result.ok()) {
    account_->release(bytes);
    throw_failed(bytes, result, driver.info());
  }
  auto* const ptr = reinterpret_cast<void*>(address);  // NOLINT: integers at the seam
  keep_aligned(ptr, alignment, [&] {
    static_cast<void>(driver.free_managed(address));
    account_->release(bytes);
  });
  bool fits = false;
  try {
    live_.insert(address, bytes);
    fits = room.add_slab({address, bytes});
  } catch (...) {
    static_cast<void>(live_.erase(address, bytes));
    static_cast<void>(driver.free_managed(address));
    account_->release(bytes);
    throw;
  }
  // Past a pool's maximum only what is handed out is brought to the device. Past the cap nothing is
  // before as much was given back.
  bool const may_come = fits && !managed_account::giving_back::any_passed();
  residency_->on_slab({address, bytes}, stream.get(), may_come ? slab_mode_ : prefetch_mode::never);
  return ptr;
}

bool managed_memory_resource_impl::try_deallocate(cuda::stream_ref /*stream*/,
                                                  void* ptr,
                                                  std::size_t bytes) noexcept
{
  // At process exit the driver may be gone already; the kernel takes the memory back.
  if (ptr == nullptr || rmm::process_is_exiting()) { return true; }
  fork_call const call;
  auto const address = reinterpret_cast<std::uintptr_t>(ptr);
  if (!live_.erase(address, bytes)) {
    refused_frees_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  residency_->room().remove_slab(address);
  auto const kept_bytes = residency_->on_slab_free(address);
  auto const freed      = residency_->driver().free_managed(address);
  residency_->on_slab_freed(kept_bytes);
  residency_->room().note_given_back(bytes, freed.ok());
  // Also where it failed, as CUDA may tell late of other work: the slab is gone for us.
  account_->release(bytes);
  return true;
}

void managed_memory_resource_impl::deallocate(cuda::stream_ref stream,
                                              void* ptr,
                                              std::size_t bytes,
                                              std::size_t /*alignment*/) noexcept
{
  if (!try_deallocate(stream, ptr, bytes)) {
    auto const address = reinterpret_cast<std::uintptr_t>(ptr);
    report_refused_free("ManagedMemoryResource", address, bytes, live_.bytes_at(address));
  }
}

void* managed_memory_resource_impl::allocate_sync(std::size_t bytes, std::size_t alignment)
{
  cuda::stream_ref const stream{cudaStream_t{nullptr}};
  auto* const ptr = allocate(stream, bytes, alignment);
  static_cast<void>(residency_->driver().synchronize(stream.get()));
  return ptr;
}

void managed_memory_resource_impl::deallocate_sync(void* ptr,
                                                   std::size_t bytes,
                                                   std::size_t alignment) noexcept
{
  deallocate(cuda::stream_ref{cudaStream_t{nullptr}}, ptr, bytes, alignment);
}

std::size_t managed_memory_resource_impl::slab_bytes() const
{
  return residency_->ledger().slab_bytes();
}

std::uint64_t managed_memory_resource_impl::refused_frees() const noexcept
{
  return refused_frees_.load(std::memory_order_relaxed);
}

}  // namespace rmm_uvm::mr::detail
