// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "board_file.hpp"

#include "board_words.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace rmm_uvm::ipc {
namespace {

constexpr off_t claims_byte = 0;  // locked while claims rise, or somebody joins

[[nodiscard]] off_t byte_of_process(std::size_t process) noexcept
{
  return static_cast<off_t>(1 + process);
}

[[nodiscard]] board_file::opened refused(std::string reason)
{
  return {nullptr, std::move(reason), false};
}

[[nodiscard]] std::string text_of(int error) { return std::generic_category().message(error); }

/** @brief Why a file cannot be ours, or nothing. It was not written to. */
[[nodiscard]] std::string wrong_with(struct stat const& file, std::string const& path)
{
  if (!S_ISREG(file.st_mode)) { return path + " is not a file: remove it"; }
  if (file.st_uid != ::geteuid()) {
    return path + " belongs to user " + std::to_string(file.st_uid) + ", not to " +
           std::to_string(::geteuid()) + ": its owner has to remove it";
  }
  if ((file.st_mode & 077U) != 0) { return path + " is open to other users: remove it"; }
  return {};
}

/** @brief Why what is in a file is no board of this version, or nothing. */
[[nodiscard]] std::string wrong_with(board_layout& content, std::string const& path)
{
  if (load(content.magic) != board_layout::right_magic ||
      load(content.bytes) != sizeof(board_layout)) {
    return path +
           " is not a board of rmm-uvm, or a damaged one: end the programs that use it, and "
           "remove it";
  }
  if (load(content.version) != board_layout::right_version) {
    return path + " is a board of version " + std::to_string(content.version) + ", not " +
           std::to_string(board_layout::right_version) +
           ": use one version of rmm-uvm for all programs, or end those of the other and remove it";
  }
  return {};
}

/** @brief Why a file of another length is none, if it is. */
[[nodiscard]] std::string wrong_length(off_t bytes, std::string const& path)
{
  if (std::cmp_equal(bytes, sizeof(board_layout))) { return {}; }
  return path + " has " + std::to_string(bytes) + " bytes, a board of rmm-uvm " +
         std::to_string(sizeof(board_layout)) + ": end the programs that use it, and remove it";
}

[[nodiscard]] std::string cannot_open(int error, std::string const& path)
{
  if (error == ELOOP) { return path + " is a link, which another user may have made: remove it"; }
  return path + " cannot be opened: " + text_of(error) +
         "; without it, processes cannot agree about idle memory of devices";
}

/**
 * @brief Whether a file is a board of an older version that no process has joined.
 *
 * A board stays in shared memory until the machine starts anew, so a new version finds it there.
 * @pre nobody else has the claims locked: whoever joins waits
 */
[[nodiscard]] bool left_by_older(int descriptor, off_t bytes) noexcept
{
  std::array<board_word, 3> head{};  // magic, version, bytes
  if (std::cmp_greater(bytes, sizeof(board_layout))) { return false; }
  if (::pread(descriptor, head.data(), sizeof(head), 0) != sizeof(head)) { return false; }
  bool const is_board = head[0] == board_layout::right_magic;
  bool const is_older = head[1] < board_layout::right_version && head[2] < sizeof(board_layout);
  if (!is_board || !is_older) { return false; }
  for (std::size_t process = 0; process < harvest_board::most_processes; ++process) {
    if (held_elsewhere(descriptor, byte_of_process(process)) != 0) { return false; }
  }
  return true;
}

/** @brief Whether nothing was written to a file yet, or not all: its maker was killed. */
[[nodiscard]] bool unfinished(board_layout& content) noexcept
{
  return load(content.magic) == 0 && load(content.devices) == 0;
}

}  // namespace

std::string board_file::path_in(std::string const& directory)
{
  return directory + "/rmm_uvm-board-" + std::to_string(::geteuid());
}

board_file::opened board_file::map(int descriptor, std::string const& path, int protection)
{
  void* const memory = ::mmap(nullptr, sizeof(board_layout), protection, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {  // NOLINT: the macro is a C cast
    auto const error = errno;
    ::close(descriptor);
    return refused(path + " cannot be mapped: " + text_of(error));
  }
  // A mapping keeps the open file, and with it the locks: a child must have neither.
  static_cast<void>(::madvise(memory, sizeof(board_layout), MADV_DONTFORK));
  opened made;
  made.file.reset(new board_file{descriptor, memory});
  return made;
}

board_file::opened board_file::join(std::string const& directory)
{
  auto const path      = path_in(directory);
  auto const flags     = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  int const descriptor = ::open(path.c_str(), flags, 0600);
  if (descriptor < 0) { return refused(cannot_open(errno, path)); }
  auto const refuse = [&](std::string reason) {
    ::close(descriptor);
    return refused(std::move(reason));
  };
  struct stat file{};
  if (::fstat(descriptor, &file) != 0) { return refuse(cannot_open(errno, path)); }
  if (auto reason = wrong_with(file, path); !reason.empty()) { return refuse(std::move(reason)); }
  // Who makes it, or finds that its maker was killed, finishes it under the lock: others wait.
  constexpr int opening_patience_ms = 2000;
  auto taken                        = -EAGAIN;
  for (int waited_ms = 0; taken == -EAGAIN && waited_ms < opening_patience_ms; ++waited_ms) {
    taken = lock_byte(descriptor, F_OFD_SETLK, F_WRLCK, claims_byte);
    if (taken == -EAGAIN) { std::this_thread::sleep_for(std::chrono::milliseconds{1}); }
  }
  if (taken == -EAGAIN) {
    return refuse(path + " stays locked: continue or end the process that was stopped");
  }
  if (taken != 0) { return refuse(path + " cannot be locked: " + text_of(-taken)); }
  if (::fstat(descriptor, &file) != 0) { return refuse(cannot_open(errno, path)); }
  bool const renews = left_by_older(descriptor, file.st_size);
  if (file.st_size == 0 || renews) {
    // Not only its length: without room a write to mapped memory would end the process.
    auto const error = ::posix_fallocate(descriptor, 0, sizeof(board_layout));
    if (error != 0) { return refuse("no room for " + path + ": " + text_of(error)); }
  } else if (auto reason = wrong_length(file.st_size, path); !reason.empty()) {
    return refuse(std::move(reason));
  }
  auto made = map(descriptor, path, PROT_READ | PROT_WRITE);
  if (made.file == nullptr) { return made; }
  auto& content = made.file->content();
  if (renews) {
    auto* const words = static_cast<board_word*>(made.file->memory_);
    erase_board({words, sizeof(board_layout) / sizeof(board_word)},
                [](board_word& word) { std::atomic_ref{word}.store(0); });
  }
  if (unfinished(content)) {
    std::atomic_ref{content.version}.store(board_layout::right_version);
    std::atomic_ref{content.bytes}.store(sizeof(board_layout));
    std::atomic_ref{content.magic}.store(board_layout::right_magic);
  }
  if (auto reason = wrong_with(content, path); !reason.empty()) {
    return refused(std::move(reason));
  }
  return made;
}

board_file::opened board_file::look(std::string const& directory)
{
  auto const path      = path_in(directory);
  int const descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ENOENT) {
      return {nullptr, path + " does not exist: no process has joined a board", true};
    }
    return refused(cannot_open(errno, path));
  }
  struct stat file{};
  auto const failed = ::fstat(descriptor, &file) != 0;
  auto reason       = failed ? cannot_open(errno, path) : wrong_with(file, path);
  if (reason.empty()) { reason = wrong_length(file.st_size, path); }
  if (!reason.empty()) {
    ::close(descriptor);
    return refused(std::move(reason));
  }
  auto made = map(descriptor, path, PROT_READ);
  if (made.file == nullptr) { return made; }
  if (reason = wrong_with(made.file->content(), path); !reason.empty()) {
    return refused(std::move(reason));
  }
  return made;
}

board_file::~board_file()
{
  // A child does not have the mapping; by now others may be at its place.
  if (here()) { ::munmap(memory_, sizeof(board_layout)); }
}

bool board_file::removed() const noexcept
{
  struct stat file{};
  return ::fstat(descriptor_.get(), &file) != 0 || file.st_nlink == 0;
}

bool board_file::lock(int patience_ms) const noexcept
{
  using std::chrono::steady_clock;
  auto const until = steady_clock::now() + std::chrono::milliseconds{patience_ms};
  while (true) {
    auto const taken = lock_byte(descriptor_.get(), F_OFD_SETLK, F_WRLCK, claims_byte);
    if (taken != -EAGAIN) { return taken == 0; }
    if (steady_clock::now() >= until) { return false; }
    std::this_thread::sleep_for(std::chrono::microseconds{20});
  }
}

void board_file::unlock() const noexcept
{
  static_cast<void>(lock_byte(descriptor_.get(), F_OFD_SETLK, F_UNLCK, claims_byte));
}

int board_file::take(std::size_t process) const noexcept
{
  return lock_byte(descriptor_.get(), F_OFD_SETLK, F_WRLCK, byte_of_process(process));
}

bool board_file::taken(std::size_t process) const noexcept
{
  // Where the kernel does not say, it counts: others then get less, never more.
  return held_elsewhere(descriptor_.get(), byte_of_process(process)) != 0;
}

}  // namespace rmm_uvm::ipc
