// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "file_locks.hpp"
#include "forgotten_descriptor.hpp"

#include <rmm_uvm/ipc/lease_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

namespace rmm_uvm::ipc {
namespace {

static_assert(sizeof(lease_record) == 16);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);

constexpr off_t exporter_byte = 0;

[[nodiscard]] off_t byte_of_slot(std::size_t slot) noexcept { return static_cast<off_t>(1 + slot); }

}  // namespace

opened_lease_file lease_file::open(int descriptor, std::size_t slots) noexcept
{
  std::unique_ptr<forgotten_descriptor> file_descriptor{new (std::nothrow)
                                                          forgotten_descriptor{descriptor}};
  auto const refuse = [&](int error) {
    if (file_descriptor == nullptr) { ::close(descriptor); }
    return opened_lease_file{nullptr, error};
  };
  if (file_descriptor == nullptr) { return refuse(ENOMEM); }
  struct stat file{};
  if (::fstat(descriptor, &file) != 0) { return refuse(errno); }
  // Of a shorter one the end could not even be read.
  if (!std::cmp_equal(file.st_size, bytes_for(slots))) { return refuse(EINVAL); }
  void* const memory =
    ::mmap(nullptr, bytes_for(slots), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) { return refuse(errno); }  // NOLINT: the macro is a C cast
  // A mapping keeps the open file, and with it the locks: a child must have neither.
  static_cast<void>(::madvise(memory, bytes_for(slots), MADV_DONTFORK));
  std::unique_ptr<lease_file> made{new (std::nothrow)
                                     lease_file{std::move(file_descriptor), memory, slots}};
  if (made == nullptr) {
    ::munmap(memory, bytes_for(slots));
    return refuse(ENOMEM);
  }
  return {std::move(made), 0};
}

lease_file::lease_file(std::unique_ptr<forgotten_descriptor> descriptor,
                       void* memory,
                       std::size_t slots) noexcept
  : descriptor_{std::move(descriptor)}, memory_{memory}, slots_{slots}
{
}

lease_file::~lease_file()
{
  // A child does not have the mapping; by now others may be at its place.
  if (here()) { ::munmap(memory_, bytes_for(slots_)); }
}

bool lease_file::here() const noexcept { return descriptor_->here(); }

lease_record& lease_file::record(std::size_t slot) const noexcept
{
  auto* const first = static_cast<std::byte*>(memory_) + header_bytes;
  return *(reinterpret_cast<lease_record*>(first) + slot);
}

int lease_file::try_be_exporter() const noexcept
{
  return lock_byte(descriptor_->get(), F_OFD_SETLK, F_WRLCK, exporter_byte);
}

std::uint64_t lease_file::begin(std::size_t slot, std::uint32_t allowed) noexcept
{
  if (!here()) { return 0; }
  auto& found = record(slot);
  std::atomic_ref{found.opened}.store(0);
  std::atomic_ref{found.allowed}.store(allowed);
  return std::atomic_ref{found.generation}.load();
}

int lease_file::try_end(std::size_t slot) noexcept
{
  if (auto const taken = lock_byte(descriptor_->get(), F_OFD_SETLK, F_WRLCK, byte_of_slot(slot));
      taken != 0) {
    return taken;
  }
  std::atomic_ref{record(slot).generation}.fetch_add(1);
  return close_lease(slot);
}

int lease_file::is_open(std::size_t slot) const noexcept
{
  return held_elsewhere(descriptor_->get(), byte_of_slot(slot));
}

int lease_file::exporter_alive() const noexcept
{
  return held_elsewhere(descriptor_->get(), exporter_byte);
}

/** @brief Counts an opening; the slot is locked, so that its lease cannot end meanwhile. */
lease_answer lease_file::count_opening(std::size_t slot, std::uint64_t generation) noexcept
{
  auto& found = record(slot);
  if (std::atomic_ref{found.generation}.load() != generation) { return lease_answer::ended; }
  auto const allowed = std::atomic_ref{found.allowed}.load();
  std::atomic_ref opened{found.opened};
  auto so_far = opened.load();
  while (so_far < allowed) {
    if (opened.compare_exchange_weak(so_far, so_far + 1)) { return lease_answer::opened; }
  }
  return lease_answer::exhausted;
}

lease_answer lease_file::open_lease(std::size_t slot, std::uint64_t generation, bool again) noexcept
{
  if (!again && lock_byte(descriptor_->get(), F_OFD_SETLKW, F_RDLCK, byte_of_slot(slot)) != 0) {
    return lease_answer::failed;
  }
  auto const alive = exporter_alive();
  auto answer      = lease_answer::failed;
  if (alive == 0) { answer = lease_answer::exporter_gone; }
  if (alive == 1) { answer = count_opening(slot, generation); }
  if (answer != lease_answer::opened && !again) { static_cast<void>(close_lease(slot)); }
  return answer;
}

void lease_file::uncount(std::size_t slot) noexcept
{
  if (here()) { std::atomic_ref{record(slot).opened}.fetch_sub(1); }
}

int lease_file::close_lease(std::size_t slot) const noexcept
{
  return lock_byte(descriptor_->get(), F_OFD_SETLK, F_UNLCK, byte_of_slot(slot));
}

lease_record lease_file::read(std::size_t slot) const noexcept
{
  if (!here()) { return {}; }
  auto& found = record(slot);
  return {std::atomic_ref{found.generation}.load(),
          std::atomic_ref{found.opened}.load(),
          std::atomic_ref{found.allowed}.load()};
}

}  // namespace rmm_uvm::ipc
