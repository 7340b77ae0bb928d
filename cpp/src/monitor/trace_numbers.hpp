// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmm_uvm::monitor {

/** @brief Most bytes of one number: seven bits a byte. */
inline constexpr std::size_t longest_number_bytes = 10;

/** @brief Writes a number, seven bits a byte, low bits first. @return one past its last byte */
inline std::uint8_t* put_number(std::uint8_t* cursor, std::uint64_t value) noexcept
{
  while (value >= 0x80U) {
    *cursor++ = static_cast<std::uint8_t>(value | 0x80U);
    value >>= 7U;
  }
  *cursor++ = static_cast<std::uint8_t>(value);
  return cursor;
}

/** @brief Signed to unsigned so that small magnitudes stay small. */
[[nodiscard]] constexpr std::uint64_t zigzag(std::uint64_t difference) noexcept
{
  return (difference << 1U) ^ (std::uint64_t{0} - (difference >> 63U));
}
/** @brief The reverse of `zigzag`. */
[[nodiscard]] constexpr std::uint64_t unzigzag(std::uint64_t value) noexcept
{
  return (value >> 1U) ^ (std::uint64_t{0} - (value & 1U));
}

/**
 * @brief A number that mostly ends in `bits` zero bits, without them; its lowest bit says whether
 *        they were left out. The value has to have a spare bit at its top.
 */
[[nodiscard]] constexpr std::uint64_t shorten(std::uint64_t value, unsigned bits) noexcept
{
  auto const rest = value & ((std::uint64_t{1} << bits) - 1U);
  return rest == 0 ? (value >> bits) << 1U : (value << 1U) | 1U;
}
/** @brief The reverse of `shorten`. */
[[nodiscard]] constexpr std::uint64_t lengthen(std::uint64_t value, unsigned bits) noexcept
{
  return (value & 1U) != 0 ? value >> 1U : (value >> 1U) << bits;
}

/** @brief RMM aligns allocations to 256 bytes, so that most addresses end in eight zero bits. */
inline constexpr unsigned address_zero_bits = 8;
/** @brief `shorten` for the difference of two addresses below 2^62. */
[[nodiscard]] constexpr std::uint64_t shorten_address(std::uint64_t difference) noexcept
{
  constexpr std::uint64_t mask = (std::uint64_t{1} << address_zero_bits) - 1U;
  if ((difference & mask) != 0) { return (zigzag(difference) << 1U) | 1U; }
  auto const units = static_cast<std::int64_t>(difference) >> address_zero_bits;
  return zigzag(static_cast<std::uint64_t>(units)) << 1U;
}
/** @brief The reverse of `shorten_address`. */
[[nodiscard]] constexpr std::uint64_t lengthen_address(std::uint64_t value) noexcept
{
  auto const difference = unzigzag(value >> 1U);
  return (value & 1U) != 0 ? difference : difference << address_zero_bits;
}
/** @brief Most sizes are a number of values of eight bytes. */
inline constexpr unsigned size_zero_bits = 3;

/** @brief Where the next allocation begins if the pool cuts them off one after the other. */
[[nodiscard]] constexpr std::uint64_t address_after(memory_range range) noexcept
{
  constexpr std::uint64_t mask = (std::uint64_t{1} << address_zero_bits) - 1U;
  return (std::uint64_t{range.address} + range.bytes + mask) & ~mask;
}

/** @brief Reads numbers from bytes of which nothing is known; never reads past their end. */
class number_reader {
 public:
  explicit number_reader(std::span<std::uint8_t const> bytes) noexcept : bytes_{bytes} {}

  [[nodiscard]] bool at_end() const noexcept { return position_ == bytes_.size(); }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - position_; }

  /** @brief Reads a number. @return false if it has no end or more than 64 bits */
  [[nodiscard]] bool number(std::uint64_t& value) noexcept
  {
    value = 0;
    for (unsigned shift = 0; shift < 64 && position_ < bytes_.size(); shift += 7) {
      std::uint64_t const byte = bytes_[position_++];
      if (shift == 63 && byte > 1) { return false; }
      value |= (byte & 0x7fU) << shift;
      if (byte < 0x80U) { return true; }
    }
    return false;
  }

  /** @brief Takes `count` bytes. @pre count <= left() */
  [[nodiscard]] std::span<std::uint8_t const> take(std::size_t count) noexcept
  {
    auto const taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

 private:
  std::span<std::uint8_t const> bytes_;
  std::size_t position_{0};
};

}  // namespace rmm_uvm::monitor
