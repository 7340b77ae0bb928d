// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/nvml_api.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace rmm_uvm::tests {

inline constexpr cuda::nvml_api::result nvml_failure = 3;  // NVML_ERROR_NOT_SUPPORTED

/** @brief An NVML of two devices; the table holds plain functions, so one is active at a time. */
struct fake_nvml {
  fake_nvml() { active = this; }
  ~fake_nvml() { active = nullptr; }
  fake_nvml(fake_nvml const&)            = delete;
  fake_nvml& operator=(fake_nvml const&) = delete;
  fake_nvml(fake_nvml&&)                 = delete;
  fake_nvml& operator=(fake_nvml&&)      = delete;

  int users{0};         ///< inits less shutdowns
  std::string failing;  ///< the call that answers `failure`
  std::vector<cuda::nvml_api::process_info> running;
  cuda::nvml_api::utilization_rates rates{75, 10};
  std::vector<int> links{1, 1, 0};     ///< of each device: whether it is active
  unsigned long long sent_kib{0};      ///< by the links of each device
  unsigned long long received_kib{0};  ///< likewise
  long long now_us{0};                 ///< when they are read
  bool counts_links{true};             ///< false: a card that does not count what they carry
  std::array<char, 2> devices{};       ///< their addresses are the handles

  [[nodiscard]] cuda::nvml_api::result answer(std::string const& call) const
  {
    return failing == call ? nvml_failure : cuda::nvml_api::success;
  }

  /** @brief Answers one field, as the type that NVML gives it. */
  void answer_field(cuda::nvml_api::field_value& field) const
  {
    field.answered     = counts_links ? cuda::nvml_api::success : nvml_failure;
    field.timestamp_us = now_us;
    field.type         = cuda::nvml_api::unsigned_long_long_value;
    // A sum over all links is asked for; of a single one there is no answer here.
    bool const all = field.scope == cuda::nvml_api::all_links;
    switch (field.field) {
      case cuda::nvml_api::link_sent_kib: field.value.wide = all ? sent_kib : 0; break;
      case cuda::nvml_api::link_received_kib: field.value.wide = all ? received_kib : 0; break;
      case cuda::nvml_api::link_speed_mbps:
        field.type         = cuda::nvml_api::unsigned_value;
        field.value.narrow = 25'000;
        break;
      default: field.answered = nvml_failure;
    }
  }

  static inline fake_nvml* active = nullptr;

  [[nodiscard]] static cuda::nvml_api api()
  {
    cuda::nvml_api table;
    table.init = [] {
      auto const result = active->answer("init");
      if (result == cuda::nvml_api::success) { ++active->users; }
      return result;
    };
    table.shutdown = [] {
      --active->users;
      return cuda::nvml_api::success;
    };
    table.error_string = [](cuda::nvml_api::result) -> char const* { return "Not Supported"; };
    table.device_count = [](unsigned* count) {
      *count = 2;
      return active->answer("device_count");
    };
    table.by_index = [](unsigned index, cuda::nvml_api::device* found) {
      *found = &active->devices.at(index);
      return active->answer("by_index" + std::to_string(index));
    };
    table.by_uuid = [](char const* uuid, cuda::nvml_api::device* found) {
      if (std::string{uuid} != "GPU-0" && std::string{uuid} != "GPU-1") { return nvml_failure; }
      *found = &active->devices.at(uuid[4] == '0' ? 0 : 1);
      return active->answer("by_uuid");
    };
    table.uuid = [](cuda::nvml_api::device device, char* text, unsigned length) {
      std::strncpy(text, device == &active->devices[0] ? "GPU-0" : "GPU-1", length);
      return active->answer("uuid");
    };
    table.name = [](cuda::nvml_api::device, char* text, unsigned length) {
      std::strncpy(text, "fake GPU", length);
      return active->answer("name");
    };
    table.memory = [](cuda::nvml_api::device, cuda::nvml_api::memory_v1* memory) {
      *memory = {100, 60, 40};
      return active->answer("memory");
    };
    table.memory2 = [](cuda::nvml_api::device, cuda::nvml_api::memory_v2* memory) {
      // NVML refuses a version that it does not know: size and number, sizeof | 2 << 24.
      if (memory->version != 0x02000028) { return nvml_failure; }
      memory->total    = 100;
      memory->reserved = 10;
      memory->free     = 60;
      memory->used     = 30;
      return active->answer("memory2");
    };
    table.pcie_throughput = [](cuda::nvml_api::device, int counter, unsigned* value) {
      *value = counter == cuda::nvml_api::pcie_received ? 2U : 3U;
      return active->answer(counter == cuda::nvml_api::pcie_received ? "received" : "sent");
    };
    table.processes =
      [](cuda::nvml_api::device, unsigned* count, cuda::nvml_api::process_info* infos) {
        auto const room = *count;
        *count          = static_cast<unsigned>(active->running.size());
        if (room < *count) { return cuda::nvml_api::too_small; }
        std::copy(active->running.begin(), active->running.end(), infos);
        return active->answer("processes");
      };
    table.utilization = [](cuda::nvml_api::device, cuda::nvml_api::utilization_rates* rates) {
      *rates = active->rates;
      return active->answer("utilization");
    };
    table.link_state = [](cuda::nvml_api::device, unsigned link, int* state) {
      if (link >= active->links.size()) { return nvml_failure; }
      *state = active->links[link];
      return active->answer("link_state");
    };
    table.field_values = [](
                           cuda::nvml_api::device, int count, cuda::nvml_api::field_value* values) {
      for (auto& each : std::span{values, static_cast<std::size_t>(count)}) {
        active->answer_field(each);
      }
      return active->answer("field_values");
    };
    return table;
  }
};

}  // namespace rmm_uvm::tests
