// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_api.hpp>
#include <rmm_uvm/cuda/cuda_use.hpp>
#include <rmm_uvm/cuda/direct_migration.hpp>
#include <rmm_uvm/cuda/host_pages.hpp>
#include <rmm_uvm/cuda/mapping_cuts.hpp>
#include <rmm_uvm/cuda/nvml_load.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace rmm_uvm::cuda {

/** @brief A driver, or why there is none. */
struct opened_cuda_driver {
  std::shared_ptr<uvm_driver> driver;  ///< null when not opened
  availability opened;
};

/**
 * @brief `uvm_driver` over libcuda.
 *
 * Every call pushes the primary context of its device and pops it again, so the caller's current
 * device is never changed, and runs in relaxed capture mode, so that another thread's graph capture
 * is not spoilt. In a forked child every command fails, and neither CUDA nor the kernel driver is
 * called. Thread-safe.
 */
class cuda_driver final : public uvm_driver {
 public:
  /**
   * @brief Opens one device: retains its primary context, touches no other.
   * @param api resolved table; copied
   * @param device_id CUDA ordinal
   * @param counters false: leave the UVM kernel counters alone
   */
  [[nodiscard]] static opened_cuda_driver open(cuda_api const& api, int device_id, bool counters);

  ~cuda_driver() override;
  cuda_driver(cuda_driver const&)            = delete;
  cuda_driver& operator=(cuda_driver const&) = delete;
  cuda_driver(cuda_driver&&)                 = delete;
  cuda_driver& operator=(cuda_driver&&)      = delete;

  [[nodiscard]] device_info const& info() const noexcept override { return info_; }
  [[nodiscard]] migration_counters const& counters() const noexcept override { return *counters_; }
  [[nodiscard]] opened_move_queue open_moves() override;
  status memory(device_memory& memory) noexcept override;
  status unmanaged_bytes(std::size_t& bytes) noexcept override;
  [[nodiscard]] int device_count() noexcept override;
  availability open_neighbor(int device_id) override;
  status neighbor_uuid(int device_id, std::array<std::uint8_t, 16>& uuid) noexcept override;
  status neighbor_memory(int device_id, device_memory& memory) noexcept override;
  status read_neighbor_load(int device_id, neighbor_load& load) noexcept override;
  status measure_links(int device_id, std::size_t bytes, link_rates& rates) noexcept override;
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override;
  status free_managed(std::uintptr_t address) noexcept override;
  status prefetch(memory_range range, location where, stream_handle stream) noexcept override;
  status migrate(memory_range range, location where) noexcept override;
  [[nodiscard]] bool migrates_to(location where) noexcept override
  {
    return use_.here() && direct_ != nullptr && direct_->reaches(where);
  }
  [[nodiscard]] std::size_t evicting_threads() const noexcept override { return evicting_threads_; }
  status discard(std::span<memory_range const> ranges, stream_handle stream) noexcept override;
  status discard_and_prefetch(std::span<memory_range const> ranges,
                              location where,
                              stream_handle stream) noexcept override;
  status advise(memory_range range, memory_advice what, location where) noexcept override;
  status order(stream_handle later, stream_handle earlier) noexcept override;
  status own_stream(own_stream_use which, stream_handle& stream) noexcept override;
  status mark(std::size_t number, stream_handle stream) noexcept override;
  [[nodiscard]] bool passed(std::size_t number) noexcept override;
  [[nodiscard]] capture_state capturing(stream_handle stream) noexcept override;
  status graph_of(stream_handle stream,
                  std::shared_ptr<captured_graph const>& graph) noexcept override;
  [[nodiscard]] bool idle(stream_handle stream) noexcept override;
  status synchronize(stream_handle stream) noexcept override;
  status not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept override;

  /** @brief Where loads of neighbours are read that are asked for from now on; NVML by default. */
  void use_load_readers(load_reader_maker make);
  /** @brief Where it is read what is not managed, from now on; NVML by default. */
  void use_unmanaged_reader(unmanaged_reader_maker make);

  /** @brief The functions it calls; for what else works on this device. */
  [[nodiscard]] cuda_api const& api() const noexcept { return api_; }
  /** @brief The primary context of its device, retained as long as the process lives. */
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  /** @brief Whether the context may be used. */
  [[nodiscard]] cuda_use const& use() const noexcept { return use_; }

 private:
  cuda_driver(cuda_api const& api, CUdevice device, CUcontext context, device_info info);

  struct asked_reader {
    std::shared_ptr<neighbor_load_reader> reader;  // null where there is none
    bool asked{false};
  };
  struct neighbor {
    CUcontext context{};  // its primary one
    std::array<std::uint8_t, 16> uuid{};
    asked_reader load;
  };

  [[nodiscard]] bool has_neighbor(int device_id) noexcept;
  template <typename Call>
  status on_side_stream(stream_handle stream, Call const& call) noexcept;
  [[nodiscard]] status make_side_stream() noexcept;

  cuda_use use_;
  cuda_api api_;
  CUdevice device_;
  CUcontext context_;
  device_info info_;
  std::unique_ptr<migration_counters> counters_;
  std::unique_ptr<direct_migration> direct_;  // null where it is not available
  std::unique_ptr<host_pages> host_pages_;    // likewise
  mapping_cuts cuts_{linux_system_calls()};
  std::size_t evicting_threads_;
  ranked_mutex<lock_rank::neighbors> neighbors_mutex_;
  std::map<int, neighbor> neighbors_;  // opened ones
  asked_reader own_load_;              // of the device itself
  load_reader_maker make_load_reader_{nvml_load_readers()};
  unmanaged_reader_maker make_unmanaged_reader_{nvml_unmanaged_readers()};  // none: asked already
  std::shared_ptr<unmanaged_reader const> unmanaged_;                       // null: none
  ranked_mutex<lock_rank::own_streams> own_mutex_;
  std::shared_ptr<captured_graph> last_graph_;            // that `graph_of` told
  std::array<CUstream, own_stream_count> own_streams_{};  // each made when first asked for
  std::array<CUevent, mark_count> marks_{};               // likewise
  CUevent between_{nullptr};                              // for `order`
  ranked_mutex<lock_rank::side_stream> side_mutex_;
  CUstream side_stream_{nullptr};  // made at the first batch call on the legacy stream
  CUevent before_{nullptr};
  CUevent after_{nullptr};
};

}  // namespace rmm_uvm::cuda
