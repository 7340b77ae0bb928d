// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace rmm_uvm {

/**
 * @brief Nodes of one map that were freed, and are handed out again.
 *
 * What comes and goes all the time would spend a sixth of its instructions in malloc.
 */
class freed_nodes {
 public:
  freed_nodes()                              = default;
  freed_nodes(freed_nodes const&)            = delete;
  freed_nodes& operator=(freed_nodes const&) = delete;
  freed_nodes(freed_nodes&&)                 = delete;
  freed_nodes& operator=(freed_nodes&&)      = delete;
  ~freed_nodes()
  {
    while (first_ != nullptr) {
      ::operator delete(take());
    }
  }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] void* take() noexcept
  {
    --count_;
    return std::exchange(first_, first_->next);
  }
  /** @return false where there are enough */
  [[nodiscard]] bool keep(void* freed) noexcept
  {
    if (count_ == most) { return false; }
    ++count_;
    first_ = ::new (freed) node{first_};
    return true;
  }

 private:
  static constexpr std::size_t most = 64;
  struct node {
    node* next;
  };
  node* first_{nullptr};
  std::size_t count_{0};
};

/** @brief Allocates the nodes of a map, and all else from the heap. */
template <typename T>
struct node_allocator {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  using value_type = T;
  explicit node_allocator(freed_nodes& from) noexcept : freed{&from} {}
  template <typename Other>
  explicit(false) node_allocator(node_allocator<Other> const& other) noexcept : freed{other.freed}
  {
  }
  [[nodiscard]] T* allocate(std::size_t count)
  {
    if constexpr (is_node) {
      if (count == 1 && !freed->empty()) { return static_cast<T*>(freed->take()); }
    }
    return std::allocator<T>{}.allocate(count);
  }
  void deallocate(T* ptr, std::size_t count) noexcept
  {
    if constexpr (is_node) {
      if (count == 1 && freed->keep(ptr)) { return; }
    }
    std::allocator<T>{}.deallocate(ptr, count);
  }
  bool operator==(node_allocator const&) const noexcept = default;

  static constexpr bool is_node = sizeof(T) > sizeof(void*);  // else an array of buckets
  freed_nodes* freed;
};

}  // namespace rmm_uvm
