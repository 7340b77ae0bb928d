// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rmm_uvm {

/**
 * @brief Estimates what kernels faulted in beside a budget, from bytes alone.
 *
 * The counters of a driver have no addresses. But whoever keeps a budget knows which blocks it
 * believes on the host, and which of them it asked back: what came to the device beyond that came
 * by faults. A block that faulted in and is announced later is asked for without moving anything,
 * so that the estimate corrects itself.
 *
 * It is a lower one: what was asked for and is not counted yet hides as many faulted bytes, and so
 * does what was renewed. Pages that a fault populates without a copy are not seen.
 * A plain value; whoever shares it locks.
 */
class fault_in_estimate {
 public:
  /** @param came_bytes, left_bytes what the counters say now, to the device and unasked to the host
   */
  fault_in_estimate(std::uint64_t came_bytes, std::uint64_t left_bytes) noexcept
    : came_{came_bytes}, left_{left_bytes}
  {
  }

  /** @brief Bytes are believed on the host from now on. */
  void to_host(std::size_t bytes) noexcept { on_host_ += bytes; }

  /**
   * @brief Bytes that were believed on the host are believed on the device from now on.
   * @param moves they were asked there; false: they come by faults, and are expected to
   */
  void to_device(std::size_t bytes, bool moves) noexcept
  {
    beside_ -= static_cast<std::int64_t>(bytes);
    if (moves) { asked_ += bytes; }
    take_from_host(bytes);
  }

  /**
   * @brief Blocks that were believed on the host were found on the device, or a part of them.
   * @param whole_bytes of the blocks: none of them is believed on the host from now on
   * @param came_bytes of them on the device
   */
  void found(std::size_t whole_bytes, std::size_t came_bytes) noexcept
  {
    beside_ -= static_cast<std::int64_t>(came_bytes);
    take_from_host(whole_bytes);
  }

  /** @brief All blocks that are believed on the host were looked at: these bytes are of others. */
  void not_found(std::size_t bytes) noexcept
  {
    beside_ -= static_cast<std::int64_t>(std::min(bytes, beside_bytes()));
  }

  /** @brief Bytes that were believed on the device, and may have left unasked, are asked back. */
  void again_to_device(std::size_t bytes) noexcept
  {
    auto const back = std::min<std::uint64_t>(bytes, away_unasked_);
    away_unasked_ -= back;
    asked_ += back;
  }

  /**
   * @brief What was asked before the last call of this has come: the rest of it had been there.
   *
   * What was asked since is what the next call is about.
   */
  void earlier_came() noexcept { earlier_ = std::exchange(asked_, 0); }

  /** @brief Bytes that were believed on the host have no contents to move any more. */
  void forget(std::size_t bytes) noexcept
  {
    // Nobody knows whether it was these that had faulted in. What was used last is what pools hand
    // out again first, so it is taken that they had.
    if (beside_ > 0) {
      beside_ = std::max<std::int64_t>(0, beside_ - static_cast<std::int64_t>(bytes));
    }
    take_from_host(bytes);
  }

  /** @brief Of bytes that left unasked, for pages that kernels made: they hide none that came. */
  void made(std::uint64_t bytes) noexcept
  {
    if (beside_ < 0) {
      beside_ = std::min<std::int64_t>(0, beside_ + static_cast<std::int64_t>(bytes));
    }
  }

  /**
   * @brief Looks at the counters.
   * @param came_bytes as in the constructor, grown
   * @param left_bytes likewise; or less, where what looked unasked has been asked by now
   */
  void observe(std::uint64_t came_bytes, std::uint64_t left_bytes) noexcept
  {
    auto const came = came_bytes - came_;
    if (left_bytes < left_) { away_unasked_ -= std::min(away_unasked_, left_ - left_bytes); }
    if (left_bytes > left_) { away_unasked_ += left_bytes - left_; }
    beside_ += static_cast<std::int64_t>(came) - static_cast<std::int64_t>(left_bytes - left_);
    came_ = came_bytes;
    left_ = left_bytes;
    faulted_ += unasked(came);
    limit();
    peak_ = std::max(peak_, beside_bytes());
  }

  /** @brief Bytes that came by faults since the beginning: at least. */
  [[nodiscard]] std::uint64_t faulted_bytes() const noexcept { return faulted_; }
  /** @brief Bytes that are on the device and are believed on the host, as of `observe`. */
  [[nodiscard]] std::size_t beside_bytes() const noexcept
  {
    return beside_ > 0 ? static_cast<std::size_t>(beside_) : 0;
  }
  /** @brief Bytes that are believed on the host. */
  [[nodiscard]] std::size_t on_host_bytes() const noexcept { return on_host_; }
  /** @brief The most of it that `observe` found. */
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_; }

 private:
  /** @brief What of `came` bytes nobody asked for; takes note of the rest. */
  [[nodiscard]] std::uint64_t unasked(std::uint64_t came) noexcept
  {
    for (auto* const asked : {&earlier_, &asked_}) {
      auto const ours = std::min(*asked, came);
      *asked -= ours;
      came -= ours;
    }
    return came;
  }
  void take_from_host(std::size_t bytes) noexcept
  {
    on_host_ -= std::min(on_host_, bytes);
    limit();
  }
  // What came beyond that was other memory's.
  void limit() noexcept { beside_ = std::min(beside_, static_cast<std::int64_t>(on_host_)); }

  std::uint64_t came_;
  std::uint64_t left_;
  std::uint64_t faulted_{0};
  std::uint64_t asked_{0};         // asked to the device and not seen to come
  std::uint64_t earlier_{0};       // likewise, before the last `earlier_came`
  std::uint64_t away_unasked_{0};  // left unasked and not asked back
  std::int64_t beside_{0};         // negative while what was asked is under way
  std::size_t on_host_{0};         // believed to be
  std::size_t peak_{0};
};

}  // namespace rmm_uvm
