// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/budget_sharing.hpp>
#include <rmm_uvm/residency/harvest_rule.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rmm_uvm::ipc {

class board_file;
class harvest_board;

/** @brief What processes call a device: ordinals differ between them. */
using device_uuid = std::array<std::uint8_t, 16>;

/** @brief A board, or the reason for which there is none. */
struct opened_harvest_board {
  std::unique_ptr<harvest_board> board;  ///< null when not opened
  std::string reason;                    ///< why not and what to do, one sentence
};

/** @brief What one process says of one device's idle memory. */
struct harvest_entry {
  std::uint32_t process_id{0};  ///< as the process sees itself
  device_uuid device{};         ///< which device
  bool offers{false};           ///< its program runs there, and says what others may hold
  bool busy{false};             ///< it wants the links for itself
  std::size_t offered_bytes{0};
  harvest_holding holding;
};

/** @brief Everything that a board says at about one moment. */
struct harvest_view {
  availability readable;                 ///< no: there is no board, or none that can be read
  std::string path;                      ///< its file
  std::vector<std::uint32_t> processes;  ///< ids of those that have joined
  std::vector<harvest_entry> entries;    ///< what of theirs is not empty
};

/**
 * @brief Where processes of one user agree who may hold how much of which device's idle memory.
 *
 * A file in shared memory that all map. Each process has a place in it: a lock on a byte, which the
 * kernel drops however the process ends. What stands at a place that nobody has locked does not
 * count; so nothing is to be mended after a process was killed. An entry is one word, written
 * whole, and only by its own process; claims rise under one more lock of the file, so that two
 * never get the same bytes. They fall without it. A lock that does not come (its holder was
 * stopped) is not waited for longer than `patience_ms`: nothing is granted then.
 *
 * Reading takes a few loads; only what is not nothing is held against the locks, one system call a
 * process. Thread-safe, nothing throws but `open` and `look` without memory. In a forked child the
 * object is of no use: every call answers as for an empty board, and the parent's place stays its
 * own.
 */
class harvest_board {
 public:
  static constexpr std::size_t most_processes = 64;
  static constexpr std::size_t most_devices   = 16;
  static constexpr int patience_ms            = 50;
  static constexpr char const* usual_directory{"/dev/shm"};

  /** @brief Joins the board of this user; makes it if there is none. */
  [[nodiscard]] static opened_harvest_board open(std::string const& directory = usual_directory);
  /** @brief Reads the board of this user without joining it. */
  [[nodiscard]] static harvest_view look(std::string const& directory = usual_directory);

  ~harvest_board();
  harvest_board(harvest_board const&)            = delete;
  harvest_board& operator=(harvest_board const&) = delete;
  harvest_board(harvest_board&&)                 = delete;
  harvest_board& operator=(harvest_board&&)      = delete;

  /** @brief Whether others still see this process here. */
  [[nodiscard]] availability usable() const;

  // The owner's side: a program that runs on a device.
  /** @brief Lets others hold so much together from now on. @return whether it stands there */
  bool offer(device_uuid const& device, std::size_t bytes) noexcept;
  /** @brief Ends the offer: others go by free memory again. */
  void withdraw(device_uuid const& device) noexcept;
  /**
   * @brief Bytes that others hold there.
   *
   * While others claim and give back it is of no single moment. Once it is down to a lowered offer
   * it stays there: a claim that was under way got no more.
   */
  [[nodiscard]] std::size_t claimed_by_others(device_uuid const& device) const noexcept;
  /** @brief Says whether the device's links are busy. @return whether it stands there */
  bool set_busy(device_uuid const& device, bool busy_now) noexcept;

  // Budgets of one device that follow others: as `budget_sharing` says.
  bool share(device_uuid const& device, budget_share const& mine) noexcept;
  void end_share(device_uuid const& device) noexcept;
  [[nodiscard]] std::size_t shares_of_others(device_uuid const& device,
                                             std::span<budget_share> found) const noexcept;

  // The harvester's side: as `neighbor_lender` says.
  [[nodiscard]] std::size_t claim(device_uuid const& device,
                                  std::size_t bytes,
                                  std::size_t free_bytes,
                                  std::size_t reserve_bytes) noexcept;
  void placed(device_uuid const& device, std::size_t bytes) noexcept;
  void cancel(device_uuid const& device, std::size_t bytes) noexcept;
  void release(device_uuid const& device, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t held(device_uuid const& device) const noexcept;
  [[nodiscard]] std::size_t excess(device_uuid const& device,
                                   std::size_t shortage_bytes = 0) const noexcept;
  /** @brief Whether another process says that the device's links are busy. */
  [[nodiscard]] bool busy(device_uuid const& device) const noexcept;

 private:
  harvest_board(std::unique_ptr<board_file> file, std::size_t place) noexcept;
  [[nodiscard]] std::optional<std::size_t> find(device_uuid const& device) const noexcept;
  [[nodiscard]] std::optional<std::size_t> find_or_add(device_uuid const& device) noexcept;
  [[nodiscard]] std::optional<std::size_t> row_to_write(device_uuid const& device) noexcept;
  [[nodiscard]] bool joined(std::size_t process) const noexcept;
  void forget_the_gone(std::size_t device) noexcept;
  template <typename Change>
  bool change_offer(device_uuid const& device, Change const& change) noexcept;
  template <typename Change>
  void change_holding(device_uuid const& device, Change const& change) noexcept;

  std::unique_ptr<board_file> file_;
  std::size_t place_;
  ranked_mutex<lock_rank::board>
    mutex_;  // locks of the file do not keep threads of one process apart
};

}  // namespace rmm_uvm::ipc
