// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rmm_uvm::monitor {

/** @brief A hash with one more value. */
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept
{
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32U);
}

/** @brief Tells code objects apart by what they have in them. Needs no GIL. */
using code_contents = std::uint64_t (*)(std::uintptr_t code) noexcept;

/** @brief Where a function of Python is: its code object, and an instruction in it. */
struct code_place {
  std::uintptr_t code{0};
  std::size_t instruction{0};  ///< bytes from the first one
  std::uint64_t contents{0};   ///< of the code: what was made since may lie at the same address

  friend bool operator==(code_place const&, code_place const&) = default;
};

/** @brief A frame that Python itself told of. */
struct known_frame {
  std::uintptr_t object{0};  ///< of the type `frame`
  code_place place;
};

/** @brief Where an interpreter keeps what is read here, as offsets in bytes. */
struct frame_layout {
  std::size_t frame_in_state{0};
  std::optional<std::size_t> frame_in_holder;  ///< the state points to what points to the frame
  std::size_t code_in_frame{0};
  std::size_t previous_in_frame{0};
  std::size_t instruction_in_frame{0};
  std::size_t instructions_in_code{0};
  code_contents contents{nullptr};
  std::uintptr_t code_type{0};  ///< the type `code`
  std::uintptr_t own_code{0};   ///< of frames that the interpreter puts between; 0: none
};

/** @brief What Python tells of its type `code`. */
struct code_facts {
  std::uintptr_t type{0};
  std::size_t instructions{0};  ///< offset in a code object
  code_contents contents{nullptr};
};

/**
 * @brief Finds where this interpreter keeps frames, by those that are known.
 *
 * No version of Python is assumed, but for the beginning of objects and of the type `frame`.
 * @param state of this thread, which holds the GIL
 * @param known all frames of this thread, the innermost first, two at least
 * @return nothing where the frames are not found, or what is read does not agree with what is known
 */
[[nodiscard]] std::optional<frame_layout> find_layout(std::uintptr_t state,
                                                      std::span<known_frame const> known,
                                                      code_facts const& facts);

/**
 * @brief Reads the frames of a thread, the innermost first: some nanoseconds each.
 *
 * Needs no GIL, so that nobody waits: a thread that is outside of Python's code, as one that
 * allocates, is the only one that changes its own frames, and they keep their code.
 * @param state of the calling thread
 * @return how many were read
 */
[[nodiscard]] std::size_t read_frames(std::uintptr_t state,
                                      frame_layout const& layout,
                                      std::span<code_place> frames) noexcept;

}  // namespace rmm_uvm::monitor
