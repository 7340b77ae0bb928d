// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/captured_graph.hpp>
#include <rmm_uvm/driver/command_totals.hpp>
#include <rmm_uvm/driver/link_rates.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/memory_advice.hpp>
#include <rmm_uvm/driver/move_queue.hpp>
#include <rmm_uvm/driver/neighbor_load.hpp>
#include <rmm_uvm/driver/observer_slot.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rmm_uvm {

class migration_counters;

/** @brief What does not change about a device while a process runs. */
struct device_info {
  int device_id{0};                        ///< CUDA ordinal
  std::string name;                        ///< as the driver names it
  std::array<std::uint8_t, 16> uuid{};     ///< GPU UUID
  std::size_t total_bytes{0};              ///< device memory in bytes
  int driver_version{0};                   ///< CUDA version of the driver, 13000 = 13.0
  availability concurrent_managed_access;  ///< without it: no prefetch, no oversubscribing
  availability discard;                    ///< the discard calls of CUDA 13
  availability direct_migration{availability::no("this driver has none")};  ///< `migrate`
  availability host_pages{availability::no("this driver does not tell")};   ///< `not_on_host`
  bool pageable_memory_access{false};  ///< HMM or ATS: system malloc is GPU-accessible
  bool host_page_tables{false};        ///< ATS: it does so through the page tables of the host
  bool integrated{false};              ///< its memory is the host's: nothing ever moves
  std::optional<int> numa_node;        ///< its memory is this NUMA node of the host
  bool simulated{false};               ///< a model, not a GPU
};

/**
 * @brief The seam to CUDA or to the simulated device: commands go down through it.
 *
 * One driver serves one device. Calls return a status and never throw. Stream arguments may be any
 * CUDA stream, the legacy default stream (0, 0x1) and the per-thread one (0x2) included; an
 * implementation sees to it that the work is ordered in that stream. Thread-safe.
 */
class uvm_driver {
 public:
  uvm_driver()                             = default;
  uvm_driver(uvm_driver const&)            = delete;
  uvm_driver& operator=(uvm_driver const&) = delete;
  uvm_driver(uvm_driver&&)                 = delete;
  uvm_driver& operator=(uvm_driver&&)      = delete;
  virtual ~uvm_driver()                    = default;

  /** @brief The device's fixed facts. Lives as long as the driver. */
  [[nodiscard]] virtual device_info const& info() const noexcept = 0;

  /** @brief Observations of the same device; lives as long as the driver. */
  [[nodiscard]] virtual migration_counters const& counters() const noexcept = 0;

  /** @brief Opens what tells for short windows which pages move; see there. Takes milliseconds. */
  [[nodiscard]] virtual opened_move_queue open_moves()
  {
    return {nullptr, availability::no("this driver does not tell which pages move")};
  }

  /** @brief Reads free and total device memory. @param[out] memory set on success */
  virtual status memory(device_memory& memory) noexcept = 0;

  /**
   * @brief Reads how much of the device is nobody's managed memory: of all processes, as far as
   * they can be seen. Some 150 us on a GPU, and the first time more. @param[out] bytes set on
   * success
   */
  virtual status unmanaged_bytes(std::size_t& bytes) noexcept
  {
    static_cast<void>(bytes);
    return {status_code::not_supported, 0, "unmanaged_bytes"};
  }
  /** @brief How many devices this process sees: their ordinals are below it. */
  [[nodiscard]] virtual int device_count() noexcept { return info().device_id + 1; }
  /**
   * @brief Lets `prefetch` move pages to another device, and this one bring them back.
   *
   * Without peer access between the two such a prefetch does nothing and says nothing. Stays for
   * the process; to be called again does no harm.
   * @return not available, with the reason: no such device, itself, or no way between them
   */
  virtual availability open_neighbor(int device_id)
  {
    return availability::no("device " + std::to_string(device_id) +
                            " cannot be reached: this driver knows one device");
  }
  /** @brief What every process calls a neighbour. @pre `open_neighbor` succeeded */
  virtual status neighbor_uuid(int device_id, std::array<std::uint8_t, 16>& uuid) noexcept
  {
    static_cast<void>(device_id);
    static_cast<void>(uuid);
    return {status_code::not_supported, 0, "neighbor_uuid"};
  }
  /** @brief Reads a neighbour's free and total memory. @pre `open_neighbor` succeeded */
  virtual status neighbor_memory(int device_id, device_memory& memory) noexcept
  {
    static_cast<void>(device_id);
    static_cast<void>(memory);
    return {status_code::not_supported, 0, "neighbor_memory"};
  }
  /**
   * @brief Reads how busy a neighbour is, or the device itself. Memory loads and a few system
   * calls; never waits.
   * @param[out] load set on success; parts of it may not be told
   * @pre `open_neighbor` succeeded, unless it is the device itself
   */
  virtual status read_neighbor_load(int device_id, neighbor_load& load) noexcept
  {
    static_cast<void>(device_id);
    static_cast<void>(load);
    return {status_code::not_supported, 0, "read_neighbor_load"};
  }
  /**
   * @brief Measures what managed memory migrates at over the links to the host and a neighbour.
   *
   * Moves memory of its own there and back: tens of milliseconds for 64 MiB. It counts under no
   * cap here; `measure_links` of `residency/` keeps to the process' one.
   * @param device_id a neighbour, or `location::host_id` for the host only
   * @param bytes managed memory to move, at least a block; held until this returns
   * @param[out] rates set on success
   * @pre `open_neighbor` succeeded
   */
  virtual status measure_links(int device_id, std::size_t bytes, link_rates& rates) noexcept
  {
    static_cast<void>(device_id);
    static_cast<void>(bytes);
    static_cast<void>(rates);
    return {status_code::not_supported, 0, "measure_links"};
  }

  /**
   * @brief Takes managed memory, attached globally.
   * @param bytes > 0
   * @param[out] address set on success; a multiple of 256
   */
  virtual status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept = 0;

  /** @brief Gives managed memory back; waits for work that uses it, as cudaFree does. */
  virtual status free_managed(std::uintptr_t address) noexcept = 0;

  /** @brief Moves the pages of `range` to `where`, in the order of `stream`. Contents are kept. */
  virtual status prefetch(memory_range range, location where, stream_handle stream) noexcept = 0;

  /**
   * @brief Moves the pages of `range` to `where` now, in no stream's order; returns when it is
   * done.
   *
   * Holds up no launch, which `prefetch` does. Work that uses the pages may be under way. Only
   * where `info().direct_migration` is available.
   */
  virtual status migrate(memory_range range, location where) noexcept
  {
    static_cast<void>(range);
    static_cast<void>(where);
    return {status_code::not_supported, 0, "migrate"};
  }
  /** @brief Whether `migrate` goes to a place: this device, the host, or an opened neighbour. */
  [[nodiscard]] virtual bool migrates_to(location where) noexcept
  {
    bool const known = where.is_host() || where.device_id == info().device_id;
    return known && info().direct_migration.available;
  }

  /** @brief How many threads at a time take pages to the host faster than fewer do, >= 1. */
  [[nodiscard]] virtual std::size_t evicting_threads() const noexcept { return 4; }
  /**
   * @brief Says that what is migrated until `end_together` is shared out among threads.
   *
   * A model has a clock, and no threads: it plays them out when it is told.
   * @param threads as many as are worth it, >= 1
   * @return how many shall be at it, the caller's among them: 1 where the driver plays them out
   */
  [[nodiscard]] virtual std::size_t begin_together(std::size_t threads) noexcept { return threads; }
  /** @brief They are done, and the caller goes on. @pre a `begin_together` without it */
  virtual void end_together() noexcept {}

  /**
   * @brief Drops the contents of whole pages inside `ranges`, in the order of `stream`.
   *
   * Reads before the next write are undefined, and a kernel that writes a discarded page without a
   * prefetch faults page by page: 7.8 s for 2 GiB on an H200 against 0.6 ms resident.
   * @pre no work in flight reads or writes the ranges
   */
  virtual status discard(std::span<memory_range const> ranges, stream_handle stream) noexcept = 0;

  /** @brief `discard`, then makes the pages usable at `where` without copying them. */
  virtual status discard_and_prefetch(std::span<memory_range const> ranges,
                                      location where,
                                      stream_handle stream) noexcept = 0;

  /**
   * @brief Tells the driver what to do with the pages of `range` from now on; contents are kept.
   *
   * At once, not in the order of any stream; work in flight may use the pages. Advice is about
   * addresses, and stays until it is taken back or the memory is freed.
   * @param range whole blocks: advice about a part would split a block for good
   * @param where for `preferred_location`; ignored otherwise
   */
  virtual status advise(memory_range range, memory_advice what, location where) noexcept = 0;

  /**
   * @brief Makes work that is issued to `later` from now on wait for what was issued to `earlier`.
   * @pre neither is being captured
   */
  virtual status order(stream_handle later, stream_handle earlier) noexcept = 0;

  /**
   * @brief A stream of the driver's own, for work that no user's stream shall wait for.
   * @param[out] stream set on success; lives as long as the driver
   */
  virtual status own_stream(own_stream_use which, stream_handle& stream) noexcept = 0;
  /**
   * @brief Held while the stream of discards is used: it has to be idle for a discard.
   *
   * One for all who have this driver. Nothing else is locked under it. See `discard_at_once`.
   */
  [[nodiscard]] ranked_mutex<lock_rank::discards>& discarding() noexcept { return discarding_; }

  /**
   * @brief Notes how far a stream has got work, under a number that may be used again.
   * @param number < `mark_count`
   * @pre the stream is not being captured
   */
  virtual status mark(std::size_t number, stream_handle stream) noexcept = 0;
  /** @brief Whether the work before the last `mark` of that number is done; never blocks. */
  [[nodiscard]] virtual bool passed(std::size_t number) noexcept = 0;

  /** @brief Whether `stream` is being captured; `unknown` when the driver cannot say. */
  [[nodiscard]] virtual capture_state capturing(stream_handle stream) noexcept = 0;

  /**
   * @brief What tells the graph that a stream captures, and when that and its instances are gone.
   * @param[out] graph set on success; the same one for all calls about one capture, as a rule
   */
  virtual status graph_of(stream_handle stream,
                          std::shared_ptr<captured_graph const>& graph) noexcept
  {
    static_cast<void>(stream);
    static_cast<void>(graph);
    return {status_code::not_supported, 0, "graph_of"};
  }

  /**
   * @brief Whether all work in `stream` is done; never blocks. False where it cannot be told.
   * @pre the stream is not being captured
   */
  [[nodiscard]] virtual bool idle(stream_handle stream) noexcept
  {
    static_cast<void>(stream);
    return false;
  }

  /** @brief Waits until all work in `stream` is done. */
  virtual status synchronize(stream_handle stream) noexcept = 0;

  /**
   * @brief Bytes of managed memory that reside on the device now; nullopt: cannot be told.
   *
   * A GPU's driver does not tell; the simulated device does. Never blocks.
   */
  [[nodiscard]] virtual std::optional<std::size_t> resident_managed_bytes() const noexcept
  {
    return std::nullopt;
  }

  /**
   * @brief Finds the parts of a range that host memory does not hold: they are on a device, or
   * have no contents. What both hold, as a copy, is not among them.
   *
   * Moves nothing, and takes no lock of libcuda; some microseconds for a block. Only where
   * `info().host_pages` is available. What a prefetch brings is seen once it is done.
   * @param[out] parts added to, ascending, adjacent ones joined; whole pages within `range`
   */
  virtual status not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept
  {
    static_cast<void>(range);
    static_cast<void>(parts);
    return {status_code::not_supported, 0, "not_on_host"};
  }

  /** @brief What was asked of this driver so far, by whomever. A few loads; never blocks. */
  [[nodiscard]] command_totals commands() const noexcept { return commands_.read(); }

  /**
   * @brief Who is told of what moves.
   *
   * A GPU's driver tells what it was asked to move; a simulated device what did move, and why. Both
   * tell what they were asked to discard.
   */
  [[nodiscard]] observer_slot& traffic_observers() noexcept { return traffic_; }
  /** @brief Whether they are told what did move, and not what was asked for. */
  [[nodiscard]] virtual bool tells_moves() const noexcept { return false; }
  /** @brief Parts of memory were found on the device that nobody asked for. A model has told. */
  void note_faulted(memory_range part) noexcept
  {
    auto* const observer = traffic_.get();
    if (observer != nullptr && !tells_moves()) {
      observer->moved(part, part.bytes, traffic::faulted);
    }
  }

 protected:
  /**
   * @brief Counts a prefetch to this device or the host that was accepted; an implementation calls
   * it. @return `result`
   */
  status noted(status result, memory_range range, location where) noexcept
  {
    auto const counted = where.is_host() || where.device_id == info().device_id;
    if (result.ok() && counted) { commands_.prefetched(range.bytes, where); }
    if (auto* const observer = traffic_.get();
        observer != nullptr && result.ok() && !tells_moves()) {
      bool const comes = where.device_id == info().device_id;
      observer->moved(range, range.bytes, comes ? traffic::asked : traffic::evicted);
    }
    return result;
  }
  /** @brief Counts a discard that was accepted; an implementation calls it. @return `result` */
  status noted(status result,
               std::span<memory_range const> ranges,
               traffic what = traffic::dropped) noexcept
  {
    if (!result.ok()) { return result; }
    commands_.discarded(ranges);
    if (auto* const observer = traffic_.get(); observer != nullptr) {
      for (auto const& range : ranges) {
        observer->moved(range, range.bytes, what);
      }
    }
    return result;
  }
  /** @brief The same of a discard with a prefetch. */
  status noted(status result, std::span<memory_range const> ranges, location where) noexcept
  {
    bool const comes = where.device_id == info().device_id;
    return noted(result, ranges, comes ? traffic::renewed : traffic::dropped);
  }

 private:
  command_count commands_;
  observer_slot traffic_;
  ranked_mutex<lock_rank::discards> discarding_;
};

}  // namespace rmm_uvm
