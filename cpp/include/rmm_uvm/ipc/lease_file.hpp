// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rmm_uvm::ipc {

/** @brief What a lease file says of one slot; shared by processes. */
struct lease_record {
  std::uint64_t generation{0};  ///< which of the slot's leases it is; rises when one ends
  std::uint32_t opened{0};      ///< openings so far
  std::uint32_t allowed{0};     ///< openings that there may be
};

/** @brief What became of an attempt to open a lease. */
enum class lease_answer : std::uint8_t {
  opened,         ///< it is open, and does not end before `close_lease`
  exporter_gone,  ///< nobody holds the file as its exporter
  ended,          ///< the slot holds another lease by now
  exhausted,      ///< it was opened as often as it may
  failed          ///< the system refused a lock
};

class forgotten_descriptor;
class lease_file;

/** @brief A lease file, or the errno for which there is none. */
struct opened_lease_file {
  std::unique_ptr<lease_file> file;  ///< null when not opened
  int error{0};                      ///< errno, 0 when opened
};

/**
 * @brief A file that exporter and readers map, and on whose bytes they hold locks.
 *
 * The mapping tells how often a lease was opened; locks tell who lives, since the kernel lets go of
 * them when a process ends. They are Linux' locks of open file descriptions: all of one object are
 * one owner, and they may lie past the end of the file. Byte 0 is held by the exporter as long as
 * it has its pool, byte 1 + slot by readers, together, while they have the slot's lease open, and
 * by the exporter for a moment to end it.
 *
 * What fails answers a negative errno; nothing throws. A forked child has neither the mapping nor a
 * lock: `here` says so, what it calls fails, and what it reads is empty. Thread-safe, except that
 * threads of one process are not kept apart by locks: opening one slot twice at a time is for the
 * caller to count.
 */
class lease_file {
 public:
  static constexpr std::size_t header_bytes = 64;  ///< before the first record; the caller's

  /** @brief Bytes of a file with so many slots. */
  [[nodiscard]] static constexpr std::size_t bytes_for(std::size_t slots) noexcept
  {
    return header_bytes + slots * sizeof(lease_record);
  }

  /**
   * @brief Maps a file that has the right length.
   * @param descriptor open for reading and writing; closed with the object, or at once on failure
   * @param slots leases that the file has room for
   */
  [[nodiscard]] static opened_lease_file open(int descriptor, std::size_t slots) noexcept;

  ~lease_file();
  lease_file(lease_file const&)            = delete;
  lease_file& operator=(lease_file const&) = delete;
  lease_file(lease_file&&)                 = delete;
  lease_file& operator=(lease_file&&)      = delete;

  // The exporter's side.
  /** @brief Becomes the exporter, unless somebody else is it. @return 0 or -EAGAIN */
  [[nodiscard]] int try_be_exporter() const noexcept;
  /** @brief Begins a lease in a free slot. @return its generation */
  [[nodiscard]] std::uint64_t begin(std::size_t slot, std::uint32_t allowed) noexcept;
  /** @brief Ends a lease; its generation is over. @return 0, or -EAGAIN while it is open */
  [[nodiscard]] int try_end(std::size_t slot) noexcept;
  /** @brief Whether somebody else has a lease open. @return 1, 0 or -errno */
  [[nodiscard]] int is_open(std::size_t slot) const noexcept;

  // A reader's side.
  /** @brief Whether somebody else is the exporter. @return 1, 0 or -errno */
  [[nodiscard]] int exporter_alive() const noexcept;
  /** @brief Opens a lease, and counts that; waits only for as long as the exporter takes to end
   * one.
   * @param again this object has the slot open already */
  [[nodiscard]] lease_answer open_lease(std::size_t slot,
                                        std::uint64_t generation,
                                        bool again) noexcept;
  /** @brief Takes back the count of an opening that came to nothing; the slot is still open. */
  void uncount(std::size_t slot) noexcept;
  /** @brief Lets go of a slot, however often it was opened. @return 0 or -errno */
  [[nodiscard]] int close_lease(std::size_t slot) const noexcept;

  /** @brief What the file says of a slot now. */
  [[nodiscard]] lease_record read(std::size_t slot) const noexcept;
  /** @brief Whether this is the process that opened it. */
  [[nodiscard]] bool here() const noexcept;
  /** @brief Number of slots. */
  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }

 private:
  lease_file(std::unique_ptr<forgotten_descriptor> descriptor,
             void* memory,
             std::size_t slots) noexcept;
  [[nodiscard]] lease_record& record(std::size_t slot) const noexcept;
  [[nodiscard]] lease_answer count_opening(std::size_t slot, std::uint64_t generation) noexcept;

  std::unique_ptr<forgotten_descriptor> descriptor_;
  void* memory_;
  std::size_t slots_;
};

}  // namespace rmm_uvm::ipc
