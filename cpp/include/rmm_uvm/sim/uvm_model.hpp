// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_events.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/access_pattern.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/chunk_lists.hpp>
#include <rmm_uvm/sim/driver_settings.hpp>
#include <rmm_uvm/sim/machine_profile.hpp>
#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace rmm_uvm::sim {

/** @brief What is modelled. */
struct model_config {
  machine_profile machine;      ///< rates and times
  driver_settings driver;       ///< the kernel driver's parameters
  std::size_t device_bytes{0};  ///< memory of each GPU; a multiple of 2 MiB, > 0
  std::size_t host_bytes{std::numeric_limits<std::size_t>::max()};  ///< host memory for pages
  unsigned gpus{1};                                                 ///< 1..max_gpus
  std::vector<unsigned> links;        ///< for each GPU its link to the host; empty: each its own
  bool peers{true};                   ///< peer access is enabled, where the machine has it
  std::vector<unsigned> peer_groups;  ///< for each GPU its group, within which there is peer
                                      ///< access; empty: all are one
  unsigned lanes{1};     ///< of each program: what it does in one goes beside the others
  unsigned programs{1};  ///< 1..most_programs, each with memory and a clock of its own
};

/** @brief Sums since the model was made, and levels now. */
struct model_counters {
  std::uint64_t to_device_bytes{0};  ///< migrated from the host to GPUs
  std::uint64_t to_host_bytes{0};    ///< migrated to the host, evictions included
  std::uint64_t peer_bytes{0};       ///< migrated between GPUs
  std::uint64_t remote_bytes{0};     ///< accessed by kernels where they lay, through a mapping
  std::uint64_t evicted_bytes{0};    ///< written back to make room
  std::uint64_t evicted_blocks{0};   ///< chunks taken away, copied or not
  std::uint64_t dropped_bytes{0};    ///< discarded pages that left without a copy
  std::uint64_t filled_bytes{0};     ///< device memory that came without a copy
  std::uint64_t gpu_faults{0};       ///< pages that faulted, duplicates included
  std::uint64_t fault_services{0};   ///< blocks served, once for each batch that touched them
  std::uint64_t fault_batches{0};    ///< batches of GPU faults
  std::uint64_t cpu_faults{0};       ///< faults of the CPU that were served
  std::uint64_t block_operations{
    0};                           ///< blocks migrated, filled, evicted, discarded or found there
  std::size_t managed_bytes{0};   ///< managed memory now
  std::size_t device_bytes{0};    ///< cudaMalloc memory of all GPUs now
  std::size_t resident_bytes{0};  ///< device memory behind managed pages now
  std::size_t peak_resident_bytes{0};  ///< the most of it
  std::size_t host_page_bytes{0};      ///< host memory behind managed pages now
};

/** @brief How the memory of one GPU is used. */
struct gpu_levels {
  std::size_t device_bytes{0};         ///< cudaMalloc memory now
  std::size_t resident_bytes{0};       ///< memory behind managed pages now
  std::size_t peak_resident_bytes{0};  ///< the most of it
};

/** @brief Who moved what, for those who keep account by cause and place. */
class migration_listener {
 public:
  migration_listener()                                     = default;
  migration_listener(migration_listener const&)            = delete;
  migration_listener& operator=(migration_listener const&) = delete;
  migration_listener(migration_listener&&)                 = delete;
  migration_listener& operator=(migration_listener&&)      = delete;
  virtual ~migration_listener()                            = default;
  /** @brief So many bytes of a block of a program moved over a GPU's link to the host. */
  virtual void moved(unsigned program,
                     direction way,
                     migration_cause cause,
                     memory_range pages) noexcept = 0;
};

/** @brief Advice about where pages belong, as `cuMemAdvise`. */
enum class advice : std::uint8_t {
  read_mostly,
  unset_read_mostly,
  preferred_location,
  unset_preferred_location,
  accessed_by,
  unset_accessed_by
};

/** @brief What a kernel does with one range. */
struct kernel_access {
  memory_range range;      ///< inside one managed range
  access_pattern pattern;  ///< in what order
  bool write{false};       ///< whether it writes what it reads
};

/** @brief A kernel. */
struct kernel_launch {
  std::span<kernel_access const> accesses{};  ///< go forward together, run by run
  double compute_ns{0};                 ///< time with all pages resident, besides reading them
  unsigned gpu{0};                      ///< where it runs
  std::uint64_t stream{0};              ///< waits for what was issued there before
  std::uint32_t outstanding_faults{0};  ///< pages it faults on before it stalls; 0: the machine's
  /// Asked every few thousand accesses: true ends the kernel there, with `driver_error`.
  bool (*shall_stop)(void* asker){nullptr};
  void* asker{nullptr};  ///< what it is asked with
};

/**
 * @brief The UVM kernel driver and the links as a model: blocks, chunks, faults, copies and time.
 *
 * Deterministic: equal calls, equal results. Operations take effect in the order of the calls;
 * their times follow streams, the driver's one thread, and the copy engines. Several programs share
 * GPUs and engines; each has its own memory, streams, clock, and thread of the driver. Rules are
 * those of open-gpu-kernel-modules 580.142; docs/simulator-model.md names them, and what is left
 * out. Not thread-safe. Calls that are not noexcept may throw std::bad_alloc; what they had moved
 * stays moved.
 */
class uvm_model {
 public:
  static constexpr int host               = -1;  ///< the host, as a place
  static constexpr unsigned most_gpus     = block_table::most_gpus;
  static constexpr unsigned most_programs = block_table::most_programs;

  explicit uvm_model(model_config const& config);

  /**
   * @brief What follows is done by this program; the first one until then.
   *
   * In lane 0 it runs; what it does in another goes on beside, from its time on.
   * @pre there are such
   */
  void run_as(unsigned program, unsigned lane = 0) noexcept;
  /** @brief The program's lane that runs now waits for another of it. */
  void wait_for_lane(unsigned lane) noexcept { wait_until(clock_of(program_, lane).host_ns); }

  // Memory.
  /**
   * @brief Managed memory at `range`, whose address is a multiple of 2 MiB.
   * @throws std::invalid_argument if it is not, or the range is empty, ends past 2^53, or overlaps
   * another
   */
  void add_range(memory_range range);
  /** @brief Gives a managed range back. @return false if none begins there */
  bool remove_range(std::uintptr_t address) noexcept;
  /** @brief Takes cudaMalloc memory, of whichever process; evicts for it. */
  status allocate_device(unsigned gpu, std::size_t bytes);
  /** @brief Gives as much back; nothing if it was not taken. */
  void free_device(unsigned gpu, std::size_t bytes) noexcept;

  // Commands.
  /** @brief cuMemPrefetchAsync. @param where a GPU, or `host` */
  status prefetch(memory_range range, int where, std::uint64_t stream);
  /** @brief UVM_MIGRATE, past libcuda and every stream: whoever calls waits until it is done. */
  status migrate(memory_range range, int where);
  /** @brief cuMemDiscardBatchAsync. @param unmap false keeps the mappings, as the driver can */
  status discard(memory_range range, bool unmap);
  /** @brief cuMemDiscardAndPrefetchBatchAsync. */
  status discard_and_prefetch(memory_range range, int where, std::uint64_t stream);
  /** @brief cuMemAdvise of the blocks that hold any of the range. */
  status advise(memory_range range, advice what, int where);

  // Programs.
  /** @brief A kernel is launched; its faults are served. */
  status launch(kernel_launch const& kernel);
  /** @brief The CPU reads, or reads and writes, every page of a range, upwards. */
  status cpu_touch(memory_range range, bool write);
  /** @brief The host does something else. */
  void host_work(double ns) noexcept { own().host_ns += ns; }
  /** @brief The host does nothing until then. */
  void wait_until(double ns) noexcept { own().host_ns = std::max(own().host_ns, ns); }
  /** @brief The host waits for a stream. */
  void synchronize(std::uint64_t stream) noexcept;
  /** @brief The host waits for everything. */
  void synchronize() noexcept;

  // Observations.
  /** @brief The program's time on the host. */
  [[nodiscard]] double now_ns() const noexcept { return clocks_[clock_number_].host_ns; }
  /** @brief The program's time in one of its lanes. */
  [[nodiscard]] double lane_ns(unsigned lane) const noexcept
  {
    return clock_of(program_, lane).host_ns;
  }
  /** @brief The time of the program that is furthest. */
  [[nodiscard]] double latest_ns() const noexcept;
  [[nodiscard]] model_counters const& counters() const noexcept { return counters_; }
  /** @brief What a program's memory, its faults and its cudaMalloc memory have in `counters`. */
  [[nodiscard]] model_counters const& counters(unsigned program) const noexcept
  {
    return config_.programs > 1 ? counted_[program] : counters_;
  }
  [[nodiscard]] timeline const& links() const noexcept { return timeline_; }
  /** @brief Whether two GPUs copy from each other without the host between. */
  [[nodiscard]] bool reaches(unsigned one, unsigned other) const noexcept
  {
    return config_.peers && config_.machine.peer_bytes_per_ns > 0 &&
           (config_.peer_groups.empty() || config_.peer_groups[one] == config_.peer_groups[other]);
  }
  [[nodiscard]] model_config const& config() const noexcept { return config_; }
  /** @brief Device memory that nobody holds. */
  [[nodiscard]] std::size_t free_bytes(unsigned gpu) const noexcept
  {
    if (gpu >= config_.gpus) { return 0; }
    return config_.device_bytes - gpus_[gpu].levels.device_bytes - gpus_[gpu].levels.resident_bytes;
  }
  /** @brief What is used of a GPU's memory. @pre there is such a GPU */
  [[nodiscard]] gpu_levels const& levels(unsigned gpu) const noexcept { return gpus_[gpu].levels; }
  /** @brief Memory of a GPU behind a program's managed pages. @pre there are such */
  [[nodiscard]] gpu_levels const& levels(unsigned gpu, unsigned program) const noexcept
  {
    return config_.programs > 1 ? gpus_[gpu].of_programs[program] : gpus_[gpu].levels;
  }
  /** @brief Bytes of a range that reside on a GPU, or on the host. */
  [[nodiscard]] std::size_t resident_bytes(memory_range range, int where) const noexcept;
  /** @brief What was advised about the block that an address is in; nothing for other memory. */
  [[nodiscard]] block_policy advised(std::uintptr_t address) const noexcept;
  /** @brief The managed range that an address is in; nullopt for none. */
  [[nodiscard]] std::optional<memory_range> range_of(std::uintptr_t address) const noexcept;
  /** @brief Calls back for the whole pages of a range; `inward` leaves out those it cuts. */
  bool for_each_block(memory_range range,
                      bool inward,
                      std::function<void(std::uintptr_t, page_set const&)> const& visit) const;
  /** @brief Bytes that the model itself takes. */
  [[nodiscard]] std::size_t footprint_bytes() const noexcept;
  /** @brief Tells a listener of every migration from now on; nullptr for none. */
  void listen(migration_listener* listener) noexcept { listener_ = listener; }

 private:
  struct block_span {             // what a range covers
    std::uint32_t base_block{0};  // of the managed range
    std::uint64_t first_page{0};  // counted from there
    std::uint64_t last_page{0};   // one past
  };
  struct managed_range {
    std::size_t bytes{0};
    std::uint32_t first_block{0};
    std::uint32_t block_count{0};
    unsigned program{0};
  };
  struct gpu_state {
    chunk_lists chunks;
    gpu_levels levels;
    std::vector<gpu_levels> of_programs;
    std::vector<double> left_ns;  // by program: when what it had leave so far has left
  };
  struct clock {  // of a program
    double host_ns{0};
    double last_ns{0};                        // when everything is done
    std::map<std::uint64_t, double> streams;  // when what was issued there is done
  };
  struct faults {  // of one access, on one block
    std::uint32_t block{0};
    page_set pages;
    bool write{false};
  };
  struct block_faults {  // all of a batch on one block
    std::uint32_t block{0};
    page_set reads;
    page_set writes;
  };
  class progress;         // of a kernel through one of its accesses
  struct running_kernel;  // a kernel, and how far it is

  [[nodiscard]] bool is_free(memory_range range) const noexcept;
  [[nodiscard]] bool is_place(int where) const noexcept
  {
    return where == host || (where >= 0 && std::cmp_less(where, config_.gpus));
  }
  [[nodiscard]] clock& own() noexcept { return clocks_[clock_number_]; }
  [[nodiscard]] clock const& clock_of(unsigned program, unsigned lane) const noexcept
  {
    return clocks_[std::size_t{program} * config_.lanes + lane];
  }
  // Enters into the sums: of all, and of a program, or of whose block it is.
  void add(unsigned program, std::uint64_t model_counters::* sum, std::uint64_t number) noexcept
  {
    counters_.*sum += number;
    if (config_.programs > 1) { counted_[program].*sum += number; }
  }
  void count(std::uint32_t block,
             std::uint64_t model_counters::* sum,
             std::uint64_t number = 1) noexcept
  {
    add(blocks_.program(block), sum, number);
  }
  [[nodiscard]] std::optional<block_span> find(memory_range range, bool inward) const noexcept;

  // Where pages are, and moving them; uvm_migration.cpp.
  status make_room(unsigned gpu, std::size_t bytes);
  status evict(std::uint32_t block, unsigned gpu);
  void release_chunk(std::uint32_t block, unsigned gpu) noexcept;
  [[nodiscard]] bool take_host_pages(std::uint32_t block, page_set const& pages);
  /** @brief What pages on their way to the host take of the driver's thread. */
  [[nodiscard]] double to_host_ns(page_set const& pages, page_set const& discarded) const noexcept;
  void spend_to_host(double ns);
  // Where programs have lanes: what comes waits for what left, and who uses it for what comes.
  void wait_for_room(std::uint32_t block, unsigned gpu);
  void note_departure(unsigned gpu) noexcept;
  void note_arrival(std::uint32_t block);
  [[nodiscard]] double arrival_ns(std::uint32_t block) const noexcept;
  void leave_gpu(std::uint32_t block, unsigned gpu, page_set const& pages);
  void leave_others(std::uint32_t block, page_set const& pages, int stays);
  void leave_one_copy(std::uint32_t block);
  [[nodiscard]] page_set resident_anywhere(std::uint32_t block) const noexcept;
  [[nodiscard]] bool copy_from_gpus(
    std::uint32_t block, unsigned gpu, page_set& rest, bool duplicate, bool direct);
  status to_device(std::uint32_t block,
                   unsigned gpu,
                   page_set const& pages,
                   page_set const& asked,
                   migration_cause cause,
                   bool duplicate);
  status to_host(std::uint32_t block,
                 page_set const& pages,
                 page_set const& asked,
                 migration_cause cause,
                 bool duplicate);
  void report(direction way,
              migration_cause cause,
              std::uint32_t block,
              std::size_t bytes) noexcept;
  /** @brief Device memory comes behind a block, or goes: then `bytes` is what wraps around. */
  void add_resident_bytes(std::uint32_t block, unsigned gpu, std::size_t bytes) noexcept;

  // Commands; uvm_commands.cpp.
  status prefetch_blocks(block_span const& span, int where, bool deferred);
  status prefetch_block(std::uint32_t block, page_set pages, int where);
  void finish_deferred(std::size_t to_device_bytes);
  void discard_blocks(block_span const& span, bool unmap, bool with_prefetch);
  [[nodiscard]] bool begin_call(std::uint64_t stream);
  void end_call(std::uint64_t stream, bool deferred);

  // Faults; uvm_faults.cpp.
  // Whether any access finds all that it needs: the usual case, told without looking at pages.
  [[nodiscard]] bool hits(std::uint32_t block, unsigned gpu) const noexcept;
  [[nodiscard]] page_set missing_for(std::uint32_t block,
                                     unsigned gpu,
                                     page_set const& pages,
                                     bool write,
                                     page_set& remote) const noexcept;
  [[nodiscard]] status prepare(running_kernel& running) const;
  void ask_for_pages(running_kernel& running);
  void access_pages(running_kernel& running, faults& given);
  status serve_batch(std::vector<faults>& waiting, unsigned gpu);
  status serve_block(block_faults const& asked, unsigned gpu);
  [[nodiscard]] page_set missing_of(block_faults const& asked,
                                    unsigned gpu,
                                    page_set& writes) const noexcept;
  void ask_again(unsigned gpu, std::vector<faults>& waiting) const;
  void spend_on_unmapping(std::uint32_t block,
                          unsigned gpu,
                          page_set const& coming,
                          page_set const& writes) noexcept;
  status share(std::uint32_t block,
               unsigned gpu,
               page_set const& coming,
               page_set const& faulted,
               page_set const& writes);
  status serve_cpu(std::uint32_t block, page_set const& pages, bool write);

  model_config config_;
  timeline timeline_;
  block_table blocks_;
  std::vector<gpu_state> gpus_;
  std::map<std::uintptr_t, managed_range> ranges_;
  std::vector<block_faults> served_;  // of the present batch
  model_counters counters_;
  std::vector<model_counters> counted_;                 // by program, where there are several
  std::vector<clock> clocks_;                           // by program, then by lane
  unsigned program_{0};                                 // whose turn it is
  std::size_t clock_number_{0};                         // of its lane
  std::unordered_map<std::uint32_t, double> arrivals_;  // of blocks, when they are not over
  bool direct_{false};                                  // a `migrate` is under way
  std::vector<link_engine> to_host_alone_;  // by program: work that one thread of it does at a time
  migration_listener* listener_{nullptr};
};

}  // namespace rmm_uvm::sim
