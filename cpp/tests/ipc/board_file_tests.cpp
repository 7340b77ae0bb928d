// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Files that are no board: refused with a reason, and not written to.
#include "../../src/ipc/board_words.hpp"
#include "../support/board_directory.hpp"
#include "../support/other_process.hpp"

#include <rmm_uvm/ipc/harvest_board.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm::ipc {
namespace {

using tests::board_directory;
using tests::device_named;
using tests::plenty;
namespace fs = std::filesystem;

[[nodiscard]] std::string contents(std::string const& path)
{
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void write(std::string const& path, std::string const& bytes)
{
  std::ofstream{path, std::ios::binary} << bytes;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

class BoardFile : public testing::Test {
 protected:
  /** @brief Neither joined nor read, for a reason that says `words`; the file stays as it is. */
  void expect_refused(std::string const& words) const
  {
    auto const before = contents(directory.file());
    auto const opened = harvest_board::open(directory.path());
    EXPECT_EQ(opened.board, nullptr);
    EXPECT_NE(opened.reason.find(words), std::string::npos) << opened.reason;
    auto const view = harvest_board::look(directory.path());
    EXPECT_FALSE(view.readable.available);
    EXPECT_EQ(contents(directory.file()), before);
  }

  board_directory const directory;
};

TEST_F(BoardFile, NewOneIsForItsUserOnlyAndFoundAgain)
{
  auto const board = directory.join();
  ASSERT_NE(board, nullptr);
  struct stat file{};
  ASSERT_EQ(::stat(directory.file().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  EXPECT_NE(directory.join(), nullptr);
}

TEST_F(BoardFile, OneWhoseMakerWasKilledIsFinishedByTheNext)
{
  auto const length = [&] {
    static_cast<void>(directory.join());
    return contents(directory.file()).size();
  }();
  for (std::size_t const bytes : {std::size_t{0}, length}) {
    write(directory.file(), std::string(bytes, '\0'));
    auto const board = directory.join();
    ASSERT_NE(board, nullptr);
    EXPECT_TRUE(board->offer(device_named(1), 0));
    EXPECT_TRUE(harvest_board::look(directory.path()).readable.available);
  }
}

TEST_F(BoardFile, AnotherLengthIsRefused)
{
  write(directory.file(), "somebody's notes");
  expect_refused("has 16 bytes");
}

TEST_F(BoardFile, AnotherMagicOrVersionIsRefused)
{
  static_cast<void>(directory.join());
  auto bytes = contents(directory.file());
  bytes[0]   = 'x';
  write(directory.file(), bytes);
  expect_refused("is not a board of rmm-uvm");
  bytes[0] = 'U';
  bytes[8] = 3;
  write(directory.file(), bytes);
  expect_refused("is a board of version 3, not 2");
  bytes[8]  = 2;
  bytes[17] = 0;
  write(directory.file(), bytes);
  expect_refused("damaged");
}

/** @brief A board of version 1, as it stands in shared memory after an update. */
[[nodiscard]] std::string older_board()
{
  constexpr std::size_t length = 17216;
  std::string bytes(length, '\x55');
  bytes.replace(0, 8, "UVMBOARD");
  bytes.replace(8, 8, std::string{"\x01\0\0\0\0\0\0\0", 8});
  bytes.replace(16, 8, std::string{"\x40\x43\0\0\0\0\0\0", 8});
  return bytes;
}

TEST_F(BoardFile, OlderVersionThatNobodyUsesIsBegunAnew)
{
  write(directory.file(), older_board());
  auto const board = directory.join();
  ASSERT_NE(board, nullptr);
  EXPECT_TRUE(board->offer(device_named(1), 10 * va_block_bytes));
  auto const view = harvest_board::look(directory.path());
  ASSERT_TRUE(view.readable.available) << view.readable.reason;
  EXPECT_EQ(view.entries.size(), 1U);  // nothing of what stood there
  EXPECT_NE(directory.join(), nullptr);
}

TEST_F(BoardFile, OlderVersionWhoseEraserWasKilledIsBegunAnewByTheNext)
{
  constexpr auto length = sizeof(board_layout) / sizeof(board_word);
  for (auto const killed_at : {std::size_t{0},
                               std::size_t{1},
                               length / 2,
                               length - 4,
                               length - 3,
                               length - 2,
                               length - 1,
                               length}) {
    std::vector<board_word> words(length);
    auto bytes = older_board();
    std::memcpy(words.data(), bytes.data(), bytes.size());
    std::size_t erased = 0;
    erase_board(words, [&](board_word& word) {
      if (erased++ < killed_at) { word = 0; }
    });
    bytes.resize(sizeof(board_layout));
    std::memcpy(bytes.data(), words.data(), bytes.size());
    write(directory.file(), bytes);
    auto const opened = harvest_board::open(directory.path());
    ASSERT_NE(opened.board, nullptr) << killed_at << ": " << opened.reason;
    auto const view = harvest_board::look(directory.path());
    EXPECT_TRUE(view.readable.available) << killed_at << ": " << view.readable.reason;
    EXPECT_TRUE(view.entries.empty()) << killed_at;
  }
}

TEST_F(BoardFile, OlderVersionInUseIsRefused)
{
  write(directory.file(), older_board());
  int const descriptor = ::open(directory.file().c_str(), O_RDWR | O_CLOEXEC);
  struct flock place{};
  place.l_type   = F_WRLCK;
  place.l_whence = SEEK_SET;
  place.l_start  = 1;
  place.l_len    = 1;
  ASSERT_EQ(::fcntl(descriptor, F_OFD_SETLK, &place), 0);  // NOLINT: as a process that joined
  expect_refused("has 17216 bytes, a board of rmm-uvm 33600");
  ::close(descriptor);
  EXPECT_NE(directory.join(), nullptr);
}

TEST_F(BoardFile, DamagedEntriesOnlyTakeFromOthers)
{
  auto const length = [&] {
    static_cast<void>(directory.join());
    return contents(directory.file()).size();
  }();
  auto const owner    = directory.join();
  auto const claimant = directory.join();
  ASSERT_TRUE(owner->offer(device_named(1), 100 * va_block_bytes));
  // Entries of processes that have not joined: whatever stands there does not count.
  std::fstream file{directory.file(), std::ios::binary | std::ios::in | std::ios::out};
  file.seekp(static_cast<std::streamoff>(length) - 8);
  file << std::string(8, '\xff');
  file.seekp(24);  // more devices than there is room for
  file << std::string(8, '\xff');
  file.close();
  EXPECT_EQ(claimant->claim(device_named(1), 10 * va_block_bytes, plenty, 0), 10 * va_block_bytes);
  EXPECT_EQ(claimant->claim(device_named(9), va_block_bytes, 100 * va_block_bytes, 0), 0U);
  EXPECT_EQ(owner->claimed_by_others(device_named(1)), 10 * va_block_bytes);
  EXPECT_TRUE(harvest_board::look(directory.path()).readable.available);
}

TEST_F(BoardFile, LinkIsRefusedWhereverItLeads)
{
  auto const elsewhere = directory.path() + "/elsewhere";
  write(elsewhere, "notes");
  fs::create_symlink(elsewhere, directory.file());
  expect_refused("is a link");
  EXPECT_EQ(contents(elsewhere), "notes");
}

TEST_F(BoardFile, FolderAndPipeAreRefused)
{
  fs::create_directory(directory.file());
  EXPECT_EQ(harvest_board::open(directory.path()).board, nullptr);
  EXPECT_FALSE(harvest_board::look(directory.path()).readable.available);
  fs::remove(directory.file());
  ASSERT_EQ(::mkfifo(directory.file().c_str(), 0600), 0);
  EXPECT_NE(harvest_board::open(directory.path()).reason.find("is not a file"), std::string::npos);
  EXPECT_FALSE(harvest_board::look(directory.path()).readable.available);
}

TEST_F(BoardFile, OneThatOthersMayReadOrWriteIsRefused)
{
  static_cast<void>(directory.join());
  fs::permissions(directory.file(), fs::perms::group_read, fs::perm_options::add);
  expect_refused("is open to other users");
}

TEST_F(BoardFile, OneOfAnotherUserIsRefused)
{
  if (::geteuid() != 0) { GTEST_SKIP() << "only root can give files away"; }
  static_cast<void>(directory.join());
  ASSERT_EQ(::chown(directory.file().c_str(), 12345, 12345), 0);
  expect_refused("belongs to user 12345");
}

TEST_F(BoardFile, DirectoryThatDoesNotExistIsAReason)
{
  auto const opened = harvest_board::open(directory.path() + "/none");
  EXPECT_EQ(opened.board, nullptr);
  EXPECT_NE(opened.reason.find("No such file"), std::string::npos) << opened.reason;
}

TEST_F(BoardFile, NoRoomIsAReasonAndTheNextOneWithRoomMakesIt)
{
  tests::other_process const without_room{[&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit const most{4096, 4096};
    return ::setrlimit(RLIMIT_FSIZE, &most) == 0 &&
           harvest_board::open(directory.path()).reason.starts_with("no room for ");
  }};
  EXPECT_TRUE(without_room.succeeded());
  EXPECT_NE(directory.join(), nullptr);
}

TEST_F(BoardFile, OneThatStaysLockedIsAReasonAndNothingIsGranted)
{
  auto const board = directory.join();
  ASSERT_TRUE(board->offer(device_named(1), 10 * va_block_bytes));
  int const stopped = ::open(directory.file().c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_len  = 1;
  ASSERT_EQ(::fcntl(stopped, F_OFD_SETLK, &lock), 0);
  EXPECT_EQ(board->claim(device_named(1), va_block_bytes, plenty, 0), 0U);
  EXPECT_EQ(board->held(device_named(1)), 0U);  // reading waits for nobody
  EXPECT_NE(harvest_board::open(directory.path()).reason.find("stays locked"), std::string::npos);
  ::close(stopped);
  EXPECT_EQ(board->claim(device_named(1), va_block_bytes, plenty, 0), va_block_bytes);
}

TEST_F(BoardFile, OneThatWasRemovedGrantsNothingMore)
{
  auto const board = directory.join();
  ASSERT_TRUE(board->usable().available);
  fs::remove(directory.file());
  EXPECT_FALSE(board->usable().available);
  EXPECT_NE(board->usable().reason.find("removed"), std::string::npos);
  EXPECT_EQ(board->claim(device_named(1), va_block_bytes, 100 * va_block_bytes, 0), 0U);
  EXPECT_FALSE(board->offer(device_named(1), va_block_bytes));
}

}  // namespace
}  // namespace rmm_uvm::ipc
