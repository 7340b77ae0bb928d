// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/trace_format.hpp>

namespace rmm_uvm::monitor {
namespace {

constexpr std::size_t stride = 8;
using crc_tables             = std::array<std::array<std::uint32_t, 256>, stride>;

// tables[k][b] is the sum of byte b followed by k zero bytes: eight bytes are summed up at once.
constexpr crc_tables make_tables() noexcept
{
  constexpr std::uint32_t polynomial = 0xedb88320;  // of CRC-32, bits reversed
  crc_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto sum = byte;
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? polynomial : 0U);
    }
    tables[0][byte] = sum;
  }
  for (std::size_t zeros = 1; zeros < stride; ++zeros) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      auto const shorter  = tables[zeros - 1][byte];
      tables[zeros][byte] = (shorter >> 8U) ^ tables[0][shorter & 0xffU];
    }
  }
  return tables;
}

constexpr crc_tables tables = make_tables();

}  // namespace

std::uint32_t trace_crc32(std::span<std::uint8_t const> bytes, std::uint32_t previous) noexcept
{
  auto sum = ~previous;
  for (; bytes.size() >= stride; bytes = bytes.subspan(stride)) {
    std::uint32_t next = 0;
    for (std::size_t index = 0; index < stride; ++index) {
      auto byte = std::uint32_t{bytes[index]};
      if (index < sizeof(sum)) { byte ^= (sum >> (8U * index)) & 0xffU; }
      next ^= tables[stride - 1 - index][byte];
    }
    sum = next;
  }
  for (auto const byte : bytes) {
    sum = (sum >> 8U) ^ tables[0][(sum ^ byte) & 0xffU];
  }
  return ~sum;
}

}  // namespace rmm_uvm::monitor
