// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rmm_uvm {

/**
 * @brief The maximum of a pool: live bytes count, not the addresses of its slabs.
 *
 * While all slabs together fit the maximum, so does what is in them, and a request that fits what
 * is left of it need not ask anything else. Other requests come one at a time, under `mutex`. They
 * may have the pool take slabs past the maximum. From then on this class knows which blocks are
 * empty: those of such slabs until they are handed out, and those that were discarded. All others
 * are populated. A free changes nothing here: dead blocks stay populated until they are discarded.
 *
 * Thread-safe, but for `set_maximum`, which comes before the first slab.
 */
class pool_room {
 public:
  /** @brief More than any address space holds. */
  static constexpr std::size_t unlimited = std::numeric_limits<std::ptrdiff_t>::max();

  /** @brief What a thread's requests may have the pool take, as its upstream cannot see it. */
  class request {
   public:
    static constexpr std::size_t beside  = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t no_slab = beside - 1;

    /**
     * @param bytes of a slab that is needed; or `beside`: slabs are none of the pool's; or
     *        `no_slab`: what is not there is refused
     * @param passes whether that slab may pass the maximum
     */
    explicit request(std::size_t bytes, bool passes = true) noexcept
      : outer_{std::exchange(asked(), what{bytes, passes})}
    {
    }
    request(request const&)            = delete;
    request& operator=(request const&) = delete;
    request(request&&)                 = delete;
    request& operator=(request&&)      = delete;
    ~request() { asked() = outer_; }

   private:
    friend class pool_room;
    struct what {
      std::size_t bytes{0};
      bool passes{false};  // no slab passes the maximum
    };
    [[nodiscard]] static what& asked() noexcept
    {
      thread_local what now;
      return now;
    }
    what outer_;
  };

  /**
   * @brief Sets the maximum; without it nothing is limited here.
   * @param live_bytes most live bytes
   * @param populated_bytes most bytes of populated blocks: live ones hold some dead bytes, too
   */
  void set_maximum(std::size_t live_bytes, std::size_t populated_bytes) noexcept
  {
    maximum_bytes_        = live_bytes;
    most_populated_bytes_ = populated_bytes;
    spare_bytes_.store(live_bytes);
    unasked_bytes_.store(live_bytes);
  }
  /** @brief Most live bytes, or `unlimited`. */
  [[nodiscard]] std::size_t maximum_bytes() const noexcept { return maximum_bytes_; }
  /** @brief Most bytes of populated blocks. */
  [[nodiscard]] std::size_t most_populated_bytes() const noexcept { return most_populated_bytes_; }
  /** @brief By how much slabs may still grow within the maximum; takes no lock. */
  [[nodiscard]] std::size_t spare_bytes() const noexcept
  {
    return spare_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief The same, but 0 where a slab is admitted only if a `request` asks for it; no lock. */
  [[nodiscard]] std::size_t unasked_bytes() const noexcept
  {
    return unasked_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief Held by a request for more than `spare_bytes`, and to trim. */
  [[nodiscard]] ranked_mutex<lock_rank::scarce>& mutex() noexcept { return mutex_; }

  /**
   * @brief Whether the pool may have a slab.
   *
   * Past the maximum only one of the size that is needed, or a sixteenth of the maximum: RMM's pool
   * asks for half of what it has left, and for less when it is refused. After `note_trimmed` one
   * that doubles what there is, or a 64th of the pool's maximum, at most 256 MiB, or what is
   * needed: else a small request would take all of it again.
   */
  [[nodiscard]] bool admits_slab(std::size_t bytes) const;
  /** @brief Slabs were given back, of a pool that takes so many bytes at most. */
  void note_trimmed(std::size_t pool_maximum_bytes);
  /** @brief What the pool gave back to a request for no slab: it went, or could not be freed. */
  struct given_back {
    std::size_t bytes{0};
    std::size_t lost_bytes{0};
  };
  /** @brief Takes note of a slab that the pool gave back, if it did so for such a request. */
  void note_given_back(std::size_t bytes, bool freed) noexcept;
  /** @brief What was noted since the last call. */
  [[nodiscard]] given_back take_given_back() noexcept;
  /** @brief Takes note of a slab. @return false when the slabs pass the maximum with it */
  bool add_slab(memory_range slab);
  /** @brief Forgets a slab; nothing if it was not the pool's. */
  void remove_slab(std::uintptr_t address) noexcept;
  /** @brief Bytes of the pool's slabs. */
  [[nodiscard]] std::size_t slab_bytes() const;

  /**
   * @brief Memory was handed out: its blocks are populated.
   * @param[out] were_empty those that were not before, where somebody asks
   */
  void populate(memory_range allocation, std::vector<memory_range>* were_empty = nullptr);
  /** @brief What `dead_in` found was discarded, or what `populate` took was handed to nobody. */
  void empty(std::span<memory_range const> blocks);
  /** @brief Bytes of populated blocks, live or dead. */
  [[nodiscard]] std::size_t populated_bytes() const;
  /** @brief The populated blocks that lie wholly in a free piece of a slab, ascending. */
  [[nodiscard]] std::vector<memory_range> dead_in(memory_range piece) const;
  /**
   * @brief The free pieces of all slabs, ascending.
   * @param live what is not free
   * @param granularity that of allocations: a power of two
   */
  [[nodiscard]] std::vector<memory_range> free_pieces(std::vector<memory_range> live,
                                                      std::size_t granularity) const;

 private:
  using run_map = std::map<std::uintptr_t, std::size_t>;  // address to bytes

  void count_slabs(std::size_t bytes) noexcept;
  void take_from_empty(memory_range range, std::vector<memory_range>* taken = nullptr);

  std::size_t maximum_bytes_{unlimited};
  std::size_t most_populated_bytes_{unlimited};
  std::atomic<std::size_t> spare_bytes_{unlimited};
  std::atomic<std::size_t> unasked_bytes_{unlimited};
  ranked_mutex<lock_rank::scarce> mutex_;
  mutable ranked_mutex<lock_rank::pool_slabs> slabs_mutex_;  // of all below
  run_map slabs_;
  run_map empty_;  // blocks without contents; each run lies in one slab
  std::size_t slab_bytes_{0};
  std::size_t empty_bytes_{0};
  given_back given_back_;      // since `take_given_back`
  std::size_t part_bytes_{0};  // a slab that nobody needs is not larger, once some were given back
};

}  // namespace rmm_uvm
