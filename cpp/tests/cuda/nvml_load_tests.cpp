// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_nvml.hpp"

#include <rmm_uvm/cuda/nvml_load.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_nvml;

constexpr long long second_us             = 1'000'000;
constexpr unsigned long long gigabyte_kib = 1'000'000'000 / 1024;  // nearly

class NvmlLoad : public testing::Test {
 protected:
  fake_nvml fake;
  std::shared_ptr<nvml> library{nvml::open(fake_nvml::api()).library};

  /** @brief The reason why links cannot be read. */
  [[nodiscard]] std::string nvlink_reason() const
  {
    nvlink_reading links;
    return library->nvlink("GPU-0", links).reason;
  }
};

TEST_F(NvmlLoad, UtilizationIsReadInPercent)
{
  nvml_utilization found;
  ASSERT_TRUE(library->utilization("GPU-1", found).available);
  EXPECT_EQ(found.kernel_percent, 75U);
  EXPECT_EQ(found.memory_percent, 10U);
}

TEST_F(NvmlLoad, UtilizationThatIsNotToldIsAReason)
{
  nvml_utilization found;
  fake.failing = "utilization";  // a device divided by MIG
  EXPECT_EQ(library->utilization("GPU-0", found).reason,
            "nvmlDeviceGetUtilizationRates: Not Supported");
  EXPECT_NE(library->utilization("GPU-9", found).reason.find("GPU-9"), std::string::npos);
}

TEST_F(NvmlLoad, LinksThatAreActiveAndWhatTheyCarriedAreRead)
{
  fake.sent_kib     = 3;
  fake.received_kib = 5;
  fake.now_us       = 7;
  nvlink_reading found;
  ASSERT_TRUE(library->nvlink("GPU-0", found).available);
  EXPECT_EQ(found.active_links, 2U);
  EXPECT_EQ(found.link_bytes_per_second, 25'000'000'000U);
  EXPECT_EQ(found.sent_bytes, 3U * 1024);
  EXPECT_EQ(found.received_bytes, 5U * 1024);
  EXPECT_EQ(found.read_at_us, 7);
}

TEST_F(NvmlLoad, LinksThatAreNotThereOrNotToldAreReasons)
{
  fake.links = {0, 0};
  EXPECT_EQ(nvlink_reason(), "no NVLink of GPU-0 is active, or NVML does not tell");
  fake.links        = {1};
  fake.counts_links = false;
  EXPECT_EQ(nvlink_reason(), "NVML does not count what the NVLinks of GPU-0 carry");
  fake.failing = "field_values";
  EXPECT_EQ(nvlink_reason(), "nvmlDeviceGetFieldValues: Not Supported");
  auto old       = fake_nvml::api();
  old.link_state = nullptr;
  library        = nvml::open(old).library;
  EXPECT_EQ(nvlink_reason(), "this NVML has no questions about NVLink: update the driver");
}

TEST(LinkFraction, IsThatOfTheBusierWayOfAllLinksTogether)
{
  nvlink_reading const earlier{2, 25'000'000'000, 100, 100, 0};
  auto later       = earlier;
  later.read_at_us = second_us;
  EXPECT_EQ(link_fraction(earlier, later), 0.0);
  later.sent_bytes += 5'000'000'000;
  later.received_bytes += 10'000'000'000;
  EXPECT_DOUBLE_EQ(link_fraction(earlier, later).value_or(-1), 0.2);
}

TEST(LinkFraction, WithoutRateOrTimeOrAfterAResetIsNone)
{
  nvlink_reading const earlier{2, 25'000'000'000, 100, 100, 0};
  EXPECT_EQ(link_fraction(earlier, earlier), std::nullopt);
  auto anew = nvlink_reading{2, 25'000'000'000, 50, 200, second_us};
  EXPECT_EQ(link_fraction(earlier, anew), std::nullopt);
  anew = nvlink_reading{2, 0, 200, 200, second_us};
  EXPECT_EQ(link_fraction(earlier, anew), std::nullopt);
}

TEST_F(NvmlLoad, ReaderTellsLinksFromItsSecondReadingOn)
{
  nvml_load_reader reader{library, "GPU-0"};
  neighbor_load load;
  ASSERT_TRUE(reader.read(load));
  EXPECT_EQ(load.kernel_fraction, 0.75);
  EXPECT_EQ(load.memory_fraction, 0.1);
  EXPECT_EQ(load.link_fraction, std::nullopt);
  fake.now_us   = second_us;
  fake.sent_kib = 25 * gigabyte_kib;
  ASSERT_TRUE(reader.read(load));
  EXPECT_NEAR(load.link_fraction.value_or(-1), 0.5, 1e-6);
  ASSERT_TRUE(load.links);
  EXPECT_EQ(load.links->sent_bytes, 25 * gigabyte_kib * 1024);
  EXPECT_EQ(load.links->received_bytes, 0U);
  EXPECT_EQ(load.links->most_bytes, 50'000'000'000U);
}

TEST_F(NvmlLoad, ReaderTellsWhatItCanAndIsFalseWhereThatIsNothing)
{
  neighbor_load load;
  fake.links = {};
  nvml_load_reader without_links{library, "GPU-0"};
  ASSERT_TRUE(without_links.read(load));
  EXPECT_EQ(load.kernel_fraction, 0.75);
  fake.failing = "utilization";
  EXPECT_FALSE(without_links.read(load));
  nvml_load_reader unknown{library, "GPU-9"};
  EXPECT_FALSE(unknown.read(load));
  EXPECT_EQ(load.kernel_fraction, 0.75);
}

TEST(UuidText, IsWrittenAsNvmlWritesIt)
{
  EXPECT_EQ(uuid_text({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255}),
            "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
}

}  // namespace
}  // namespace rmm_uvm::cuda
