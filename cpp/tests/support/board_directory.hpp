// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/ipc/harvest_board.hpp>

#include <stdlib.h>  // NOLINT: mkdtemp is POSIX's
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace rmm_uvm::tests {

/** @brief Free memory that decides nothing beside an offer. */
inline constexpr std::size_t plenty = std::size_t{1} << 40U;

/** @brief A directory for a board, removed with what is in it. */
class board_directory {
 public:
  board_directory() : path_{"/tmp/rmm_uvm-board-tests-XXXXXX"}
  {
    if (::mkdtemp(path_.data()) == nullptr) { path_.clear(); }
  }
  ~board_directory() { std::filesystem::remove_all(path_); }
  board_directory(board_directory const&)            = delete;
  board_directory& operator=(board_directory const&) = delete;
  board_directory(board_directory&&)                 = delete;
  board_directory& operator=(board_directory&&)      = delete;

  [[nodiscard]] std::string const& path() const { return path_; }
  [[nodiscard]] std::string file() const
  {
    return path_ + "/rmm_uvm-board-" + std::to_string(::geteuid());
  }
  /** @brief Joins as a process of its own would. */
  [[nodiscard]] std::unique_ptr<ipc::harvest_board> join() const
  {
    return ipc::harvest_board::open(path_).board;
  }

 private:
  std::string path_;
};

/** @brief A name of a device. */
[[nodiscard]] inline ipc::device_uuid device_named(std::uint8_t number)
{
  ipc::device_uuid uuid{};
  uuid.back() = number;
  return uuid;
}

}  // namespace rmm_uvm::tests
