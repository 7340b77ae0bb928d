// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/mr/detail/refused_free.hpp>
#include <rmm_uvm/mr/detail/uvm_resource_adaptor_impl.hpp>

#include <rmm/error.hpp>
#include <rmm/process_is_exiting.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace rmm_uvm::mr::detail {
namespace {

constexpr std::size_t most_bytes = std::numeric_limits<std::ptrdiff_t>::max();

[[nodiscard]] std::string as_text(std::size_t bytes)
{
  std::array<char, 32> text{};
  auto const mib    = static_cast<double>(bytes) / static_cast<double>(1U << 20U);
  bool const in_gib = mib >= 1024.0;
  static_cast<void>(std::snprintf(
    text.data(), text.size(), in_gib ? "%.2f GiB" : "%.1f MiB", in_gib ? mib / 1024.0 : mib));
  return text.data();
}

/** @brief What RMM says without where in its sources it says it. */
[[nodiscard]] std::string without_location(std::string_view message)
{
  for (std::string_view const before : {"std::bad_alloc: ", "out_of_memory: "}) {
    if (message.starts_with(before)) { message.remove_prefix(before.size()); }
  }
  constexpr std::string_view location = "RMM failure at:";
  if (message.starts_with(location)) {
    auto const end = message.find(": ", location.size());
    if (end != std::string_view::npos) { message.remove_prefix(end + 2); }
  }
  return std::string{message};
}

}  // namespace

uvm_resource_adaptor_impl::uvm_resource_adaptor_impl(
  upstream_type upstream, std::shared_ptr<rmm_uvm::managed_residency> residency, prefetch_mode mode)
  : upstream_{std::move(upstream)},
    residency_{std::move(residency)},
    mode_{mode},
    levels_{std::make_shared<resource_levels>(residency_)}
{
}

void uvm_resource_adaptor_impl::observe(std::shared_ptr<memory_observer> observer)
{
  observer_.set(std::move(observer));
}

void* uvm_resource_adaptor_impl::allocate_upstream(cuda::stream_ref stream,
                                                   std::size_t bytes,
                                                   std::size_t alignment)
{
  // RMM's pool rounds up to 256 bytes, and so past the largest size to a few bytes that others
  // have.
  if (bytes > most_bytes) {
    throw rmm::out_of_memory{std::to_string(bytes) + " bytes asked: no address space holds that"};
  }
  try {
    return upstream_.allocate(stream, bytes, alignment);
  } catch (rmm::out_of_memory const& error) {
    throw rmm::out_of_memory{as_text(bytes) + " asked, " + as_text(allocated_bytes()) +
                             " live in " + as_text(residency_->ledger().slab_bytes()) +
                             " of managed memory: free some, or raise the limit named here (" +
                             without_location(error.what()) + ")"};
  }
}

void* uvm_resource_adaptor_impl::allocate(cuda::stream_ref stream,
                                          std::size_t bytes,
                                          std::size_t alignment)
{
  auto* const ptr    = allocate_upstream(stream, bytes, alignment);
  auto const address = reinterpret_cast<std::uintptr_t>(ptr);
  if (address == 0) { return ptr; }
  try {
    live_.insert(address, bytes);
  } catch (...) {
    upstream_.deallocate(stream, ptr, bytes, alignment);
    throw;
  }
  levels_->allocated(bytes);
  if (auto* const observer = observer_.get(); observer != nullptr) {
    observer->allocated(residency_->driver().info().device_id, {address, bytes}, stream.get());
  }
  static_cast<void>(residency_->on_allocate({address, bytes}, stream.get(), mode_));
  return ptr;
}

bool uvm_resource_adaptor_impl::try_deallocate(cuda::stream_ref stream,
                                               void* ptr,
                                               std::size_t bytes,
                                               std::size_t alignment) noexcept
{
  if (ptr == nullptr) { return true; }
  // Before the pool gets the memory back: another thread may be handed the same address at once.
  if (!live_.erase(reinterpret_cast<std::uintptr_t>(ptr), bytes)) {
    refused_frees_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  levels_->freed(bytes);
  if (auto* const observer = observer_.get(); observer != nullptr) {
    observer->freed(residency_->driver().info().device_id,
                    {reinterpret_cast<std::uintptr_t>(ptr), bytes},
                    stream.get());
  }
  residency_->on_free({reinterpret_cast<std::uintptr_t>(ptr), bytes}, stream.get());
  upstream_.deallocate(stream, ptr, bytes, alignment);
  return true;
}

void uvm_resource_adaptor_impl::deallocate(cuda::stream_ref stream,
                                           void* ptr,
                                           std::size_t bytes,
                                           std::size_t alignment) noexcept
{
  if (!try_deallocate(stream, ptr, bytes, alignment) && !rmm::process_is_exiting()) {
    auto const address = reinterpret_cast<std::uintptr_t>(ptr);
    report_refused_free("UvmResourceAdaptor", address, bytes, live_.bytes_at(address));
  }
}

void* uvm_resource_adaptor_impl::allocate_sync(std::size_t bytes, std::size_t alignment)
{
  cuda::stream_ref const stream{cudaStream_t{nullptr}};
  auto* const ptr = allocate(stream, bytes, alignment);
  static_cast<void>(residency_->driver().synchronize(stream.get()));
  return ptr;
}

void uvm_resource_adaptor_impl::deallocate_sync(void* ptr,
                                                std::size_t bytes,
                                                std::size_t alignment) noexcept
{
  deallocate(cuda::stream_ref{cudaStream_t{nullptr}}, ptr, bytes, alignment);
}

std::size_t uvm_resource_adaptor_impl::allocated_bytes() const noexcept
{
  return levels_->footprint_bytes();
}

std::size_t uvm_resource_adaptor_impl::peak_bytes() const noexcept { return levels_->peak_bytes(); }

void uvm_resource_adaptor_impl::reset_peak() noexcept { levels_->reset_peak(); }

std::optional<memory_range> uvm_resource_adaptor_impl::allocation_at(std::uintptr_t address) const
{
  return live_.holding(address);
}

std::uint64_t uvm_resource_adaptor_impl::refused_frees() const noexcept
{
  return refused_frees_.load(std::memory_order_relaxed);
}

}  // namespace rmm_uvm::mr::detail
