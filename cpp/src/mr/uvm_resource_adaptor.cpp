// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/mr/detail/checked_alignment.hpp>
#include <rmm_uvm/mr/detail/refused_free.hpp>
#include <rmm_uvm/mr/detail/size_text.hpp>
#include <rmm_uvm/mr/detail/uvm_resource_adaptor_impl.hpp>
#include <rmm_uvm/process/forks.hpp>

#include <rmm/aligned.hpp>
#include <rmm/error.hpp>
#include <rmm/process_is_exiting.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rmm_uvm::mr::detail {
namespace {

constexpr int most_waits = 8;  // of a request, for those who trim

constexpr std::size_t granularity = rmm::CUDA_ALLOCATION_ALIGNMENT;  // of what RMM's pool hands out

[[nodiscard]] std::string told(status const& answer)
{
  return std::string{answer.call} + " answered " + std::string{to_string(answer.code)};
}

/** @brief Says what to do where nobody can tell which graph would use the memory. */
[[noreturn]] void refuse_captured(std::size_t bytes, status const& answer)
{
  throw std::runtime_error{
    as_text(bytes) +
    " asked during the capture of a CUDA graph, in the default stream, which waits for the "
    "captured one, or after the capture has failed: ask in the captured stream, or before (" +
    told(answer) + ")"};
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

/** @brief The free pieces of the pool's slabs, by what is known to be live. */
std::vector<memory_range> uvm_resource_adaptor_impl::free_pieces() const
{
  std::vector<memory_range> live;
  live_.each([&](memory_range allocation) { live.push_back(allocation); });
  return residency_->room().free_pieces(std::move(live), granularity);
}

/** @brief In this order no piece of the pool is split for another that is asked for. */
std::vector<memory_range> uvm_resource_adaptor_impl::free_pieces_largest_first() const
{
  auto pieces = free_pieces();
  std::sort(
    pieces.begin(), pieces.end(), [](auto const& a, auto const& b) { return a.bytes > b.bytes; });
  return pieces;
}

/** @brief Says what was asked, what there is, in which pieces, and what to do. */
void uvm_resource_adaptor_impl::refuse(std::size_t bytes, std::string const& why) const
{
  std::size_t free_bytes    = 0;
  std::size_t largest_bytes = 0;
  for (auto const& piece : free_pieces()) {
    free_bytes += piece.bytes;
    largest_bytes = std::max(largest_bytes, piece.bytes);
  }
  throw rmm::out_of_memory{as_text(bytes) + " asked, " + as_text(allocated_bytes()) + " live in " +
                           as_text(residency_->room().slab_bytes()) + " of managed memory, " +
                           as_text(free_bytes) + " free there, at most " + as_text(largest_bytes) +
                           " in one piece: free some, or raise the limit named here (" + why + ")"};
}

/** @brief Frees what waited for graphs that have ended, or for a stream that captures no more. */
void uvm_resource_adaptor_impl::free_after_graphs(cuda::stream_ref stream) noexcept
try {
  if (!graph_memory_.may_end()) { return; }
  stream_handle own = nullptr;
  if (!residency_->driver().own_stream(own_stream_use::frees, own).ok()) { return; }
  for (auto const& each : graph_memory_.take(stream.get())) {
    auto const in = each.in_caller ? stream : cuda::stream_ref{static_cast<cudaStream_t>(own)};
    static_cast<void>(free_in(in, each.ptr, each.bytes, each.alignment));
  }
} catch (std::bad_alloc const&) {
  return;  // they wait on
}

/**
 * @brief Allocates in a stream of ours, and waits for that: the graph's can wait for nothing.
 *
 * The graph, and what is instantiated from it, use the memory whenever they are launched.
 */
void* uvm_resource_adaptor_impl::allocate_captured(cuda::stream_ref stream,
                                                   std::size_t bytes,
                                                   std::size_t alignment)
{
  auto& driver = residency_->driver();
  graph_memory::graph graph;
  stream_handle own = nullptr;
  if (auto const told = driver.graph_of(stream.get(), graph); !told.ok()) {
    refuse_captured(bytes, told);
  }
  auto const check = [&](status answer) {
    if (!answer.ok()) { throw rmm::bad_alloc{as_text(bytes) + " asked: " + told(answer)}; }
  };
  check(driver.own_stream(own_stream_use::frees, own));
  if (auto* const again = graph_memory_.hand_out_again(bytes, alignment, stream.get(), graph)) {
    return again;
  }
  cuda::stream_ref const in{static_cast<cudaStream_t>(own)};
  auto* const ptr = allocate_in(in, bytes, alignment);
  if (ptr == nullptr) { return ptr; }
  try {
    check(driver.synchronize(own));
    graph_memory_.hand_out(ptr, bytes, alignment, graph);
  } catch (...) {
    static_cast<void>(free_in(in, ptr, bytes, alignment));
    throw;
  }
  return ptr;
}

/** @brief Keeps what is freed and a graph may use. @return false if it is none of such memory */
std::optional<bool> uvm_resource_adaptor_impl::keep_for_graph(cuda::stream_ref stream,
                                                              void* ptr,
                                                              std::size_t bytes,
                                                              std::size_t alignment,
                                                              bool captured) noexcept
try {
  auto const live = live_.bytes_at(reinterpret_cast<std::uintptr_t>(ptr));
  if (live != bytes) { return std::nullopt; }  // as any other that is refused
  auto& driver = residency_->driver();
  auto answer  = graph_memory::answer::not_ours;
  if (captured) {
    graph_memory::graph graph;
    static_cast<void>(driver.graph_of(stream.get(), graph));
    answer = graph_memory_.free_in_capture(ptr, bytes, alignment, stream.get(), graph);
  } else {
    answer = graph_memory_.free(ptr, [&] {
      stream_handle own = nullptr;
      return driver.own_stream(own_stream_use::frees, own).ok() &&
             driver.order(own, stream.get()).ok();
    });
  }
  if (answer == graph_memory::answer::not_ours) { return std::nullopt; }
  return answer == graph_memory::answer::kept;
} catch (std::bad_alloc const&) {
  return true;  // nobody is handed it again
}

#ifdef RMM_UVM_POOL_FORGETS_WAITS
/** @brief Frees something in the stream after each request, also one that was refused. */
void* uvm_resource_adaptor_impl::serve(cuda::stream_ref stream,
                                       std::size_t bytes,
                                       std::size_t alignment)
{
  // Nobody takes anything over before that. A callback for failures may allocate.
  std::lock_guard const lock{serving_};
  // In a forked child nothing is recorded.
  bool const quiet = residency_->driver().capturing(stream.get()) != capture_state::none;
  void* ptr        = nullptr;
  try {
    ptr = upstream_.allocate(stream, bytes, alignment);
  } catch (...) {
    if (!quiet) { record_again(stream, 0); }
    throw;
  }
  if (ptr != nullptr && !quiet) { record_again(stream, bytes); }
  return ptr;
}

/** @param bytes that were handed out, and are not counted yet */
void uvm_resource_adaptor_impl::record_again(cuda::stream_ref stream, std::size_t bytes) noexcept
try {
  pool_room::request const without_growth{pool_room::request::no_slab};
  upstream_.deallocate(
    stream, upstream_.allocate(stream, granularity, granularity), granularity, granularity);
} catch (...) {
  // Where nothing is free nobody takes anything over; else wait for what was.
  if (residency_->room().slab_bytes() > allocated_bytes() + bytes) {
    static_cast<void>(residency_->driver().synchronize(stream.get()));
  }
}
#endif

void* uvm_resource_adaptor_impl::allocate_upstream(cuda::stream_ref stream,
                                                   std::size_t bytes,
                                                   std::size_t alignment)
{
  void* ptr = nullptr;
  try {
    ptr = serve(stream, bytes, alignment);
  } catch (rmm::out_of_memory const& error) {
    refuse(bytes, without_location(error.what()));
  }
  keep_aligned(ptr, alignment, [&] { upstream_.deallocate(stream, ptr, bytes, alignment); });
  return ptr;
}

/**
 * @brief Allocates, and takes note of it.
 * @param[out] were_empty the blocks in it that nobody had populated
 */
void* uvm_resource_adaptor_impl::take(cuda::stream_ref stream,
                                      std::size_t bytes,
                                      std::size_t alignment,
                                      std::vector<memory_range>* were_empty)
{
  auto* const ptr = allocate_upstream(stream, bytes, alignment);
  memory_range const allocation{reinterpret_cast<std::uintptr_t>(ptr), bytes};
  if (ptr == nullptr) { return ptr; }
  try {
    live_.insert(allocation.address, bytes);
    auto& room = residency_->room();
    // True also where another thread had the pool pass its maximum a moment ago.
    if (bytes > room.spare_bytes()) { room.populate(allocation, were_empty); }
  } catch (...) {
    take_back(stream, ptr, bytes, alignment);
    throw;
  }
  return ptr;
}

/** @brief Gives the pool what nobody was handed. */
void uvm_resource_adaptor_impl::take_back(cuda::stream_ref stream,
                                          void* ptr,
                                          std::size_t bytes,
                                          std::size_t alignment) noexcept
{
  static_cast<void>(live_.erase(reinterpret_cast<std::uintptr_t>(ptr), bytes));
  upstream_.deallocate(stream, ptr, bytes, alignment);
}

void* uvm_resource_adaptor_impl::allocate(cuda::stream_ref stream,
                                          std::size_t bytes,
                                          std::size_t alignment)
{
  check_alignment(alignment);
  fork_call const call;
  if (captures(stream) && bytes > 0) { return allocate_captured(stream, bytes, alignment); }
  return allocate_in(stream, bytes, alignment);
}

void* uvm_resource_adaptor_impl::allocate_in(cuda::stream_ref stream,
                                             std::size_t bytes,
                                             std::size_t alignment)
{
  void* ptr        = nullptr;
  auto const& room = residency_->room();
  if (bytes > room.unasked_bytes()) {
    ptr = allocate_asked(stream, bytes, alignment);
    if (ptr == nullptr) { return ptr; }  // of no bytes
  } else {
    try {
      ptr = take(stream, bytes, alignment);
      if (ptr == nullptr) { return ptr; }  // of no bytes
      levels_->allocated(bytes);
    } catch (rmm::out_of_memory const&) {
      if (bytes <= room.unasked_bytes() && trims_ == 0) { throw; }
      ptr = allocate_asked(stream, bytes, alignment);  // other threads were faster, or trim
    }
  }
  memory_range const allocation{reinterpret_cast<std::uintptr_t>(ptr), bytes};
  if (auto* const observer = observer_.get(); observer != nullptr) {
    observer->allocated(residency_->driver().info().device_id, allocation, stream.get());
  }
  static_cast<void>(residency_->on_allocate(allocation, stream.get(), mode_));
  return ptr;
}

/** @brief Allocates where a slab is admitted only to who asks for it, or while another one trims.
 */
void* uvm_resource_adaptor_impl::allocate_asked(cuda::stream_ref stream,
                                                std::size_t bytes,
                                                std::size_t alignment)
{
  auto& room = residency_->room();
  for (int more = most_waits;; --more) {
    auto const before = trims_.load();
    if (before % 2 == 1) { std::lock_guard const turn{room.mutex()}; }
    if (bytes > room.spare_bytes()) { return allocate_past_slabs(stream, bytes, alignment); }
    try {
      pool_room::request const asked{rmm::align_up(bytes, granularity), false};
      auto* const ptr = take(stream, bytes, alignment);
      if (ptr != nullptr) { levels_->allocated(bytes); }
      return ptr;
    } catch (rmm::out_of_memory const&) {
      bool const others = bytes > room.spare_bytes() || trims_ != before;  // had it for then
      if (!others || more == 0) { throw; }
    }
  }
}

/**
 * @brief Allocates more than slabs may still grow by within the pool's maximum, if that much may be
 * live.
 *
 * In a forked child no slab past the maximum is taken, and nothing is discarded.
 */
void* uvm_resource_adaptor_impl::allocate_past_slabs(cuda::stream_ref stream,
                                                     std::size_t bytes,
                                                     std::size_t alignment)
{
  // RMM's pool rounds up to 256 bytes, and so past the largest size to a few bytes that others
  // have.
  if (bytes > pool_room::unlimited) {
    throw rmm::out_of_memory{std::to_string(bytes) + " bytes asked: no address space holds that"};
  }
  auto& room = residency_->room();
  std::lock_guard const lock{room.mutex()};
  auto const maximum_bytes = room.maximum_bytes();
  auto const exceeded = "Maximum pool size exceeded: " + as_text(maximum_bytes) + " may be live";
  if (bytes > maximum_bytes || allocated_bytes() > maximum_bytes - bytes) {
    refuse(bytes, exceeded);
  }
  auto& driver         = residency_->driver();
  bool const quiet     = driver.capturing(stream.get()) != capture_state::none;
  stream_handle handle = nullptr;
  bool const discards  = !quiet && driver.own_stream(own_stream_use::frees, handle).ok();
  cuda::stream_ref const own{static_cast<cudaStream_t>(handle)};
  pool_room::request const asked{quiet ? 0 : rmm::align_up(bytes, granularity)};
  std::vector<memory_range> were_empty;
  auto* ptr           = take(stream, bytes, alignment, &were_empty);
  auto const withdraw = [&] {
    room.empty(std::exchange(were_empty, {}));  // nobody was handed them
    take_back(stream, std::exchange(ptr, nullptr), bytes, alignment);
  };
  if (discards) { discard_some_dead(own); }
  auto const most_bytes = room.most_populated_bytes();
  for (auto const limit : {maximum_bytes + (most_bytes - maximum_bytes) / 2, most_bytes}) {
    if (!discards || room.populated_bytes() <= limit) { continue; }
    withdraw();
    discard_dead(own, pool_room::unlimited, limit == most_bytes);
    ptr = take(stream, bytes, alignment, &were_empty);  // of all that is free in any stream
  }
  if (room.populated_bytes() > most_bytes) {
    withdraw();
    refuse(bytes, exceeded + ", in blocks of 2 MiB that take at most " + as_text(most_bytes));
  }
  levels_->allocated(bytes);
  return ptr;
}

/** @brief Free pieces of a pool, taken from it in a stream for as long as this lives. */
class uvm_resource_adaptor_impl::borrowed_pieces {
 public:
  borrowed_pieces(uvm_resource_adaptor_impl& from, cuda::stream_ref stream)
    : from_{from}, stream_{stream}
  {
  }
  borrowed_pieces(borrowed_pieces const&)            = delete;
  borrowed_pieces& operator=(borrowed_pieces const&) = delete;
  borrowed_pieces(borrowed_pieces&&)                 = delete;
  borrowed_pieces& operator=(borrowed_pieces&&)      = delete;
  ~borrowed_pieces()
  {
    for (auto const& piece : pieces_) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): as the pool handed it out
      from_.take_back(stream_, reinterpret_cast<void*>(piece.address), piece.bytes, granularity);
    }
  }

  /** @return none where the pool has no such piece */
  [[nodiscard]] std::optional<memory_range> take(std::size_t bytes)
  {
    auto& piece = pieces_.emplace_back();  // first: later there may be no memory for it
    pool_room::request const without_growth{pool_room::request::no_slab};
    try {
      piece.address = reinterpret_cast<std::uintptr_t>(from_.serve(stream_, bytes, granularity));
      piece.bytes   = bytes;
      return piece;
    } catch (rmm::out_of_memory const&) {
      pieces_.pop_back();
      return std::nullopt;
    }
  }

  [[nodiscard]] std::vector<memory_range> const& pieces() const noexcept { return pieces_; }
  /** @brief The populated blocks in them. */
  [[nodiscard]] std::vector<memory_range> dead() const
  {
    std::vector<memory_range> dead;
    for (auto const& piece : pieces_) {
      auto const blocks = from_.residency_->room().dead_in(piece);
      dead.insert(dead.end(), blocks.begin(), blocks.end());
    }
    return dead;
  }

 private:
  uvm_resource_adaptor_impl& from_;
  cuda::stream_ref stream_;
  std::vector<memory_range> pieces_;
};

/**
 * @brief Discards dead blocks in the largest free pieces.
 *
 * The pieces are taken from the pool for that, in a stream of ours. The pool has it wait for the
 * events of their last uses, whatever streams those were in, and hands them to nobody else.
 * Afterwards they are in one list of the pool, which fits a request better than those of many
 * streams: of these it takes the first that has any piece for it. Called with the lock of
 * `pool_room`.
 *
 * @param enough bytes of dead blocks
 * @param waits for the last uses; else nothing is discarded while they go on
 */
void uvm_resource_adaptor_impl::discard_dead(cuda::stream_ref own,
                                             std::size_t enough,
                                             bool waits) noexcept
try {
  auto& driver = residency_->driver();
  auto& room   = residency_->room();
  borrowed_pieces borrowed{*this, own};
  for (auto const& piece : free_pieces_largest_first()) {
    if (piece.bytes < va_block_bytes && room.dead_in(piece).empty()) { continue; }
    auto const taken = borrowed.take(piece.bytes);
    if (!taken) { continue; }
    for (auto const& blocks : room.dead_in(*taken)) {
      enough -= std::min(enough, blocks.bytes);
    }
    if (enough == 0) { break; }
  }
  auto const dead = borrowed.dead();
  bool const done = waits ? driver.synchronize(own.get()).ok() : driver.idle(own.get());
  if (done && residency_->drop_dead(dead)) { room.empty(dead); }
  discards_past_bytes_ = room.populated_bytes() + room.maximum_bytes() / 64;
} catch (...) {
  return;  // no memory for the lists: what was not discarded stays as it is
}

/**
 * @brief Discards until populated blocks fit the maximum and a part of it is free. So this is not
 * done for every request.
 */
void uvm_resource_adaptor_impl::discard_some_dead(cuda::stream_ref own) noexcept
{
  auto const maximum_bytes = residency_->room().maximum_bytes();
  auto const populated     = residency_->room().populated_bytes();
  if (populated <= std::max(discards_past_bytes_, maximum_bytes)) { return; }
  discard_dead(own, populated - maximum_bytes + maximum_bytes / 64, false);
}

trim_outcome uvm_resource_adaptor_impl::trim(std::size_t pool_maximum_bytes)
{
  fork_call const call;
  auto& driver = residency_->driver();
  auto& room   = residency_->room();
  trim_outcome outcome;
  auto const is_done = [&outcome](status result) {
    if (!result.ok()) { outcome.reason = told(result); }
    return result.ok();
  };
  std::lock_guard const lock{room.mutex()};
  // The legacy stream answers for all that are not created to run beside it.
  if (driver.capturing(nullptr) != capture_state::none) {
    outcome.reason = "a stream captures, or may, or this is a child of a fork";
    return outcome;
  }
  stream_handle handle = nullptr;
  if (!is_done(driver.own_stream(own_stream_use::frees, handle))) { return outcome; }
  ++trims_;
  try {
    outcome = trim_in(handle, pool_maximum_bytes);
  } catch (...) {
    ++trims_;
    throw;
  }
  ++trims_;
  discards_past_bytes_ = 0;
  return outcome;
}

/** @brief Does so with free pieces that are taken from the pool in a stream of ours. */
trim_outcome uvm_resource_adaptor_impl::trim_in(stream_handle handle,
                                                std::size_t pool_maximum_bytes)
{
  auto& driver = residency_->driver();
  auto& room   = residency_->room();
  trim_outcome outcome;
  borrowed_pieces borrowed{*this, cuda::stream_ref{static_cast<cudaStream_t>(handle)}};
  if (pool_maximum_bytes > 0) {
    static_cast<void>(room.take_given_back());
    // For a request as large as its maximum RMM's pool gives back every slab that is free as a
    // whole. Then it is refused a slab: the request is not served.
    static_cast<void>(borrowed.take(pool_maximum_bytes));
    auto const went          = room.take_given_back();
    outcome.given_back_bytes = went.bytes;
    if (went.bytes > 0) { room.note_trimmed(pool_maximum_bytes); }
    if (went.lost_bytes > 0) { outcome.reason = as_text(went.lost_bytes) + " could not be freed"; }
  }
  for (auto const& piece : free_pieces_largest_first()) {
    if (!room.dead_in(piece).empty()) { static_cast<void>(borrowed.take(piece.bytes)); }
  }
  auto const dead = borrowed.dead();
  if (auto const waited = driver.synchronize(handle); !waited.ok()) {
    outcome.reason = told(waited);
  } else if (residency_->drop_dead(dead)) {
    if (room.spare_bytes() == 0) { room.empty(dead); }
    for (auto const& blocks : dead) {
      outcome.discarded_bytes += blocks.bytes;
    }
  } else if (!dead.empty()) {
    auto const& discards = driver.info().discard;
    outcome.reason       = "what is free beside what is in use was not discarded" +
                     (discards.available ? std::string{} : ": " + discards.reason);
  }
  return outcome;
}

bool uvm_resource_adaptor_impl::try_deallocate(cuda::stream_ref stream,
                                               void* ptr,
                                               std::size_t bytes,
                                               std::size_t alignment) noexcept
{
  if (ptr == nullptr) { return true; }
  fork_call const call;
  bool const captured = captures(stream);
  if (captured || graph_memory_.any()) {
    auto const kept = keep_for_graph(stream, ptr, bytes, alignment, captured);
    if (kept && !*kept) { refused_frees_.fetch_add(1, std::memory_order_relaxed); }
    if (kept) { return *kept; }
  }
  return free_in(stream, ptr, bytes, alignment);
}

bool uvm_resource_adaptor_impl::free_in(cuda::stream_ref stream,
                                        void* ptr,
                                        std::size_t bytes,
                                        std::size_t alignment) noexcept
{
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
