// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/host_pages.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

constexpr int look_rounds = 3;  // a round may meet a CPU that is asked for the page meanwhile

/** @brief Adds pages to parts that are ascending. */
void add_pages(std::vector<memory_range>& parts, std::uintptr_t first, std::uintptr_t end)
{
  if (!parts.empty() && parts.back().end() == first) {
    parts.back().bytes += end - first;
  } else {
    parts.push_back({first, end - first});
  }
}

/** @brief Moves a block, and waits until it is there. */
[[nodiscard]] status send(uvm_driver& driver, memory_range block, location where, bool directly)
{
  if (directly) { return driver.migrate(block, where); }
  stream_handle stream = nullptr;
  auto result          = driver.own_stream(own_stream_use::evictions, stream);
  if (result.ok()) { result = driver.prefetch(block, where, stream); }
  return result.ok() ? driver.synchronize(stream) : result;
}

/** @return what went wrong; empty when the look tells what was done */
[[nodiscard]] std::string look_there_and_back(uvm_driver& driver,
                                              host_pages& pages,
                                              memory_range block,
                                              bool directly)
{
  for (auto const where :
       {location::host(), location::device(driver.info().device_id), location::host()}) {
    std::vector<memory_range> parts;
    auto result = send(driver, block, where, directly);
    if (result.ok()) { result = pages.not_on_host(block, parts); }
    if (!result.ok()) {
      return std::string{result.call} + " failed in the self-test (" +
             std::to_string(result.native_error) + ")";
    }
    bool const all  = parts.size() == 1 && parts.front().bytes == block.bytes;
    bool const none = parts.empty();
    if (!(where.is_host() ? none : all)) {
      return "the self-test found a block where it was not: this kernel driver maps pages "
             "otherwise";
    }
  }
  return {};
}

[[nodiscard]] std::string test_a_look(uvm_driver& driver, host_pages& pages)
{
  std::uintptr_t address = 0;
  if (!driver.allocate_managed(va_block_bytes, address).ok()) {
    return "the self-test found no managed memory";
  }
  memory_range const block{address, va_block_bytes};
  std::memset(reinterpret_cast<void*>(address), 0, va_block_bytes);
  std::string failure;
  for (int round = 0; round < look_rounds; ++round) {
    failure = look_there_and_back(driver, pages, block, false);
    if (failure.empty() && driver.info().direct_migration.available) {
      failure = look_there_and_back(driver, pages, block, true);
    }
    if (failure.empty()) { break; }
  }
  static_cast<void>(driver.free_managed(address));
  return failure;
}

}  // namespace

host_pages::host_pages(descriptor file, std::shared_ptr<system_calls> system)
  : system_{std::move(system)},
    file_{std::move(file)},
    page_bytes_{static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))}
{
}

opened_host_pages host_pages::open(uvm_driver& driver, std::shared_ptr<system_calls> const& system)
{
  auto const refuse = [](std::string why) {
    return opened_host_pages{nullptr, availability::no(std::move(why))};
  };
  if (!driver.info().concurrent_managed_access.available) {
    return refuse(driver.info().concurrent_managed_access.reason);
  }
  if (auto const counted = driver.counters().available(); !counted.available) {
    return refuse("its self-test needs counters: " + counted.reason);
  }
  auto const number = system->open_to_read(pagemap::path);
  if (number < 0) {
    return refuse(std::string{pagemap::path} + " cannot be opened (" + std::strerror(-number) +
                  ")");
  }
  std::unique_ptr<host_pages> pages{new host_pages{descriptor{system, number}, system}};
  auto failure = test_a_look(driver, *pages);
  if (!failure.empty()) { return refuse(std::move(failure)); }
  return {std::move(pages), availability::yes()};
}

status host_pages::not_on_host(memory_range range, std::vector<memory_range>& parts) noexcept
try {
  if (range.bytes == 0) { return {}; }
  auto const first = range.address / page_bytes_ * page_bytes_;
  auto const end   = (range.end() + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  memory_range const whole{first, end - first};
  int failure = 0;
  if (scans_) {
    failure = scan(whole, parts);
    if (failure == ENOTTY || failure == EINVAL) { scans_ = false; }  // before Linux 6.7
  }
  if (!scans_) { failure = read_entries(whole, parts); }
  if (failure != 0) { return {status_code::driver_error, failure, "pagemap"}; }
  return {};
} catch (std::exception const&) {
  return {status_code::out_of_memory, 0, "not_on_host"};
}

/** @return 0 or errno */
int host_pages::scan(memory_range range, std::vector<memory_range>& parts)
{
  std::array<pagemap::region, 64> regions;
  for (auto from = range.address; from < range.end();) {
    pagemap::scan_arguments asked;
    asked.start               = from;
    asked.end                 = range.end();
    asked.regions             = reinterpret_cast<std::uintptr_t>(regions.data());
    asked.region_count        = regions.size();
    asked.inverted_categories = pagemap::present_category;
    asked.all_of_categories   = pagemap::present_category;
    auto const found          = system_->ioctl(file_.get(), pagemap::scan_request, &asked);
    if (found < 0) { return -found; }
    for (int index = 0; index < std::min(found, static_cast<int>(regions.size())); ++index) {
      auto const& each = regions[static_cast<std::size_t>(index)];
      add_pages(parts, each.start, each.end);
    }
    if (asked.walk_end <= from) { return EIO; }
    from = asked.walk_end;
  }
  return 0;
}

/** @return 0 or errno */
int host_pages::read_entries(memory_range range, std::vector<memory_range>& parts)
{
  std::vector<std::uint64_t> entries(va_block_bytes / page_bytes_);
  for (auto from = range.address; from < range.end(); from += va_block_bytes) {
    auto const pages = std::min(range.end() - from, va_block_bytes) / page_bytes_;
    auto const bytes = pages * sizeof entries[0];
    auto const read =
      system_->read_at(file_.get(), entries.data(), bytes, from / page_bytes_ * sizeof entries[0]);
    if (read < 0) { return static_cast<int>(-read); }
    if (std::cmp_not_equal(read, bytes)) { return EIO; }
    for (std::size_t page = 0; page < pages; ++page) {
      auto const address = from + page * page_bytes_;
      if ((entries[page] & pagemap::present_bit) == 0) {
        add_pages(parts, address, address + page_bytes_);
      }
    }
  }
  return 0;
}

}  // namespace rmm_uvm::cuda
