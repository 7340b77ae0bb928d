// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "file_locks.hpp"
#include "forgotten_descriptor.hpp"

#include <rmm_uvm/ipc/harvest_board.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace rmm_uvm::ipc {

/** @brief One word that processes share: read and written whole, so there is no half of a change.
 */
using board_word = std::uint64_t;
static_assert(std::atomic_ref<board_word>::is_always_lock_free);

/** @brief What is in a board file. By device first: who sums over processes reads few lines. */
struct board_layout {
  static constexpr board_word right_magic   = 0x4452414f424d5655;  // "UVMBOARD" in the file
  static constexpr board_word right_version = 2;

  template <typename T>
  using by_process = std::array<T, harvest_board::most_processes>;
  template <typename T>
  using by_device = std::array<T, harvest_board::most_devices>;

  board_word magic;    // written last: a file without it was not finished
  board_word version;  // of this layout
  board_word bytes;    // of the file
  board_word devices;  // rows in use, from the first
  std::array<board_word, 4> reserved;
  by_device<std::array<board_word, 2>> uuids;
  by_process<board_word> processes;  // their ids, each as it sees itself; for people only
  by_device<by_process<board_word>> offers;
  by_device<by_process<board_word>> claims;
  by_device<by_process<board_word>> wants;  // of budgets that follow, since version 2
  by_device<by_process<board_word>> holds;
};

/** @brief A board file, mapped, and the locks of one owner on it. */
class board_file {
 public:
  /** @brief What became of an attempt to open one. */
  struct opened {
    std::unique_ptr<board_file> file;  ///< null when not opened
    std::string reason;                ///< why not, one sentence
    bool missing{false};               ///< there is none
  };

  /** @brief Opens the file, and makes it where there is none; nobody else has it locked so. */
  [[nodiscard]] static opened join(std::string const& directory);
  /** @brief Opens a file that is there, to read it. */
  [[nodiscard]] static opened look(std::string const& directory);
  /** @brief The file of this user. */
  [[nodiscard]] static std::string path_in(std::string const& directory);

  ~board_file();
  board_file(board_file const&)            = delete;
  board_file& operator=(board_file const&) = delete;
  board_file(board_file&&)                 = delete;
  board_file& operator=(board_file&&)      = delete;

  /** @brief False in a forked child of the process that opened it. */
  [[nodiscard]] bool here() const noexcept { return descriptor_.here(); }
  /** @brief Whether others can still find it. */
  [[nodiscard]] bool removed() const noexcept;

  /** @brief Takes the lock under which claims rise. @return whether it came in time */
  [[nodiscard]] bool lock(int patience_ms) const noexcept;
  void unlock() const noexcept;

  /** @brief Takes a process' place. @return 0, or -EAGAIN where another has it */
  [[nodiscard]] int take(std::size_t process) const noexcept;
  /** @brief Whether another process has a place. */
  [[nodiscard]] bool taken(std::size_t process) const noexcept;

  /** @brief What is in it. @pre `here`: a child does not have it */
  [[nodiscard]] board_layout& content() const noexcept
  {
    return *static_cast<board_layout*>(memory_);
  }

 private:
  board_file(int descriptor, void* memory) noexcept : descriptor_{descriptor}, memory_{memory} {}
  [[nodiscard]] static opened map(int descriptor, std::string const& path, int protection);

  forgotten_descriptor descriptor_;
  void* memory_;
};

}  // namespace rmm_uvm::ipc
