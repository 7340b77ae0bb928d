// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/epoch_source.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/** @brief A moment on the clock of uses: it ticks once for every allocation and every touch. */
using use_tick = std::uint32_t;

inline constexpr use_tick never_used  = 0;            ///< before the first tick
inline constexpr use_tick no_use      = 0xFFFFFFFFU;  ///< it is foreseen that it is not used again
inline constexpr use_tick unknown_use = no_use - 1;   ///< nothing is foreseen

/** @brief Where a block was last put, as far as our own calls and what we were told go. */
enum class block_place : std::uint8_t {
  nowhere,  ///< not touched yet, or discarded: nothing to keep
  device,   ///< on the device; see `on_device_as_of` for how certain
  host,     ///< evicted to host memory
  beside    ///< evicted to the memory of another device
};

/** @brief Where pages belong, if a user said so. */
enum class preferred_place : std::uint8_t { none, device, host };

/**
 * @brief What is known of one VA block of a slab.
 *
 * A plain value of 56 bytes. "Live" bytes belong to allocations that a pool has handed out; a block
 * without any is dead: its contents are nobody's.
 */
struct block_record {
  epoch_number on_device_as_of{0};  ///< 0: in doubt
  std::uint64_t freed{0};           ///< number of the last free in it, if that was fenced
  std::uint32_t live_bytes{0};      ///< of allocations in it, at most 2 MiB
  std::uint32_t owner{0};           ///< number of the allocation that was made in it last
  use_tick arrived{never_used};     ///< when it was last put on the device
  use_tick allocated{never_used};   ///< when memory in it was last handed out
  use_tick touched{never_used};     ///< when a program last announced a use
  use_tick prefetched{never_used};  ///< when it was last asked to the device
  use_tick next_use{unknown_use};   ///< when its next use, or end (`no_more_uses`), is expected
  std::uint32_t pins{0};            ///< by users; > 0: stays where it is
  std::uint16_t holds{0};           ///< by requests under way that need it where it is
  block_place place{block_place::nowhere};
  std::uint8_t chunks{
    0};  ///< neighbours that have memory for it, by bits, also when it is not there

  bool discarded        : 1 {false};  ///< its contents were dropped, and nobody was handed it since
  bool busy             : 1 {false};  ///< a call about it is under way: whoever wants it waits
  bool no_more_uses     : 1 {false};  ///< at `next_use` it is freed, with no use announced before
  bool fetched_ahead    : 1 {false};  ///< brought in before its use, and not used since
  bool read_mostly      : 1 {false};  ///< advised: readers get copies, and so does a prefetch
  std::uint8_t neighbor : 3 {0};      ///< which one it is on, while it is `beside`
  bool unfenced         : 1 {false};  ///< freed without a fence: work may still use it, never to be
                                      ///< discarded
  bool in_place  : 1 {false};         ///< it is used where it is, through a mapping
  bool copied    : 1 {false};         ///< the host has a copy of what lies there
  bool untold    : 1 {false};  ///< what lives in it nobody told: it counts as live, all of it
  bool shared    : 1 {false};  ///< of several allocations, each of which `shared_blocks` keeps
  bool only_read : 1 {false};  ///< of one allocation, and a use of all of it was announced to read
  bool written   : 1 {false};  ///< a use was announced that may write it, since it was handed out
  bool chunk     : 1 {false};  ///< it was on the device, or may have been: the driver may keep
                               ///< memory for it since
  bool elsewhere : 1 {false};  ///< some of what is `unfenced` was not in the default stream
  bool copying   : 1 {false};  ///< `busy`, since the host gets a copy: it can be read meanwhile
  bool early     : 1 {false};  ///< `copied`, before it had to leave
  bool slept     : 1 {false};  ///< a sleep sent it away, and it did not come back since
  bool waits     : 1 {false};  ///< handed out, and some of it has no page before its first use: all
                               ///< of it where it is nowhere, else `waiting_memory`'s witness
  preferred_place preferred{preferred_place::none};  ///< advised

  /**
   * @brief Makes it a block of which nobody knows where it is and what lives in it; advice stays.
   * @param whole_bytes all that can live in it
   */
  void adopt(std::size_t whole_bytes) noexcept
  {
    block_record adopted;
    adopted.live_bytes  = static_cast<std::uint32_t>(whole_bytes);
    adopted.place       = block_place::device;
    adopted.untold      = true;
    adopted.unfenced    = true;  // nor whose work uses it
    adopted.elsewhere   = true;
    adopted.read_mostly = read_mostly;
    adopted.preferred   = preferred;
    *this               = adopted;
  }
  /** @brief When it is expected to be used next. */
  [[nodiscard]] use_tick expected_use() const noexcept
  {
    return no_more_uses ? unknown_use : next_use;
  }
  /** @brief Notes when it is expected to be used next, or to be freed. */
  void expect(use_tick then, bool no_more = false) noexcept
  {
    next_use     = then;
    no_more_uses = no_more;
  }
  /** @brief True when a user advised the driver about it. */
  [[nodiscard]] bool advised() const noexcept
  {
    return read_mostly || preferred != preferred_place::none;
  }
  /** @brief True when kernels use it through a mapping, once it is on the host. */
  [[nodiscard]] bool used_on_host() const noexcept
  {
    // Of what is read mostly a reader gets a copy, wherever it belongs.
    return preferred == preferred_place::host && !read_mostly;
  }
  /** @brief True when a neighbour has memory for it, whether it lies there or not. */
  [[nodiscard]] bool has_chunk(std::size_t number) const noexcept
  {
    return ((unsigned{chunks} >> number) & 1U) != 0;
  }
  /** @brief Notes that a neighbour has memory for it, or has it no longer. */
  void set_chunk(std::size_t number, bool there) noexcept
  {
    auto const bit = 1U << number;
    chunks         = static_cast<std::uint8_t>(there ? chunks | bit : chunks & ~bit);
  }
  /** @brief Notes a use that was announced. @param whole it is of all of the block */
  void note_use(bool reads, bool whole) noexcept
  {
    written   = written || !reads;
    only_read = !written && (only_read || whole);
  }
  /** @brief True when it may be told to go elsewhere. */
  [[nodiscard]] bool movable() const noexcept { return !busy && pins == 0 && holds == 0; }
  /** @brief True when it is on the device for sure, with its contents. */
  [[nodiscard]] bool present(epoch_number as_of) const noexcept
  {
    return place == block_place::device && !discarded && on_device_as_of == as_of;
  }
  /** @brief True when none of its pages was ever made: nothing is in it, and it holds nothing. */
  [[nodiscard]] bool is_new() const noexcept { return place == block_place::nowhere && !chunk; }
  /** @brief True when no live byte is in it. */
  [[nodiscard]] bool dead() const noexcept { return live_bytes == 0; }
};

static_assert(sizeof(block_record) == 56, "decisions/0010 and the comment above say 56 bytes");

}  // namespace rmm_uvm
