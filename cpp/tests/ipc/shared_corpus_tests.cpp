// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Harvest boards and lease tables in which other processes wrote anything: the fuzzer's kept inputs
// and changes of them; the sanitizers watch. tests/fuzz/ has the forms of the inputs.
#include "../support/board_directory.hpp"
#include "../support/changed_inputs.hpp"

#include <rmm_uvm/ipc/harvest_board.hpp>
#include <rmm_uvm/ipc/lease_file.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rmm_uvm::ipc {
namespace {

using tests::byte_string;
using tests::number_at;

/** @brief Writes bytes at a place of a file. */
void write_at(int descriptor, std::span<std::uint8_t const> bytes, std::size_t place)
{
  ASSERT_EQ(::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(place)),
            static_cast<ssize_t>(bytes.size()));
}

/** @brief What is left of an input from a place on. */
[[nodiscard]] std::span<std::uint8_t const> rest_of(byte_string const& data, std::size_t place)
{
  return std::span{data}.subspan(std::min(place, data.size()));
}

/** @brief The board's file, open for writing as another process of the user has it. */
class written_board {
 public:
  explicit written_board(tests::board_directory const& directory)
    : descriptor_{::open(directory.file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)}
  {
  }
  ~written_board() { ::close(descriptor_); }
  written_board(written_board const&)            = delete;
  written_board& operator=(written_board const&) = delete;
  written_board(written_board&&)                 = delete;
  written_board& operator=(written_board&&)      = delete;

  void write(std::span<std::uint8_t const> bytes, std::size_t place) const
  {
    write_at(descriptor_, bytes, place);
  }
  void resize(std::size_t bytes) const
  {
    ASSERT_EQ(::ftruncate(descriptor_, static_cast<off_t>(bytes)), 0);
  }

 private:
  int descriptor_;
};

[[nodiscard]] std::size_t board_bytes()
{
  tests::board_directory const directory;
  auto const joined = directory.join();
  return std::filesystem::file_size(directory.file());
}

/** @brief Looks at a board as tools do. @return its devices, and one that is not there */
[[nodiscard]] std::vector<device_uuid> devices_seen(tests::board_directory const& directory)
{
  auto const view = harvest_board::look(directory.path());
  EXPECT_TRUE(view.readable.available || !view.readable.reason.empty());
  EXPECT_LE(view.processes.size(), harvest_board::most_processes);
  EXPECT_LE(view.entries.size(), harvest_board::most_processes * harvest_board::most_devices);
  std::vector<device_uuid> found{tests::device_named(255)};
  for (auto const& entry : view.entries) {
    EXPECT_LE(entry.holding.coming_bytes, entry.holding.claimed_bytes);
    found.push_back(entry.device);
  }
  return found;
}

/**
 * @brief Does what the steps say with a board; each is two bytes and three numbers.
 * @return claims that were granted something
 */
std::size_t take_part(harvest_board& board,
                      std::vector<device_uuid> const& devices,
                      byte_string const& data,
                      std::size_t place)
{
  constexpr std::size_t step_bytes = 26;
  std::size_t granted              = 0;
  for (int steps = 0; steps < 40 && place + step_bytes <= data.size(); ++steps) {
    auto const& device = devices[data[place + 1] % devices.size()];
    auto const bytes   = number_at<std::uint64_t>(data, place + 2);
    auto const free    = number_at<std::uint64_t>(data, place + 10);
    auto const reserve = number_at<std::uint64_t>(data, place + 18);
    switch (data[place] % 8) {
      case 0:
      case 1: {
        auto const got = board.claim(device, bytes, free, reserve);
        EXPECT_LE(got, bytes);
        granted += got != 0 ? 1 : 0;
        break;
      }
      case 2: board.offer(device, bytes); break;
      case 3: board.withdraw(device); break;
      case 4: board.placed(device, bytes); break;
      case 5: board.cancel(device, bytes); break;
      case 6: board.release(device, bytes); break;
      default: board.set_busy(device, bytes % 2 == 1);
    }
    static_cast<void>(board.claimed_by_others(device));
    static_cast<void>(board.busy(device));
    EXPECT_LE(board.excess(device, bytes), board.held(device));
    place += step_bytes;
  }
  return granted;
}

/**
 * @brief One input: a file that lies there, or words written over in a board that is in use.
 * @return claims that were granted something
 */
std::size_t read_board(byte_string const& data, std::size_t right_bytes)
{
  tests::board_directory const directory;
  auto const kind = data.empty() ? 'f' : static_cast<char>(data[0]);
  std::vector<std::unique_ptr<harvest_board>> joined;
  std::size_t steps = 1;
  if (kind == 'w') {
    for (int process = 0; process < 3; ++process) {
      joined.push_back(directory.join());
    }
    constexpr std::size_t patch_bytes = 10;
    written_board const file{directory};
    steps = 2;
    for (auto left = data.size() > 1 ? data[1] : 0; left > 0; --left) {
      if (steps + patch_bytes > data.size()) { break; }
      auto const word = number_at<std::uint16_t>(data, steps) % (right_bytes / 8);
      file.write(rest_of(data, steps + 2).first(8), 8 * word);
      steps += patch_bytes;
    }
  } else {
    auto const content = rest_of(data, 1);
    written_board const file{directory};
    file.write(kind == 's' ? content.first(std::min(content.size(), right_bytes)) : content, 0);
    if (kind == 's') { file.resize(right_bytes); }
  }
  auto const devices = devices_seen(directory);
  if (joined.empty()) { joined.push_back(directory.join()); }
  auto& mine = joined[joined.size() / 2];
  if (mine == nullptr) { return 0; }
  auto const granted = take_part(*mine, devices, data, steps);
  static_cast<void>(devices_seen(directory));
  return granted;
}

TEST(SharedCorpus, ChangedHarvestBoardsBreakNobody)
{
  auto const right_bytes = board_bytes();
  std::size_t granted    = 0;
  for (auto const& kept : tests::kept_inputs("harvest-board")) {
    tests::read_changed(
      kept, 60, [&](byte_string const& data) { granted += read_board(data, right_bytes); });
  }
  EXPECT_GT(granted, 0U);  // not all are refused at the door
}

#ifdef __SANITIZE_ADDRESS__
TEST(SharedCorpus, IndexPastTheEndOfABoardWouldBeSeen)  // the twin
{
  std::array<std::array<std::uint64_t, 2>, 2> const rows{};
  std::size_t volatile row = rows.size();
  EXPECT_DEATH(static_cast<void>(rows[row][0]), "");  // the library tells it on the other stream
}
#endif

constexpr std::size_t slots = 508;  // as tables have them: the mapping ends with its last record

/** @brief A table in memory: a header, records that the input names, or whatever it says. */
[[nodiscard]] int made_table(byte_string const& data, std::size_t& steps)
{
  constexpr std::size_t head_bytes   = 16;
  constexpr std::size_t record_bytes = 18;
  auto const table                   = ::memfd_create("leases", MFD_CLOEXEC);
  auto const rest                    = rest_of(data, 1);
  if (data.empty() || (data[0] != 'l' && data[0] != 'd')) {
    write_at(table, rest, 0);
    steps = data.size();
    return table;
  }
  EXPECT_EQ(::ftruncate(table, static_cast<off_t>(lease_file::bytes_for(slots))), 0);
  write_at(table, rest.first(std::min(rest.size(), head_bytes)), 0);
  steps = 1 + head_bytes + 1;
  for (auto left = steps <= data.size() ? data[steps - 1] : 0; left > 0; --left) {
    if (steps + record_bytes > data.size()) { break; }
    auto const slot = number_at<std::uint16_t>(data, steps) % slots;
    write_at(table, rest_of(data, steps + 2).first(16), lease_file::bytes_for(slot));
    steps += record_bytes;
  }
  return table;
}

/** @brief Opens a lease, and knows beforehand whether it opens. @return whether it did */
bool open_one(lease_file& table, std::size_t slot, std::uint64_t generation, bool alive, bool again)
{
  auto const before = table.read(slot);
  auto const opens  = alive && before.generation == generation && before.opened < before.allowed;
  auto const answer = table.open_lease(slot, generation, again);
  EXPECT_EQ(answer == lease_answer::opened, opens);
  EXPECT_EQ(table.read(slot).opened, before.opened + (opens ? 1U : 0U));
  return opens;
}

/** @brief Opens and closes leases as the steps of an input say. @return how many opened */
std::size_t read_table(byte_string const& data)
{
  std::size_t steps   = 0;
  auto const made     = made_table(data, steps);
  auto const path     = "/proc/self/fd/" + std::to_string(made);
  auto const opening  = [&path] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); };
  auto const table    = lease_file::open(opening(), slots);
  auto const exporter = lease_file::open(opening(), slots);
  ::close(made);
  if (table.file == nullptr) { return 0; }
  auto const alive = data[0] == 'l' && exporter.file->try_be_exporter() == 0;
  EXPECT_EQ(table.file->exporter_alive(), alive ? 1 : 0);
  std::vector<bool> held(slots);
  std::size_t opened               = 0;
  constexpr std::size_t step_bytes = 11;
  for (int count = 0; count < 60 && steps + step_bytes <= data.size(); ++count) {
    auto const slot = number_at<std::uint16_t>(data, steps + 1) % slots;
    if (data[steps] % 4 < 2) {
      opened +=
        open_one(*table.file, slot, number_at<std::uint64_t>(data, steps + 3), alive, held[slot])
          ? 1
          : 0;
      held[slot] = exporter.file->is_open(slot) == 1;
    } else {
      if (data[steps] % 4 == 3) { table.file->uncount(slot); }
      EXPECT_EQ(table.file->close_lease(slot), 0);
      held[slot] = false;
    }
    steps += step_bytes;
  }
  return opened;
}

TEST(SharedCorpus, ChangedLeaseTablesOpenLeasesOnlyAsOftenAsTheySay)
{
  std::size_t opened = 0;
  for (auto const& kept : tests::kept_inputs("lease-table")) {
    tests::read_changed(
      kept, 300, [&opened](byte_string const& data) { opened += read_table(data); });
  }
  EXPECT_GT(opened, 0U);
}

}  // namespace
}  // namespace rmm_uvm::ipc
