// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "failing_new.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool armed            = false;
thread_local std::size_t remaining = 0;
thread_local bool has_thrown       = false;

void* allocate_or_throw(std::size_t bytes)
{
  if (armed && remaining-- == 0) {
    armed      = false;
    has_thrown = true;
    throw std::bad_alloc{};
  }
  if (auto* const memory = std::malloc(bytes == 0 ? 1 : bytes)) { return memory; }  // NOLINT
  throw std::bad_alloc{};
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }                 // NOLINT
void operator delete[](void* memory) noexcept { std::free(memory); }               // NOLINT
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }    // NOLINT
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }  // NOLINT

namespace rmm_uvm::tests {

failing_new::failing_new(std::size_t nth) noexcept
{
  has_thrown = false;
  remaining  = nth;
  armed      = true;
}

failing_new::~failing_new() { armed = false; }

bool failing_new::has_failed() noexcept { return has_thrown; }

}  // namespace rmm_uvm::tests
