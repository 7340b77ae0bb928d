// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rmm_uvm::replay {

/** @brief What a recorded program did. */
enum class event_kind : std::uint8_t {
  allocate = 0,  ///< took memory from its pool
  free     = 1,  ///< gave it back
  touch    = 2   ///< read, or read and wrote it
};

inline constexpr std::uint8_t writes     = 1;  ///< flag of a touch
inline constexpr std::uint8_t by_the_cpu = 2;  ///< flag of a touch; otherwise by a kernel

/** @brief One event of a recorded program, as Python's `REPLAY_DTYPE` lays it out. */
struct replay_event {
  event_kind kind{event_kind::allocate};  ///< anything else is refused
  std::uint8_t flags{0};                  ///< of a touch
  std::uint16_t stage{0};                 ///< index of the stage that it belongs to
  std::uint32_t reserved{0};              ///< not read
  std::uint64_t address{0};               ///< recorded address of the first byte
  std::uint64_t bytes{0};                 ///< length; of a free too
  std::uint64_t time_ns{0};               ///< since the recording began
};
static_assert(sizeof(replay_event) == 32);

}  // namespace rmm_uvm::replay
