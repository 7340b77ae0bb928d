// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/python_frames.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmm_uvm::tests {

using words = std::array<std::uintptr_t, 16>;

template <typename object>
[[nodiscard]] std::uintptr_t address_of(object& of)
{
  return reinterpret_cast<std::uintptr_t>(&of);
}

/** @brief What Python keeps of a thread: a state, frames and code, laid out as nobody knows. */
class fake_interpreter {
 public:
  /** @param by_holder the state points to what points to the frame, as in Python 3.11 */
  explicit fake_interpreter(bool by_holder, std::size_t depth = 3) : frames_(depth), objects_(depth)
  {
    for (std::size_t i = 0; i < depth; ++i) {
      codes_.push_back({1, address_of(type_), 0x1000 + i});
    }
    for (std::size_t i = 0; i < depth; ++i) {
      auto& frame = frames_[i];
      frame[2]    = i + 1 < depth ? address_of(frames_[i + 1]) : 0;
      frame[5]    = address_of(codes_[i]);
      at(i, 2 * i);
      objects_[i][3] = address_of(frame);
    }
    holder_[1] = address_of(frames_[0]);
    state_[7]  = by_holder ? address_of(holder_) : address_of(frames_[0]);
    state_[1]  = 0x123456789;  // no address
  }

  /** @brief Puts frames of the interpreter's own before the outermost and after it, as 3.12 does.
   */
  void put_own_frames()
  {
    own_code_ = {1, address_of(type_)};
    for (auto& frame : own_frames_) {
      frame[5] = address_of(own_code_);
    }
    own_frames_[0][2]              = address_of(frames_.back());
    frames_[frames_.size() - 2][2] = address_of(own_frames_[0]);
    frames_.back()[2]              = address_of(own_frames_[1]);
  }
  /** @brief A frame is at another instruction from now on. */
  void at(std::size_t frame, std::size_t instruction)
  {
    frames_[frame][3] = address_of(codes_[frame]) + instructions + instruction;
    at_.resize(frames_.size());
    at_[frame] = instruction;
  }
  [[nodiscard]] std::vector<monitor::known_frame> known()
  {
    std::vector<monitor::known_frame> told;
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      told.push_back({address_of(objects_[i]), {address_of(codes_[i]), at_[i], codes_[i][2]}});
    }
    return told;
  }
  [[nodiscard]] std::optional<monitor::frame_layout> layout()
  {
    return monitor::find_layout(address_of(state_), known(), facts());
  }
  [[nodiscard]] monitor::code_facts facts()
  {
    return {address_of(type_), instructions, [](std::uintptr_t code) noexcept -> std::uint64_t {
              return (*reinterpret_cast<words const*>(code))[2];
            }};
  }
  [[nodiscard]] std::uintptr_t state() { return address_of(state_); }
  [[nodiscard]] words& code(std::size_t frame) { return codes_[frame]; }
  [[nodiscard]] words& frame(std::size_t number) { return frames_[number]; }

 private:
  static constexpr std::size_t instructions = 4 * sizeof(std::uintptr_t);  // in a code object

  words type_{};
  std::array<std::uintptr_t, 32> state_{};
  words holder_{};
  words own_code_{};
  std::array<words, 2> own_frames_{};
  std::vector<words> codes_;
  std::vector<words> frames_;
  std::vector<words> objects_;
  std::vector<std::size_t> at_;
};

}  // namespace rmm_uvm::tests
