// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/mr/torch_segments.hpp>
#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/residency/managed_account.hpp>

#include <rmm/aligned.hpp>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace rmm_uvm::mr {

torch_segments::torch_segments(managed_memory_resource memory,
                               std::shared_ptr<rmm_uvm::managed_residency> residency,
                               std::size_t maximum_bytes)
  : memory_{std::move(memory)}, residency_{std::move(residency)}, maximum_bytes_{maximum_bytes}
{
}

/** @brief Bytes of segments in which nothing lives, as far as that is known; with the lock. */
std::size_t torch_segments::free_bytes() const
{
  std::size_t bytes = 0;
  for (auto const& [address, one_held] : held_) {
    auto const segment = map_.segment_of(address);
    bool const known   = segment && segment->known && !one_held.fresh;
    if (known && map_.is_free(segment->range)) { bytes += segment->range.bytes; }
  }
  return bytes;
}

/**
 * @brief Counts a segment that is asked for.
 * @return bytes of free segments that can go, if some have to; none if it would be too much
 */
std::optional<std::size_t> torch_segments::reserve(std::size_t bytes)
{
  std::lock_guard const lock{mutex_};
  auto const left_bytes = [this](std::size_t going_bytes) {
    auto const stay_bytes = counts_.segment_bytes - std::min(counts_.segment_bytes, going_bytes);
    return maximum_bytes_ - std::min(maximum_bytes_, stay_bytes);
  };
  auto const may_go_bytes = bytes <= left_bytes(0) ? 0 : free_bytes();
  if (bytes > left_bytes(may_go_bytes)) {
    refusal_ = std::to_string(bytes) + " bytes asked for torch, " +
               std::to_string(counts_.segment_bytes) + " of " + std::to_string(maximum_bytes_) +
               " in use: device and host memory, or the maximum that was given, are exhausted";
    ++counts_.refused;
    return std::nullopt;
  }
  counts_.segment_bytes += bytes;
  counts_.peak_segment_bytes = std::max(counts_.peak_segment_bytes, counts_.segment_bytes);
  return may_go_bytes;
}

void torch_segments::release(std::size_t bytes) noexcept
{
  std::lock_guard const lock{mutex_};
  counts_.segment_bytes -= std::min(counts_.segment_bytes, bytes);
}

/**
 * @brief Whether a segment of small allocations stays on the device; with the lock.
 *
 * torch takes allocations of up to 1 MiB from segments of 2 MiB. Their uses are too many to be
 * announced, and they are most of a step's allocations; together they are little. So such a segment
 * is live as a whole, and nothing in it is followed.
 */
bool torch_segments::stays(memory_range segment) const noexcept
{
  return segment.bytes <= va_block_bytes &&
         kept_bytes_ + segment.bytes <= residency_->pinnable_bytes();
}

/** @brief Whether `address` is in a segment that stays on the device; with the lock. */
bool torch_segments::is_kept(std::uintptr_t address) const
{
  auto const segment = map_.segment_of(address);
  return segment && held_.at(segment->range.address).kept;
}

void* torch_segments::allocate(std::size_t bytes, stream_handle stream) noexcept
try {
  fork_call const call;
  auto may_go_bytes = reserve(bytes);
  if (!may_go_bytes) {
    look_for_scarcity();
    return nullptr;
  }
  void* segment                = nullptr;
  std::size_t beyond_cap_bytes = 0;
  while (segment == nullptr) {
    managed_account::giving_back const gives{*may_go_bytes};
    try {
      pool_room::request const not_of_a_pool{pool_room::request::beside};
      segment = memory_.allocate(
        cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes, rmm::CUDA_ALLOCATION_ALIGNMENT);
      beyond_cap_bytes = gives.passed_bytes();
    } catch (std::exception const& error) {
      {
        std::lock_guard const lock{mutex_};
        auto const tried_bytes = std::exchange(*may_go_bytes, free_bytes());
        if (tried_bytes == 0 && *may_go_bytes > 0) { continue; }  // it may be the cap
        refusal_ = error.what();
        ++counts_.refused;
      }
      release(bytes);
      look_for_scarcity();
      return nullptr;
    }
  }
  memory_range const range{reinterpret_cast<std::uintptr_t>(segment), bytes};
  entry entered;
  try {
    entered = enter(range, stream);
  } catch (std::bad_alloc const&) {  // no host memory for a table
    release(bytes);
    static_cast<void>(
      memory_.try_deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, segment, bytes));
    throw;
  }
  owe(beyond_cap_bytes);
  if (entered.kept) { residency_->pin(range); }
  if (!entered.followed) { residency_->on_allocate(range, stream, prefetch_mode::automatic); }
  look_for_pressure();
  look_for_scarcity();
  return segment;
} catch (...) {  // not even for what to say about it
  std::lock_guard const lock{mutex_};
  ++counts_.refused;
  return nullptr;
}

/** @brief Takes note of a segment, wholly or not at all. */
torch_segments::entry torch_segments::enter(memory_range segment, stream_handle stream)
{
  std::lock_guard const lock{mutex_};
  bool const kept    = stays(segment);
  bool const follow  = following_ && !kept;
  auto const entered = held_.try_emplace(segment.address, held{stream, kept, follow}).first;
  // torch's segments are of one stream each: whoever allocates in a second one has its own.
  if (first_stream_.value_or(stream) != stream) { several_streams(); }
  first_stream_ = first_stream_.value_or(stream);
  try {
    if (follow) {
      map_.add_free(segment);
    } else {
      map_.add_unknown(segment);
    }
  } catch (...) {
    map_.remove(segment.address);
    held_.erase(entered);
    throw;
  }
  ++counts_.segments;
  if (kept) { kept_bytes_ += segment.bytes; }
  return {follow, kept};
}

bool torch_segments::deallocate(void* segment, std::size_t bytes, stream_handle stream) noexcept
{
  fork_call const call;
  auto const address = reinterpret_cast<std::uintptr_t>(segment);
  {
    std::lock_guard const lock{mutex_};
    auto const found = held_.find(address);
    auto const known = map_.segment_of(address);
    if (found == held_.end() || !known || known->range.bytes != bytes) { return false; }
    if (found->second.kept) { kept_bytes_ -= bytes; }
    owed_bytes_ -= std::min(owed_bytes_, bytes);
    held_.erase(found);
    map_.remove(address);
  }
  release(bytes);
  // torch does not wait for the work before it gives a segment back; the driver's free does.
  return memory_.try_deallocate(
    cuda::stream_ref{static_cast<cudaStream_t>(stream)}, segment, bytes);
}

bool torch_segments::holds(std::uintptr_t address) const
{
  fork_call const call;
  std::lock_guard const lock{mutex_};
  return map_.segment_of(address).has_value();
}

void torch_segments::on_pressure(pressure_call call, void* argument) noexcept
{
  fork_call const counted;
  pressure_argument_.store(argument);
  pressure_.store(call);
  look_for_pressure();
}

void torch_segments::on_scarcity(pressure_call call, void* argument, std::size_t bytes) noexcept
{
  fork_call const counted;
  scarce_bytes_.store(bytes);
  scarcity_argument_.store(argument);
  scarcity_.store(call);
  look_for_scarcity();
}

void torch_segments::look_for_scarcity() noexcept
{
  {
    std::lock_guard const lock{mutex_};
    if (counts_.refused == 0 && counts_.segment_bytes <= scarce_bytes_.load()) { return; }
  }
  if (auto const call = scarcity_.exchange(nullptr); call != nullptr) {
    call(scarcity_argument_.load());
  }
}

/** @brief As much as is beyond a limit now has to go, before the memory of a new segment is used.
 */
void torch_segments::owe(std::size_t beyond_cap_bytes) noexcept
{
  std::lock_guard const lock{mutex_};
  auto const beyond = counts_.segment_bytes - std::min(counts_.segment_bytes, maximum_bytes_);
  if (beyond == 0 && beyond_cap_bytes == 0) { return; }
  owed_bytes_ = std::max(beyond, beyond_cap_bytes);
  ++counts_.in_place;
  owes_.store(true);
}

std::size_t torch_segments::owed_bytes() const noexcept
{
  fork_call const call;
  std::lock_guard const lock{mutex_};
  return owed_bytes_;
}

void torch_segments::look_for_pressure() noexcept
{
  if (!residency_->under_pressure()) { return; }
  if (auto const call = pressure_.exchange(nullptr); call != nullptr) {
    call(pressure_argument_.load());
  }
}

void torch_segments::follow(std::vector<memory_range> const& live)
{
  fork_call const call;
  std::vector<std::pair<memory_range, stream_handle>> dead;
  auto const by_address = [](auto const& a, auto const& b) { return a.address < b.address; };
  auto sorted           = live;
  std::sort(sorted.begin(), sorted.end(), by_address);
  {
    std::lock_guard const lock{mutex_};
    following_ = true;
    for (auto const& [address, one_held] : held_) {
      auto const segment = map_.segment_of(address);
      if (!segment || segment->known || one_held.kept) { continue; }
      std::vector<memory_range> inside;
      auto one = std::lower_bound(sorted.begin(), sorted.end(), segment->range, by_address);
      for (; one != sorted.end() && one->address < segment->range.end(); ++one) {
        if (segment->range.covers(*one)) { inside.push_back(*one); }
      }
      for (auto const& free : map_.list(address, inside)) {
        dead.emplace_back(free, one_held.stream);
      }
    }
  }
  for (auto const& [range, stream] : dead) {
    residency_->on_free(range, stream, !several_streams_.load(std::memory_order_relaxed));
  }
}

void torch_segments::unfollow(bool routed) noexcept
{
  fork_call const call;
  std::lock_guard const telling{telling_};
  std::lock_guard const lock{mutex_};
  following_ = false;
  if (!routed) { return; }
  for (auto const& [address, one_held] : held_) {
    make_unknown(address);
  }
}

/** @brief Nobody tells of a segment any more: what is free in it counts as live; with both locks.
 */
void torch_segments::make_unknown(std::uintptr_t segment) noexcept
{
  map_.make_unknown(segment, [this](memory_range free) { residency_->on_untold(free); });
}

/** @brief What an allocation takes; with both locks. */
std::optional<carved_range> torch_segments::carved_at(std::uintptr_t start)
{
  try {
    return map_.on_allocate(start);
  } catch (std::bad_alloc const&) {  // nothing more is known of its segment: all of it is live
    if (auto const segment = map_.segment_of(start)) { make_unknown(segment->range.address); }
    throw;
  }
}

void torch_segments::on_allocate(std::uintptr_t start) noexcept
try {
  fork_call const call;
  // One after the other, until the ledger knows: who is told next may begin in what this one took.
  std::lock_guard const telling{telling_};
  carved_range carved;
  stream_handle stream = nullptr;
  {
    std::lock_guard const lock{mutex_};
    if (is_kept(start)) { return; }
    auto const found = carved_at(start);
    if (!found) { return; }
    carved        = *found;
    auto& segment = held_[map_.segment_of(start)->range.address];
    segment.fresh = false;
    stream        = segment.stream;
    ++counts_.reused;
  }
  residency_->on_reuse(carved, stream, !several_streams_.load(std::memory_order_relaxed));
} catch (...) {  // no memory for a table: the pages come by fault
  std::lock_guard const lock{mutex_};
  refusal_ = "no host memory for the table of torch's allocations";
}

void torch_segments::on_free(std::uintptr_t start) noexcept
try {
  fork_call const call;
  memory_range range;
  stream_handle stream = nullptr;
  bool const by_stream = !several_streams_.load(std::memory_order_relaxed);
  {
    std::lock_guard const lock{mutex_};
    if (is_kept(start)) { return; }
    range = map_.on_free(start);
    if (range.bytes == 0) { return; }
    stream = held_[map_.segment_of(start)->range.address].stream;
    ++counts_.freed;
    if (!by_stream) { ++counts_.unfenced; }
  }
  residency_->on_free(range, stream, by_stream);
} catch (...) {  // no memory for a table: it stays live, and is copied when it leaves
  std::lock_guard const lock{mutex_};
  refusal_ = "no host memory for the table of torch's allocations";
}

void torch_segments::measured(std::uintptr_t start, std::size_t bytes) noexcept
{
  fork_call const call;
  std::lock_guard const lock{mutex_};
  map_.measured(start, bytes);
}

torch_segment_statistics torch_segments::statistics() const noexcept
{
  fork_call const call;
  std::lock_guard const lock{mutex_};
  return counts_;
}

std::string torch_segments::last_refusal() const
{
  fork_call const call;
  std::lock_guard const lock{mutex_};
  return refusal_;
}

}  // namespace rmm_uvm::mr
