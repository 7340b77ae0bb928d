// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/captured_graph.hpp>
#include <rmm_uvm/driver/stream.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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
 * @brief Allocations that graphs may use when they are launched: what was handed out or freed in a
 * capture.
 *
 * They stay in use until their graphs end, whoever frees them before. Within its capture the same
 * stream may be handed again what it freed: there its work has an order. Thread-safe.
 */
class graph_memory {
 public:
  using graph = std::shared_ptr<captured_graph const>;

  /** @brief A free that somebody has to carry out. */
  struct waiting_free {
    void* ptr;
    std::size_t bytes;
    std::size_t alignment;
    bool in_caller;  ///< in the stream of the caller, which is the one that freed it
  };

  enum class answer : std::uint8_t {
    not_ours,  ///< no graph may use it
    kept,      ///< until its graphs end
    refused    ///< it was freed already
  };

  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }

  /** @brief Notes what a graph was handed. @throws std::bad_alloc */
  void hand_out(void* ptr, std::size_t bytes, std::size_t alignment, graph const& user)
  {
    std::lock_guard const lock{mutex_};
    note(user);
    pieces_.insert_or_assign(ptr, piece{bytes, alignment, {user}});
    any_.store(true, std::memory_order_release);
  }

  /** @brief What this stream freed in this capture, of that size; null if there is none. */
  [[nodiscard]] void* hand_out_again(std::size_t bytes,
                                     std::size_t alignment,
                                     stream_handle stream,
                                     graph const& user) noexcept
  {
    std::lock_guard const lock{mutex_};
    auto const found = std::find_if(pieces_.begin(), pieces_.end(), [&](auto const& each) {
      auto const& [ptr, of] = each;
      return of.free == freed::in_capture && of.bytes == bytes && of.alignment >= alignment &&
             of.users.size() == 1 && of.users[0] == user && of.stream == stream_name{stream};
    });
    if (found == pieces_.end()) { return nullptr; }
    found->second.free = freed::no;
    return found->first;
  }

  /**
   * @brief Keeps what was freed in a stream that captures.
   * @param user null where it cannot be told
   * @throws std::bad_alloc
   */
  [[nodiscard]] answer free_in_capture(
    void* ptr, std::size_t bytes, std::size_t alignment, stream_handle stream, graph const& user)
  {
    std::lock_guard const lock{mutex_};
    if (user != nullptr) { note(user); }
    auto& of = pieces_.try_emplace(ptr, piece{bytes, alignment, {}}).first->second;
    any_.store(true, std::memory_order_release);
    if (of.free != freed::no) { return answer::refused; }
    // Of a piece from before the capture work may be under way in that stream alone, which can be
    // waited for when it captures no more.
    bool const of_capture = of.users.size() == 1 && of.users[0] == user;
    if (user != nullptr && std::find(of.users.begin(), of.users.end(), user) == of.users.end()) {
      of.users.push_back(user);
    }
    of.free   = of_capture ? freed::in_capture : freed::before_its_stream;
    of.stream = stream_name{stream};
    if (!of_capture) { ++of_streams_; }
    return answer::kept;
  }

  /**
   * @brief Keeps what was freed in another stream, while a graph may use it.
   * @param follow has the stream of frees wait for that one; returns whether it does
   */
  template <typename Follow>
  [[nodiscard]] answer free(void* ptr, Follow const& follow)
  {
    std::lock_guard const lock{mutex_};
    auto const found = pieces_.find(ptr);
    if (found == pieces_.end()) { return answer::not_ours; }
    auto& of = found->second;
    if (of.free != freed::no) { return answer::refused; }
    if (!of.in_use()) {
      forget(found);
      return answer::not_ours;
    }
    of.free = follow() ? freed::behind : freed::for_ever;
    return answer::kept;
  }

  /** @brief Whether `take` may have something to do. */
  [[nodiscard]] bool may_end() noexcept
  {
    std::lock_guard const lock{mutex_};
    return of_streams_ > 0 || std::any_of(graphs_.begin(), graphs_.end(), has_ended);
  }

  /** @brief Forgets, and returns, what no graph uses any more. @throws std::bad_alloc */
  [[nodiscard]] std::vector<waiting_free> take(stream_handle stream)
  {
    std::vector<waiting_free> result;
    std::lock_guard const lock{mutex_};
    result.reserve(pieces_.size());
    for (auto each = pieces_.begin(); each != pieces_.end();) {
      auto const& [ptr, of] = *each;
      bool const here       = of.free == freed::before_its_stream;
      bool const may        = here ? of.stream == stream_name{stream}
                                   : of.free == freed::in_capture || of.free == freed::behind;
      if (may && !of.in_use()) {
        result.push_back({ptr, of.bytes, of.alignment, here});
        each = forget(each);
      } else {
        ++each;
      }
    }
    std::erase_if(graphs_, has_ended);
    return result;
  }

 private:
  enum class freed : std::uint8_t {
    no,
    in_capture,         ///< whose graph is the only user
    before_its_stream,  ///< in a capture, and the stream may have used it before
    behind,             ///< by a stream that the stream of frees waits for
    for_ever            ///< by one that cannot be waited for
  };
  struct piece {
    std::size_t bytes;
    std::size_t alignment;
    std::vector<graph> users;
    freed free{freed::no};
    stream_name stream{nullptr};

    [[nodiscard]] bool in_use() const noexcept
    {
      return !std::all_of(users.begin(), users.end(), has_ended);
    }
  };
  [[nodiscard]] static bool has_ended(graph const& which) noexcept { return which->ended(); }

  void note(graph const& user)
  {
    if (std::find(graphs_.begin(), graphs_.end(), user) == graphs_.end()) {
      graphs_.push_back(user);
    }
  }

  using place = std::map<void*, piece>::iterator;

  place forget(place which)
  {
    if (which->second.free == freed::before_its_stream) { --of_streams_; }
    auto const next = pieces_.erase(which);
    any_.store(!pieces_.empty(), std::memory_order_release);
    return next;
  }

  std::mutex mutex_;
  std::map<void*, piece> pieces_;
  std::atomic<bool> any_{false};
  std::size_t of_streams_{0};  ///< pieces that are freed `before_its_stream`
  std::vector<graph> graphs_;  ///< users of pieces that were not seen to have ended
};

}  // namespace rmm_uvm::mr::detail
