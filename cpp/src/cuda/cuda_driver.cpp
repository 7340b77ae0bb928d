// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "context_guard.hpp"
#include "cuda_devices.hpp"
#include "cuda_values.hpp"
#include "host_available.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>
#include <rmm_uvm/cuda/kernel_counters.hpp>
#include <rmm_uvm/cuda/kernel_moves.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

[[nodiscard]] CUmemLocation as_cuda_location(location where) noexcept
{
  CUmemLocation result{};
  result.type = where.is_host() ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  result.id   = where.is_host() ? 0 : where.device_id;
  return result;
}

[[nodiscard]] CUmem_advise as_cuda_advice(memory_advice what) noexcept
{
  switch (what) {
    case memory_advice::read_mostly: return CU_MEM_ADVISE_SET_READ_MOSTLY;
    case memory_advice::unset_read_mostly: return CU_MEM_ADVISE_UNSET_READ_MOSTLY;
    case memory_advice::preferred_location: return CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    case memory_advice::accessed_by: return CU_MEM_ADVISE_SET_ACCESSED_BY;
    case memory_advice::unset_accessed_by: return CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    case memory_advice::unset_preferred_location: break;
  }
  return CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
}

/** @brief The legacy default stream, which the batch calls refuse (measured: invalid value). */
[[nodiscard]] bool is_legacy(stream_handle stream) noexcept
{
  return stream == nullptr || stream == static_cast<void*>(CU_STREAM_LEGACY);
}

struct batch_arguments {
  std::vector<CUdeviceptr> addresses;
  std::vector<std::size_t> sizes;
};

[[nodiscard]] batch_arguments as_batch(std::span<memory_range const> ranges)
{
  batch_arguments batch;
  for (auto const& range : ranges) {
    batch.addresses.push_back(range.address);
    batch.sizes.push_back(range.bytes);
  }
  return batch;
}

[[nodiscard]] device_info read_info(cuda_api const& api, CUdevice device, int device_id)
{
  device_info info;
  info.device_id = device_id;
  char name[256]{};  // NOLINT: filled by a C interface
  if (api.device_get_name(name, sizeof name - 1, device) == CUDA_SUCCESS) { info.name = name; }
  info.uuid = uuid_of(api, device);
  static_cast<void>(api.device_total_mem(&info.total_bytes, device));
  static_cast<void>(api.driver_get_version(&info.driver_version));
  auto const has = [&](CUdevice_attribute which) { return attribute_of(api, device, which) != 0; };
  info.pageable_memory_access = has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  info.host_page_tables = has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  info.integrated       = has(CU_DEVICE_ATTRIBUTE_INTEGRATED);
  int node              = 0;
  if (attribute_of(api, device, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG) ==
        CU_DEVICE_NUMA_CONFIG_NUMA_NODE &&
      api.device_get_attribute(&node, CU_DEVICE_ATTRIBUTE_NUMA_ID, device) == CUDA_SUCCESS) {
    info.numa_node = node;  // a call that failed must not name node 0
  }
  if (!has(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) {
    info.concurrent_managed_access = availability::no(
      info.integrated
        ? "device memory is host memory, and the device has no concurrent managed access"
        : "the platform has no concurrent managed access (WSL2, Windows): capacity is the card's");
  }
  if (api.mem_discard_batch_async == nullptr ||
      api.mem_discard_and_prefetch_batch_async == nullptr) {
    info.discard = availability::no("the driver has no discard calls: CUDA 13 (driver 580) has");
  } else if (!info.concurrent_managed_access.available) {
    info.discard = availability::no("discard needs concurrent managed access");
  }
  return info;
}

/**
 * @brief As many as still were faster over cut mappings, but half of the processors.
 *
 * Measured on an H100 with 16 processors (benchmarks/driver/migration_threads.py): 8 evict at 39
 * GB/s, 4 at 31; kernels beside them take 1.08 and 1.05 times as long.
 */
[[nodiscard]] std::size_t threads_that_evict() noexcept
{
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 4, 8);
}

}  // namespace

cuda_driver::cuda_driver(cuda_api const& api, CUdevice device, CUcontext context, device_info info)
  : api_{api},
    device_{device},
    context_{context},
    info_{std::move(info)},
    evicting_threads_{threads_that_evict()}
{
}

opened_cuda_driver cuda_driver::open(cuda_api const& api, int device_id, bool counters)
{
  auto const refuse = [&](CUresult result, std::string const& what) {
    return opened_cuda_driver{nullptr, refused(api, result, what)};
  };
  if (auto const result = api.init(0); result != CUDA_SUCCESS) {
    return refuse(result, "the NVIDIA driver cannot be initialised");
  }
  int count = 0;
  if (auto const result = api.device_get_count(&count); result != CUDA_SUCCESS) {
    return refuse(result, "devices cannot be counted");
  }
  if (device_id < 0 || device_id >= count) { return {nullptr, no_such_device(device_id, count)}; }
  CUdevice device{};
  if (auto const result = api.device_get(&device, device_id); result != CUDA_SUCCESS) {
    return refuse(result, "device " + std::to_string(device_id) + " cannot be opened");
  }
  // The context that the CUDA runtime uses too. Never released: others in the process may rely on
  // it, and the driver takes it down at exit.
  CUcontext context{};
  if (auto const result = api.device_primary_ctx_retain(&context, device); result != CUDA_SUCCESS) {
    return refuse(result, "no context on device " + std::to_string(device_id));
  }
  auto info = read_info(api, device, device_id);
  std::shared_ptr<cuda_driver> driver{new cuda_driver{api, device, context, std::move(info)}};
  driver->counters_ = counters ? open_kernel_counters(*driver)
                               : std::make_unique<no_counters>("switched off by RMM_UVM_COUNTERS");
  if (driver->info_.integrated) {  // the kernel driver keeps pages on the host (uvm_migrate.c)
    auto const nothing = availability::no("device memory is host memory: nothing migrates");
    // It gives no page of the host back before the memory is freed (uvm_va_block.c).
    driver->info_.discard = availability::no("device memory is host memory: it would free nothing");
    driver->info_.direct_migration = nothing;
    driver->info_.host_pages       = nothing;
    return {std::move(driver), availability::yes()};
  }
  auto direct                    = direct_migration::open(*driver, linux_system_calls());
  driver->direct_                = std::move(direct.migration);
  driver->info_.direct_migration = std::move(direct.opened);
  auto pages                     = host_pages::open(*driver, linux_system_calls());
  driver->host_pages_            = std::move(pages.pages);
  driver->info_.host_pages       = std::move(pages.opened);
  return {std::move(driver), availability::yes()};
}

cuda_driver::~cuda_driver()
{
  if (!use_.allowed()) { return; }
  context_guard const guard{api_, context_, use_};
  if (before_ != nullptr) { static_cast<void>(api_.event_destroy(before_)); }
  if (after_ != nullptr) { static_cast<void>(api_.event_destroy(after_)); }
  if (between_ != nullptr) { static_cast<void>(api_.event_destroy(between_)); }
  if (side_stream_ != nullptr) { static_cast<void>(api_.stream_destroy(side_stream_)); }
  for (auto* const event : marks_) {
    if (event != nullptr) { static_cast<void>(api_.event_destroy(event)); }
  }
  for (auto* const stream : own_streams_) {
    if (stream != nullptr) { static_cast<void>(api_.stream_destroy(stream)); }
  }
}

opened_move_queue cuda_driver::open_moves()
{
  // Without them nobody knows how much more moves than windows see.
  if (auto counted = counters_->available(); !counted.available) {
    return {nullptr, std::move(counted)};
  }
  return kernel_moves::open(*this);
}

status cuda_driver::memory(device_memory& memory) noexcept
{
  auto const result = read_memory(api_, context_, use_, memory);
  if (result.ok() && info_.integrated) {
    // cuMemGetInfo leaves out what the kernel would reclaim, such as page cache (DGX Spark's
    // known issues; CUDA for Tegra, "Estimating Total Allocatable Device Memory").
    memory.free_bytes =
      std::min(std::max(memory.free_bytes, available_host_bytes()), memory.total_bytes);
  }
  return result;
}

status cuda_driver::allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  CUdeviceptr pointer{};
  auto const result = api_.mem_alloc_managed(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
  if (result == CUDA_SUCCESS) {
    address = pointer;
    if (direct_ != nullptr) { cuts_.cut({address, bytes}); }  // else one thread evicts at a time
  }
  return as_status(result, "cuMemAllocManaged");
}

status cuda_driver::free_managed(std::uintptr_t address) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  cuts_.forget(address);  // before others may be given the address
  return as_status(api_.mem_free(address), "cuMemFree");
}

status cuda_driver::prefetch(memory_range range, location where, stream_handle stream) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  return noted(as_status(api_.mem_prefetch_async(
                           range.address, range.bytes, as_cuda_location(where), 0, as_cuda(stream)),
                         "cuMemPrefetchAsync"),
               range,
               where);
}

status cuda_driver::migrate(memory_range range, location where) noexcept
{
  if (direct_ == nullptr) { return {status_code::not_supported, 0, "UVM_MIGRATE"}; }
  return noted(direct_->migrate(range, where), range, where);
}

status cuda_driver::not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept
{
  if (host_pages_ == nullptr) { return {status_code::not_supported, 0, "pagemap"}; }
  if (!use_.allowed()) { return {status_code::driver_error, 0, "pagemap"}; }
  return host_pages_->not_on_host(range, parts);
}

status cuda_driver::make_side_stream() noexcept
{
  if (side_stream_ != nullptr) { return {}; }
  for (auto* const event : {&before_, &after_}) {
    if (*event != nullptr) { continue; }
    if (auto const result = api_.event_create(event, CU_EVENT_DISABLE_TIMING);
        result != CUDA_SUCCESS) {
      return as_status(result, "cuEventCreate");
    }
  }
  return as_status(api_.stream_create(&side_stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

/**
 * @brief Makes a batch call in the order of a stream that batch calls refuse.
 *
 * `stream` -> event -> side stream -> call -> event -> `stream`. Events may be recorded anew as
 * soon as a wait for them is issued, so one pair serves all, under the lock.
 */
template <typename Call>
status cuda_driver::on_side_stream(stream_handle stream, Call const& call) noexcept
{
  std::lock_guard const lock{side_mutex_};
  if (auto const made = make_side_stream(); !made.ok()) { return made; }
  if (auto const result = api_.event_record(before_, as_cuda(stream)); result != CUDA_SUCCESS) {
    return as_status(result, "cuEventRecord");
  }
  if (auto const result = api_.stream_wait_event(side_stream_, before_, 0);
      result != CUDA_SUCCESS) {
    return as_status(result, "cuStreamWaitEvent");
  }
  auto const called = call(side_stream_);
  // The stream must wait even for a call that failed: part of a batch may have been issued.
  if (auto const result = api_.event_record(after_, side_stream_); result != CUDA_SUCCESS) {
    return as_status(result, "cuEventRecord");
  }
  if (auto const result = api_.stream_wait_event(as_cuda(stream), after_, 0);
      result != CUDA_SUCCESS) {
    return as_status(result, "cuStreamWaitEvent");
  }
  return called;
}

status cuda_driver::discard(std::span<memory_range const> ranges, stream_handle stream) noexcept
try {
  if (!info_.discard.available) {
    return {status_code::not_supported, 0, "cuMemDiscardBatchAsync"};
  }
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  auto batch      = as_batch(ranges);
  auto const call = [&](CUstream in) {
    return as_status(api_.mem_discard_batch_async(
                       batch.addresses.data(), batch.sizes.data(), batch.addresses.size(), 0, in),
                     "cuMemDiscardBatchAsync");
  };
  return noted(is_legacy(stream) ? on_side_stream(stream, call) : call(as_cuda(stream)), ranges);
} catch (...) {
  return {status_code::out_of_memory, 0, "cuMemDiscardBatchAsync"};
}

status cuda_driver::discard_and_prefetch(std::span<memory_range const> ranges,
                                         location where,
                                         stream_handle stream) noexcept
try {
  if (!info_.discard.available) {
    return {status_code::not_supported, 0, "cuMemDiscardAndPrefetchBatchAsync"};
  }
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  auto batch             = as_batch(ranges);
  auto target            = as_cuda_location(where);
  std::size_t from_first = 0;
  auto const call        = [&](CUstream in) {
    return as_status(api_.mem_discard_and_prefetch_batch_async(batch.addresses.data(),
                                                               batch.sizes.data(),
                                                               batch.addresses.size(),
                                                               &target,
                                                               &from_first,
                                                               1,
                                                               0,
                                                               in),
                     "cuMemDiscardAndPrefetchBatchAsync");
  };
  return noted(
    is_legacy(stream) ? on_side_stream(stream, call) : call(as_cuda(stream)), ranges, where);
} catch (...) {
  return {status_code::out_of_memory, 0, "cuMemDiscardAndPrefetchBatchAsync"};
}

status cuda_driver::advise(memory_range range, memory_advice what, location where) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  return as_status(
    api_.mem_advise(range.address, range.bytes, as_cuda_advice(what), as_cuda_location(where)),
    "cuMemAdvise");
}

status cuda_driver::order(stream_handle later, stream_handle earlier) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  // One event serves all: it may be recorded anew as soon as a wait for it is issued.
  std::lock_guard const lock{own_mutex_};
  if (between_ == nullptr) {
    if (auto const result = api_.event_create(&between_, CU_EVENT_DISABLE_TIMING);
        result != CUDA_SUCCESS) {
      return as_status(result, "cuEventCreate");
    }
  }
  if (auto const result = api_.event_record(between_, as_cuda(earlier)); result != CUDA_SUCCESS) {
    return as_status(result, "cuEventRecord");
  }
  return as_status(api_.stream_wait_event(as_cuda(later), between_, 0), "cuStreamWaitEvent");
}

status cuda_driver::own_stream(own_stream_use which, stream_handle& stream) noexcept
{
  if (!use_.here()) { return failed(status_code::driver_error, "own_stream"); }
  std::lock_guard const lock{own_mutex_};
  auto& own = own_streams_[static_cast<std::size_t>(which)];
  if (own == nullptr) {
    context_guard const guard{api_, context_, use_};
    if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
    if (auto const result = api_.stream_create(&own, CU_STREAM_NON_BLOCKING);
        result != CUDA_SUCCESS) {
      return as_status(result, "cuStreamCreate");
    }
  }
  stream = own;
  return {};
}

status cuda_driver::mark(std::size_t number, stream_handle stream) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  std::lock_guard const lock{own_mutex_};
  auto& event = marks_[number];
  if (event == nullptr) {
    if (auto const result = api_.event_create(&event, CU_EVENT_DISABLE_TIMING);
        result != CUDA_SUCCESS) {
      return as_status(result, "cuEventCreate");
    }
  }
  return as_status(api_.event_record(event, as_cuda(stream)), "cuEventRecord");
}

bool cuda_driver::passed(std::size_t number) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return false; }
  std::lock_guard const lock{own_mutex_};
  auto* const event = marks_[number];
  return event != nullptr && api_.event_query(event) == CUDA_SUCCESS;
}

capture_state cuda_driver::capturing(stream_handle stream) noexcept
{
  if (!use_.here()) { return capture_state::unknown; }
  CUcontext current = nullptr;
  std::optional<context_guard> guard;  // each allocation asks: where it can do without it does
  if (api_.ctx_get_current(&current) != CUDA_SUCCESS || current != context_) {
    guard.emplace(api_, context_, use_);
    if (guard->pushed() != CUDA_SUCCESS) { return capture_state::unknown; }
  }
  CUstreamCaptureStatus state{};
  auto const asked = api_.stream_is_capturing(as_cuda(stream), &state);
  if (asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) { return capture_state::implied; }
  if (asked != CUDA_SUCCESS) { return capture_state::unknown; }
  return state == CU_STREAM_CAPTURE_STATUS_NONE ? capture_state::none : capture_state::capturing;
}

/** @brief The graph keeps an object of ours, as its instances do, and CUDA ends it with the last.
 */
status cuda_driver::graph_of(stream_handle stream,
                             std::shared_ptr<captured_graph const>& graph) noexcept
try {
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  CUstreamCaptureStatus state{};
  cuuint64_t number = 0;
  CUgraph captured  = nullptr;
  auto const asked =
    api_.stream_get_capture_info(as_cuda(stream), &state, &number, &captured, nullptr, nullptr);
  if (asked != CUDA_SUCCESS) { return as_status(asked, "cuStreamGetCaptureInfo"); }
  if (state != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return {status_code::not_supported, 0, "cuStreamGetCaptureInfo"};
  }
  std::lock_guard const lock{own_mutex_};
  if (last_graph_ != nullptr && last_graph_->number() == number) {
    graph = last_graph_;
    return {};
  }
  using kept      = std::shared_ptr<captured_graph>;
  auto const made = std::make_shared<captured_graph>(number);
  auto ours       = std::make_unique<kept>(made);
  auto const end  = [](void* object) {  // on a thread of CUDA's
    std::unique_ptr<kept> const last{static_cast<kept*>(object)};
    (*last)->end();
  };
  CUuserObject object = nullptr;
  auto const created =
    api_.user_object_create(&object, ours.get(), end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (created != CUDA_SUCCESS) { return as_status(created, "cuUserObjectCreate"); }
  [[maybe_unused]] auto* const theirs = ours.release();  // `end` deletes it
  auto const retained =
    api_.graph_retain_user_object(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (retained != CUDA_SUCCESS) {
    static_cast<void>(api_.user_object_release(object, 1));
    return as_status(retained, "cuGraphRetainUserObject");
  }
  graph = last_graph_ = made;
  return {};
} catch (std::bad_alloc const&) {
  return {status_code::out_of_memory, 0, "graph_of"};
}

bool cuda_driver::idle(stream_handle stream) noexcept
{
  context_guard const guard{api_, context_, use_};
  return guard.pushed() == CUDA_SUCCESS && api_.stream_query(as_cuda(stream)) == CUDA_SUCCESS;
}

status cuda_driver::synchronize(stream_handle stream) noexcept
{
  context_guard const guard{api_, context_, use_};
  if (guard.pushed() != CUDA_SUCCESS) { return as_status(guard.pushed(), "cuCtxPushCurrent"); }
  return as_status(api_.stream_synchronize(as_cuda(stream)), "cuStreamSynchronize");
}

}  // namespace rmm_uvm::cuda
