// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "staged_copies.hpp"

#include "cuda_values.hpp"

#include <algorithm>

namespace rmm_uvm::cuda {
namespace {

constexpr std::size_t alignment_bytes = 256;  // of a half, as cuMemAlloc gives it

}  // namespace

status staged_copies::make(cuda_api const& api, CUstream first, std::size_t bytes) noexcept
{
  half_bytes_ = bytes / halves_.size() / alignment_bytes * alignment_bytes;
  if (half_bytes_ == 0) { return {status_code::invalid_value, 0, "take_staging"}; }
  auto const taken = take(api, first);
  if (!taken.ok()) { destroy(api); }
  return taken;
}

status staged_copies::take(cuda_api const& api, CUstream first) noexcept
{
  auto result = as_status(api.mem_alloc(&memory_, half_bytes_ * halves_.size()), "cuMemAlloc");
  if (result.ok()) {
    result = as_status(api.stream_create(&onward_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  auto address = memory_;
  for (auto& one : halves_) {
    one.address = address;
    address += half_bytes_;
    for (auto* event : {&one.filled, &one.emptied}) {
      if (!result.ok()) { return result; }
      result = as_status(api.event_create(event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    }
  }
  auto* const before = halves_.front().filled;  // marks stand for direct copies of before, too
  if (result.ok()) { result = as_status(api.event_record(before, first), "cuEventRecord"); }
  if (!result.ok()) { return result; }
  return as_status(api.stream_wait_event(onward_, before, 0), "cuStreamWaitEvent");
}

void staged_copies::destroy(cuda_api const& api) noexcept
{
  for (auto const& one : halves_) {
    for (auto* const event : {one.filled, one.emptied}) {
      if (event != nullptr) { static_cast<void>(api.event_destroy(event)); }
    }
  }
  if (onward_ != nullptr) { static_cast<void>(api.stream_destroy(onward_)); }
  if (memory_ != 0) { static_cast<void>(api.mem_free(memory_)); }  // waits for the device
}

status staged_copies::copy(cuda_api const& api, CUstream first, transfer const& one) noexcept
{
  for (std::size_t done = 0; done < one.bytes; done += half_bytes_) {
    auto const bytes  = std::min(half_bytes_, one.bytes - done);
    auto const result = copy_piece(api, first, {one.to + done, one.from + done, bytes});
    if (!result.ok()) { return result; }
  }
  return {};
}

status staged_copies::copy_piece(cuda_api const& api,
                                 CUstream first,
                                 transfer const& piece) noexcept
{
  auto const& by = halves_.at(next_);
  next_          = (next_ + 1) % halves_.size();
  auto result    = as_status(api.stream_wait_event(first, by.emptied, 0), "cuStreamWaitEvent");
  if (result.ok()) {
    result =
      as_status(api.memcpy_async(by.address, piece.from, piece.bytes, first), "cuMemcpyAsync");
  }
  if (result.ok()) { result = as_status(api.event_record(by.filled, first), "cuEventRecord"); }
  if (result.ok()) {
    result = as_status(api.stream_wait_event(onward_, by.filled, 0), "cuStreamWaitEvent");
  }
  if (result.ok()) {
    result =
      as_status(api.memcpy_async(piece.to, by.address, piece.bytes, onward_), "cuMemcpyAsync");
  }
  if (result.ok()) { result = as_status(api.event_record(by.emptied, onward_), "cuEventRecord"); }
  return result;
}

}  // namespace rmm_uvm::cuda
