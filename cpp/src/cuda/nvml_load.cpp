// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How busy a device is, and its NVLinks.
#include <rmm_uvm/cuda/nvml_load.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

constexpr std::uint64_t kib      = 1024;
constexpr std::uint64_t megabyte = 1'000'000;

/** @brief The number of a field; none where the device does not have it. */
[[nodiscard]] std::optional<std::uint64_t> number_of(nvml_api::field_value const& field) noexcept
{
  if (field.answered != nvml_api::success) { return std::nullopt; }
  switch (field.type) {
    case nvml_api::unsigned_value: return field.value.narrow;
    case nvml_api::unsigned_long_value:
    case nvml_api::unsigned_long_long_value: return field.value.wide;
    default: return std::nullopt;
  }
}

[[nodiscard]] nvml_api::field_value asked(unsigned field, unsigned scope) noexcept
{
  nvml_api::field_value result;
  result.field = field;
  result.scope = scope;
  return result;
}

[[nodiscard]] double fraction_of(unsigned percent) noexcept { return percent / 100.0; }

}  // namespace

availability nvml::utilization(std::string const& uuid, nvml_utilization& found) const
{
  nvml_api::device device = nullptr;
  if (auto known = find(uuid, device); !known.available) { return known; }
  nvml_api::utilization_rates rates;
  auto const result = api_.utilization(device, &rates);
  if (result == nvml_api::success) { found = {rates.gpu, rates.memory}; }
  return answered(result, "nvmlDeviceGetUtilizationRates");
}

availability nvml::nvlink(std::string const& uuid, nvlink_reading& found) const
{
  if (api_.link_state == nullptr || api_.field_values == nullptr) {
    return availability::no("this NVML has no questions about NVLink: update the driver");
  }
  nvml_api::device device = nullptr;
  if (auto known = find(uuid, device); !known.available) { return known; }
  nvlink_reading reading;
  for (unsigned link = 0; link < nvml_api::link_limit; ++link) {
    int active = 0;
    // A link that the device does not have ends the list.
    if (api_.link_state(device, link, &active) != nvml_api::success) { break; }
    if (active != 0) { ++reading.active_links; }
  }
  if (reading.active_links == 0) {
    return availability::no("no NVLink of " + uuid + " is active, or NVML does not tell");
  }
  std::array fields{asked(nvml_api::link_sent_kib, nvml_api::all_links),
                    asked(nvml_api::link_received_kib, nvml_api::all_links),
                    asked(nvml_api::link_speed_mbps, 0)};
  auto const result = api_.field_values(device, static_cast<int>(fields.size()), fields.data());
  if (result != nvml_api::success) { return answered(result, "nvmlDeviceGetFieldValues"); }
  auto const sent     = number_of(fields[0]);
  auto const received = number_of(fields[1]);
  if (!sent || !received) {
    return availability::no("NVML does not count what the NVLinks of " + uuid + " carry");
  }
  reading.sent_bytes            = *sent * kib;
  reading.received_bytes        = *received * kib;
  reading.link_bytes_per_second = number_of(fields[2]).value_or(0) * megabyte;
  reading.read_at_us            = fields[0].timestamp_us;
  found                         = reading;
  return availability::yes();
}

std::optional<link_traffic> traffic_between(nvlink_reading const& earlier,
                                            nvlink_reading const& later) noexcept
{
  auto const rate = static_cast<double>(later.link_bytes_per_second) * later.active_links;
  auto const us   = later.read_at_us - earlier.read_at_us;
  bool const anew =
    later.sent_bytes < earlier.sent_bytes || later.received_bytes < earlier.received_bytes;
  if (rate <= 0 || us <= 0 || anew) { return std::nullopt; }
  return link_traffic{later.sent_bytes - earlier.sent_bytes,
                      later.received_bytes - earlier.received_bytes,
                      static_cast<std::uint64_t>(rate * static_cast<double>(us) / 1e6)};
}

std::optional<double> link_fraction(nvlink_reading const& earlier,
                                    nvlink_reading const& later) noexcept
{
  auto const traffic = traffic_between(earlier, later);
  if (!traffic || traffic->most_bytes == 0) { return std::nullopt; }
  return static_cast<double>(std::max(traffic->sent_bytes, traffic->received_bytes)) /
         static_cast<double>(traffic->most_bytes);
}

nvml_load_reader::nvml_load_reader(std::shared_ptr<nvml const> library, std::string uuid)
  : library_{std::move(library)}, uuid_{std::move(uuid)}
{
}

bool nvml_load_reader::read(neighbor_load& load) noexcept
try {
  neighbor_load found;
  nvml_utilization used;
  nvlink_reading links;
  bool const tells = library_->utilization(uuid_, used).available;
  if (tells) {
    found.kernel_fraction = fraction_of(used.kernel_percent);
    found.memory_fraction = fraction_of(used.memory_percent);
  }
  bool const linked = library_->nvlink(uuid_, links).available;
  if (linked) {
    std::lock_guard const lock{mutex_};
    if (before_) {
      found.link_fraction = link_fraction(*before_, links);
      found.links         = traffic_between(*before_, links);
    }
    before_ = links;
  }
  if (tells || linked) { load = found; }
  return tells || linked;
} catch (...) {  // no memory for a reason that nobody reads
  return false;
}

std::string uuid_text(std::array<std::uint8_t, 16> const& uuid)
{
  constexpr char const* digits = "0123456789abcdef";
  std::string text             = "GPU-";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) { text += '-'; }
    text += digits[uuid[i] >> 4U];
    text += digits[uuid[i] & 15U];
  }
  return text;
}

load_reader_maker nvml_load_readers()
{
  // Shared by the copies of the function; the driver that keeps it makes one reader at a time.
  auto library = std::make_shared<std::shared_ptr<nvml const>>();
  return
    [library](std::array<std::uint8_t, 16> const& uuid) -> std::shared_ptr<neighbor_load_reader> {
      if (*library == nullptr) {
        auto const loaded = load_nvml_api();
        if (!loaded.loaded.available) { return nullptr; }
        *library = nvml::open(loaded.api).library;
        if (*library == nullptr) { return nullptr; }
      }
      return std::make_shared<nvml_load_reader>(*library, uuid_text(uuid));
    };
}

}  // namespace rmm_uvm::cuda
