// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/direct_migration.hpp>
#include <rmm_uvm/cuda/host_pages.hpp>
#include <rmm_uvm/cuda/system_calls.hpp>
#include <rmm_uvm/cuda/uvm_tools.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/**
 * @brief An operating system with a UVM kernel driver: address spaces, descriptors, trackers.
 *
 * An address space is a number; descriptors on /dev/nvidia-uvm name one, or -1 for a descriptor
 * that belongs to none. What `migrate` and `fault` report reaches every tracker that counts it, by
 * the rules of uvm_tools.c. Calls are thread-safe; what the test sets is not.
 */
class fake_system final : public cuda::system_calls {
 public:
  using uuid = std::array<std::uint8_t, 16>;

  /** @brief A process: its descriptors, and the address space behind each that is on UVM. */
  struct process {
    std::vector<open_file> files;
    std::map<int, int> address_spaces;  ///< by descriptor
    bool ended{false};
  };

  static constexpr int own_pid = 100;
  int pid{own_pid};                    ///< what `process_id` answers; another number after a fork
  std::map<int, process> processes;    ///< by pid
  std::map<int, int> errors;           ///< errno of the n-th call from now on, counted from 1
  int calls{0};                        ///< made so far
  std::map<std::string, int> answers;  ///< errno by name of the call
  std::string ptrace_scope{"1"};       ///< what the file says
  std::uint32_t migrate_status{0};     ///< what the kernel driver's migration answers
  bool migrations_move{true};          ///< false: they answer and do nothing
  bool migrations_lose{false};         ///< they destroy what they move
  std::size_t entry_bytes{sizeof(cuda::uvm_tools::migration_entry)};  ///< of a queue's entries
  std::uint32_t queue_status{0};       ///< what it answers to who asks for a queue
  std::uint32_t events_status{0};      ///< what it answers to who asks for events
  bool enters{true};                   ///< false: moves do not reach queues
  bool neighbors_reached{true};        ///< false: migrations to other GPUs do nothing
  std::set<std::uint64_t> beside;      ///< begins of what is on other GPUs
  std::set<std::uint64_t> host_pages;  ///< pages that are mapped for the CPU
  bool scans{true};                    ///< false: a kernel before Linux 6.7
  bool direct_maps{true};              ///< false: migrations to the host leave pages unmapped
  std::vector<cuda::uvm_migrate::parameters> migrations;           ///< asked for, all that arrived
  std::vector<std::pair<std::uintptr_t, std::size_t>> kept_apart;  ///< parts of mappings
  std::vector<std::string> given_back;  ///< targets of descriptors, and "page", in order

  fake_system() { processes[own_pid]; }
  ~fake_system() override
  {
    for (void* page : pages) {
      std::free(page);  // NOLINT: a test that leaks has said so already
    }
  }
  fake_system(fake_system const&)            = delete;
  fake_system& operator=(fake_system const&) = delete;
  fake_system(fake_system&&)                 = delete;
  fake_system& operator=(fake_system&&)      = delete;

  /** @brief Opens /dev/nvidia-uvm in a process. @param address_space -1 for none */
  void open_uvm(int in, int number, int address_space)
  {
    processes[in].files.push_back({number, cuda::uvm_tools::device_path});
    processes[in].address_spaces[number] = address_space;
  }
  /** @brief Descriptors and pages that were handed out and not given back. */
  [[nodiscard]] std::size_t held() const
  {
    std::lock_guard const lock{mutex};
    return opened.size() + pages.size();
  }

  /** @brief A GPU's memory moves. */
  void migrate(int address_space, uuid const& gpu, std::uint64_t to_device, std::uint64_t to_host)
  {
    add(address_space, &gpu, cuda::uvm_tools::counter::bytes_to_device, to_device);
    add(address_space, &gpu, cuda::uvm_tools::counter::bytes_to_host, to_host);
  }
  /** @brief Pages move: every queue that is told migrations has an entry, if there is room. */
  void enter(int address_space, cuda::uvm_tools::migration_entry entry)
  {
    std::lock_guard const lock{mutex};
    if (!enters) { return; }
    entry.type = cuda::uvm_tools::migration_event;
    for (auto& [number, queue] : opened) {
      if (queue.entries == 0 || queue.address_space != address_space || queue.flags != 1U << 2U) {
        continue;
      }
      auto& control    = *reinterpret_cast<cuda::uvm_tools::queue_control*>(queue.page);
      auto const mask  = static_cast<std::uint32_t>(queue.entries - 1);
      auto const after = (control.put_behind + 1) & mask;
      if (after == (control.get_behind & mask)) {
        ++control.dropped[cuda::uvm_tools::migration_event];
        continue;
      }
      auto* const to = queue.queue + (control.put_behind & mask) * entry_bytes;
      std::memset(to, 0, entry_bytes);
      std::memcpy(to, &entry, std::min(entry_bytes, sizeof entry));
      control.put_ahead = after;
      __atomic_store_n(&control.put_behind, after, __ATOMIC_RELEASE);
    }
  }
  /** @brief A GPU, or the CPU, faults. CPU faults reach trackers of all processors only. */
  void fault(int address_space, uuid const* gpu, std::uint64_t faults)
  {
    add(
      address_space,
      gpu,
      gpu == nullptr ? cuda::uvm_tools::counter::cpu_faults : cuda::uvm_tools::counter::gpu_faults,
      faults);
  }

  [[nodiscard]] int open(char const* path) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("open")) { return -error; }
    return hand_out({path, -1});
  }
  [[nodiscard]] int open_to_read(char const* path) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("open_to_read")) { return -error; }
    return hand_out({path, -1});
  }
  [[nodiscard]] long read_at(int /*descriptor*/,
                             void* buffer,
                             std::size_t bytes,
                             std::uint64_t offset) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("read_at")) { return -error; }
    auto* const entries = static_cast<std::uint64_t*>(buffer);
    for (std::size_t page = 0; page < bytes / sizeof *entries; ++page) {
      auto const number = offset / sizeof *entries + page;
      entries[page]     = host_pages.contains(number * page_bytes) ? cuda::pagemap::present_bit : 0;
    }
    return static_cast<long>(bytes);
  }
  /** @brief Pages are mapped for the CPU, or are not any more. */
  void map_for_cpu(std::uint64_t address, std::size_t bytes, bool mapped)
  {
    std::lock_guard const lock{mutex};
    for (auto page = address / page_bytes * page_bytes; page < address + bytes;
         page += page_bytes) {
      if (mapped) {
        host_pages.insert(page);
      } else {
        host_pages.erase(page);
      }
    }
  }
  void close(int descriptor) noexcept override
  {
    std::lock_guard const lock{mutex};
    given_back.push_back(opened.at(descriptor).target);
    opened.erase(descriptor);
  }
  [[nodiscard]] int ioctl(int descriptor, unsigned long request, void* argument) noexcept override
  {
    if (request == cuda::uvm_migrate::request) {
      return move(descriptor, *static_cast<cuda::uvm_migrate::parameters*>(argument));
    }
    if (request == cuda::pagemap::scan_request) {
      return scan(*static_cast<cuda::pagemap::scan_arguments*>(argument));
    }
    std::lock_guard const lock{mutex};
    if (int const error = failing("ioctl")) { return -error; }
    if (request == cuda::uvm_tools::flush_events) { return 0; }
    auto& file = opened.at(descriptor);
    if (request == cuda::uvm_tools::init_tracker) {
      auto& init       = *static_cast<cuda::uvm_tools::init_tracker_parameters*>(argument);
      auto const space = address_space_of(static_cast<int>(init.uvm_descriptor));
      if (space < 0) {
        init.status = 0x16;  // NV_ERR_ILLEGAL_ACTION
        return 0;
      }
      if (init.queue_buffer_size != 0 && queue_status != 0) {
        init.status = queue_status;
        return 0;
      }
      file.address_space = space;
      file.entries       = init.queue_buffer_size;
      file.queue         = reinterpret_cast<char*>(init.queue_buffer);
      file.page          = reinterpret_cast<std::uint64_t*>(init.control_buffer);
      file.all           = init.all_processors != 0;
      file.gpu           = init.processor;
      return 0;
    }
    auto& count = *static_cast<cuda::uvm_tools::count_parameters*>(argument);
    if (request == cuda::uvm_tools::enable_events) { count.status = events_status; }
    if (request == cuda::uvm_tools::enable_events && events_status == 0) {
      file.flags = count.flags;
    }
    if (request == cuda::uvm_tools::disable_events) { file.flags = 0; }
    if (request == cuda::uvm_tools::enable_count) { file.flags |= count.flags; }
    if (request == cuda::uvm_tools::disable_count) { file.flags &= ~count.flags; }
    return 0;
  }
  [[nodiscard]] void* map(std::size_t bytes) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (failing("map") != 0) { return nullptr; }
    void* const page = std::aligned_alloc(bytes, bytes);
    std::memset(page, 0, bytes);
    pages.insert(page);
    return page;
  }
  [[nodiscard]] int wipe_on_fork(void* /*address*/, std::size_t /*bytes*/) noexcept override
  {
    std::lock_guard const lock{mutex};
    return -failing("wipe_on_fork");
  }
  [[nodiscard]] int keep_apart(std::uintptr_t address, std::size_t bytes) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("keep_apart")) { return -error; }
    kept_apart.emplace_back(address, bytes);
    return 0;
  }
  void unmap(void* address, std::size_t /*bytes*/) noexcept override
  {
    std::lock_guard const lock{mutex};
    given_back.emplace_back("page");
    pages.erase(address);
    std::free(address);  // NOLINT: its twin is in `map`
  }
  [[nodiscard]] int process_id() noexcept override { return pid; }
  [[nodiscard]] int open_process(int which) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("open_process")) { return -error; }
    return processes.contains(which) ? hand_out({"pidfd", which}) : -ESRCH;
  }
  [[nodiscard]] int copy_descriptor(int which, int descriptor) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("copy_descriptor")) { return -error; }
    auto const& from = processes.at(opened.at(which).pid).address_spaces;
    auto const it    = from.find(descriptor);
    if (it == from.end()) { return -EBADF; }
    return hand_out({"copy", -1, it->second});
  }
  [[nodiscard]] bool same_file(int first, int second) noexcept override
  {
    std::lock_guard const lock{mutex};
    return opened.at(first).address_space == opened.at(second).address_space;
  }
  [[nodiscard]] int wait_exit(int which, int /*timeout_ms*/) noexcept override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("wait_exit")) { return -error; }
    return processes.at(opened.at(which).pid).ended ? 1 : 0;
  }
  [[nodiscard]] int list_files(int which, std::vector<open_file>& files) override
  {
    std::lock_guard const lock{mutex};
    if (int const error = failing("list_files")) { return -error; }
    files = processes.at(which).files;
    return 0;
  }
  [[nodiscard]] std::string read_line(char const* /*path*/) override { return ptrace_scope; }

 private:
  struct handle {
    std::string target;
    int pid{-1};            // of a process descriptor
    int address_space{-1};  // of a copied descriptor, or a tracker
    std::uint64_t* page{nullptr};
    std::uint64_t entries{0};  // of a queue; its page is the queue's control
    char* queue{nullptr};
    bool all{false};
    uuid gpu{};
    std::uint64_t flags{0};
  };

  [[nodiscard]] int failing(std::string const& call)
  {
    ++calls;
    if (auto const it = errors.find(calls); it != errors.end()) { return it->second; }
    auto const it = answers.find(call);
    return it == answers.end() ? 0 : it->second;
  }
  /** @brief Migrates as the kernel driver does: whole pages, in the descriptor's address space. */
  [[nodiscard]] int move(int descriptor, cuda::uvm_migrate::parameters& asked)
  {
    int space = -1;
    {
      std::lock_guard const lock{mutex};
      if (int const error = failing("ioctl")) { return -error; }
      migrations.push_back(asked);
      space = address_space_of(descriptor);
    }
    bool const whole_pages = asked.base % page_bytes == 0 && asked.length % page_bytes == 0;
    if (space < 0 || !whole_pages || migrate_status != 0) {
      asked.status = migrate_status != 0 ? migrate_status : 0x1E;  // NV_ERR_INVALID_ADDRESS
      return 0;
    }
    bool const to_host = asked.destination == cuda::uvm_migrate::host;
    auto const bytes   = migrations_move ? asked.length : 0;
    if (migrations_lose) { std::memset(reinterpret_cast<void*>(asked.base), 0, asked.length); }
    if (!to_host && asked.destination != uuid{1}) {  // between GPUs nothing is counted
      if (neighbors_reached) { beside.insert(asked.base); }
      return 0;
    }
    bool const from_beside = beside.erase(asked.base) > 0;
    if (from_beside && !to_host) { return 0; }
    migrate(space, uuid{1}, to_host ? 0 : bytes, to_host ? bytes : 0);
    if (direct_maps) { map_for_cpu(asked.base, asked.length, to_host); }
    return 0;
  }
  /** @brief Lists what is not mapped, as PAGEMAP_SCAN does; the list may be too short. */
  [[nodiscard]] int scan(cuda::pagemap::scan_arguments& asked)
  {
    std::lock_guard const lock{mutex};
    if (!scans) { return -ENOTTY; }
    if (int const error = failing("scan")) { return -error; }
    auto* const regions = reinterpret_cast<cuda::pagemap::region*>(asked.regions);
    std::size_t count   = 0;
    for (auto page = asked.start; page < asked.end; page += page_bytes) {
      asked.walk_end = page + page_bytes;
      if (host_pages.contains(page)) { continue; }
      if (count > 0 && regions[count - 1].end == page) {
        regions[count - 1].end = page + page_bytes;
        continue;
      }
      if (count == asked.region_count) {
        asked.walk_end = page;
        break;
      }
      regions[count++] = {page, page + page_bytes, 0};
    }
    return static_cast<int>(count);
  }
  [[nodiscard]] int hand_out(handle made)
  {
    opened.emplace(next, std::move(made));
    return next++;
  }
  [[nodiscard]] int address_space_of(int descriptor) const
  {
    if (auto const it = opened.find(descriptor); it != opened.end()) {
      return it->second.address_space;
    }
    auto const& own = processes.at(own_pid).address_spaces;
    auto const it   = own.find(descriptor);
    return it == own.end() ? -1 : it->second;
  }
  void add(int address_space,
           uuid const* gpu,
           cuda::uvm_tools::counter which,
           std::uint64_t amount) const
  {
    std::lock_guard const lock{mutex};
    for (auto const& [number, tracker] : opened) {
      bool const matches = tracker.all || (gpu != nullptr && tracker.gpu == *gpu);
      if (tracker.page != nullptr && tracker.address_space == address_space && matches &&
          tracker.entries == 0 && (tracker.flags & cuda::uvm_tools::flag(which)) != 0) {
        __atomic_fetch_add(tracker.page + static_cast<unsigned>(which), amount, __ATOMIC_RELAXED);
      }
    }
  }

  mutable std::mutex mutex;
  std::map<int, handle> opened;
  std::set<void*> pages;
  int next{1000};
};

}  // namespace rmm_uvm::tests
