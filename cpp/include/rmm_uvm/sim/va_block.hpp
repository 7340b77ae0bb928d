// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm::sim {

inline constexpr std::size_t pages_per_block = va_block_bytes / page_bytes;  ///< 512

/** @brief One bit for each 4 KiB page of a block. */
using page_mask = std::bitset<pages_per_block>;

/** @brief Which of the kernel driver's lists a block's device chunk is on. */
enum class chunk_list_id : std::uint8_t {
  none,    ///< no device memory behind the block
  unused,  ///< memory kept, but no page of the block resides in it
  used     ///< the rest
};

/** @brief One 2 MiB window of a managed range: where its pages are. */
struct va_block {
  page_mask on_device;   ///< resident on the device
  page_mask on_host;     ///< resident on the host
  page_mask discarded;   ///< contents dropped, not written since
  page_mask host_pages;  ///< host memory taken; the kernel driver keeps it until the range is freed
  std::uintptr_t address{0};                  ///< of its first byte
  va_block* previous{nullptr};                ///< on its list, towards the next victim
  va_block* next{nullptr};                    ///< on its list, towards the most recent
  std::uint16_t page_count{pages_per_block};  ///< fewer in a range's last block
  chunk_list_id list{chunk_list_id::none};    ///< the list it is on

  /** @brief Device bytes that back the block when it has any. */
  [[nodiscard]] std::size_t chunk_bytes() const noexcept { return page_count * page_bytes; }
};

/** @brief First-in-first-out list of blocks; the head is the next victim. */
class chunk_list {
 public:
  /** @brief The next victim, or nullptr. */
  [[nodiscard]] va_block* head() const noexcept { return head_; }

  /** @brief Appends a block that is on no list. */
  void push_back(va_block& block) noexcept
  {
    block.previous                           = tail_;
    block.next                               = nullptr;
    (tail_ != nullptr ? tail_->next : head_) = &block;
    tail_                                    = &block;
  }

  /** @brief Takes a block off this list. */
  void remove(va_block& block) noexcept
  {
    (block.previous != nullptr ? block.previous->next : head_) = block.next;
    (block.next != nullptr ? block.next->previous : tail_)     = block.previous;
    block.previous = block.next = nullptr;
  }

 private:
  va_block* head_{nullptr};
  va_block* tail_{nullptr};
};

/** @brief Mask of pages [first, last). */
[[nodiscard]] inline page_mask mask_of(std::size_t first, std::size_t last) noexcept
{
  if (first >= last) { return {}; }
  page_mask mask;
  mask.set();
  mask >>= pages_per_block - (last - first);
  return mask << first;
}

}  // namespace rmm_uvm::sim
