// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/stream.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace rmm_uvm::mr::detail {

/** @brief Tells streams apart: two handles mean the legacy one, and 0x2 one for each thread. */
struct stream_name {
  explicit stream_name(stream_handle stream) noexcept
    : handle{reinterpret_cast<std::uintptr_t>(stream)}
  {
    if (handle == 1) { handle = 0; }
    if (handle == 2) { thread = std::this_thread::get_id(); }
  }
  friend bool operator==(stream_name const&, stream_name const&) = default;

  std::uintptr_t handle;
  std::thread::id thread;
};

/**
 * @brief What was freed in streams that capture, until they do so no more.
 *
 * A pool records an event in the stream of a free, and has others wait for it. Recorded in a
 * capture, that event would spoil what waits for it outside, and the capture. So the pool is told
 * when its memory is next asked for, or freed, in that stream, whose work on it is ahead of that.
 * Thread-safe.
 */
class frees_in_captures {
 public:
  struct free {
    stream_name stream;
    void* ptr{nullptr};
    std::size_t bytes{0};
    std::size_t alignment{0};
  };

  /** @brief Where the process has no memory for it, nobody is handed that memory again. */
  void add(stream_handle stream, void* ptr, std::size_t bytes, std::size_t alignment) noexcept
  try {
    std::lock_guard const lock{mutex_};
    frees_.push_back({stream_name{stream}, ptr, bytes, alignment});
    any_.store(true, std::memory_order_release);
  } catch (std::bad_alloc const&) {
    return;
  }

  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }

  /** @brief Calls `give_back` with each that was freed in a stream, and forgets them. */
  template <typename GiveBack>
  void end_in(stream_handle stream, GiveBack const& give_back) noexcept
  {
    std::lock_guard const lock{mutex_};
    std::erase_if(frees_, [&, name = stream_name{stream}](free const& each) {
      if (each.stream == name) { give_back(each); }
      return each.stream == name;
    });
    any_.store(!frees_.empty(), std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::vector<free> frees_;
  std::atomic<bool> any_{false};
};

}  // namespace rmm_uvm::mr::detail
