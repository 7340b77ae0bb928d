// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/live_blocks.hpp>

#include <algorithm>
#include <utility>

namespace rmm_uvm {
namespace {

/**
 * @brief Of blocks that any part of is live: what a round needs on the device.
 *
 * What is away counts if it was used after `before`. What belongs to the host is read there, and
 * what lies on the device is there for whatever reason.
 */
[[nodiscard]] std::size_t live_block_bytes(ledger_view& view, use_tick before)
{
  std::size_t bytes = 0;
  view.each([&bytes, before](block_record const& block, memory_range whole) {
    if (block.dead() || (block.place == block_place::nowhere && !block.waits)) { return; }
    bool const used = std::max(block.touched, block.allocated) > before;
    bool const away = block.place != block_place::device;
    if (!away || (used && !block.used_on_host())) { bytes += whole.bytes; }
  });
  return bytes;
}

}  // namespace

void live_block_watch::allocated(ledger_view& view, std::size_t new_bytes, std::size_t look_bytes)
{
  if (!asked_) { return; }
  allocated_bytes_ += new_bytes;
  if (allocated_bytes_ < look_bytes) { return; }
  allocated_bytes_ = 0;
  peak_            = std::max(peak_, live_block_bytes(view, before_));
}

live_blocks live_block_watch::take(ledger_view& view, use_tick now, bool begins)
{
  if (begins) { before_ = std::exchange(round_, now); }
  asked_               = true;
  allocated_bytes_     = 0;
  auto const now_bytes = live_block_bytes(view, before_);
  return {now_bytes, std::max(now_bytes, std::exchange(peak_, 0))};
}

}  // namespace rmm_uvm
