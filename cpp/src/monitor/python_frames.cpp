// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/python_frames.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

constexpr std::size_t word            = sizeof(std::uintptr_t);
constexpr std::size_t type_in_object  = word;      // after the count of references
constexpr std::size_t frame_in_object = 3 * word;  // after the head and the frame before it
constexpr std::size_t words_of_frame  = 9;
constexpr std::size_t words_of_state  = 20;
constexpr std::uintptr_t tag_bits     = 3;  // of pointers, since Python 3.14

[[nodiscard]] std::uintptr_t word_at(std::uintptr_t address) noexcept
{
  std::uintptr_t value = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): another's structure, known by its addresses only
  std::memcpy(&value, reinterpret_cast<void const*>(address), word);
  return value;
}

/** @brief Reads what may be no address at all. */
class careful_reader {
 public:
  careful_reader() noexcept : file_{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)} {}
  careful_reader(careful_reader const&)            = delete;
  careful_reader& operator=(careful_reader const&) = delete;
  careful_reader(careful_reader&&)                 = delete;
  careful_reader& operator=(careful_reader&&)      = delete;
  ~careful_reader()
  {
    if (file_ >= 0) { ::close(file_); }
  }
  /** @return 0 where there is none */
  [[nodiscard]] std::uintptr_t word_at(std::uintptr_t address) const noexcept
  {
    std::uintptr_t found = 0;
    bool const is_read =
      file_ >= 0 && address % word == 0 &&
      ::pread(file_, &found, word, static_cast<off_t>(address)) == static_cast<ssize_t>(word);
    return is_read ? found : 0;
  }

 private:
  int file_;
};

/** @brief The offset at which `holds` says yes. */
template <typename predicate>
[[nodiscard]] std::optional<std::size_t> first_word(std::size_t words, predicate const& holds)
{
  for (std::size_t offset = 0; offset < words * word; offset += word) {
    if (holds(offset)) { return offset; }
  }
  return std::nullopt;
}

}  // namespace

std::optional<frame_layout> find_layout(std::uintptr_t state,
                                        std::span<known_frame const> known,
                                        code_facts const& facts)
{
  if (state == 0 || known.size() < 2) { return std::nullopt; }
  careful_reader const reader;  // another Python may keep something else there
  std::vector<std::uintptr_t> frames;
  for (auto const& each : known) {
    frames.push_back(reader.word_at(each.object + frame_in_object));
  }
  // Where `holds` says yes for each frame: its number, an offset, and the word there.
  auto const in_all = [&](auto const& holds) {
    return first_word(words_of_frame, [&](std::size_t offset) {
      for (std::size_t i = 0; i < frames.size(); ++i) {
        if (!holds(i, offset, reader.word_at(frames[i] + offset))) { return false; }
      }
      return true;
    });
  };
  auto const code = in_all([&](std::size_t i, std::size_t, std::uintptr_t value) {
    return (value & ~tag_bits) == known[i].place.code;
  });
  // A frame of the interpreter's own may lie between.
  auto const previous    = in_all([&](std::size_t i, std::size_t offset, std::uintptr_t value) {
    bool const outermost = i + 1 == frames.size();
    return outermost || value == frames[i + 1] || reader.word_at(value + offset) == frames[i + 1];
  });
  auto const instruction = in_all([&](std::size_t i, std::size_t, std::uintptr_t value) {
    return value == known[i].place.code + facts.instructions + known[i].place.instruction;
  });
  if (!code || !previous || !instruction) { return std::nullopt; }
  frame_layout found;
  found.code_in_frame        = *code;
  found.previous_in_frame    = *previous;
  found.instruction_in_frame = *instruction;
  found.instructions_in_code = facts.instructions;
  found.contents             = facts.contents;
  found.code_type            = facts.type;
  if (auto const outer = reader.word_at(frames.back() + *previous); outer != 0) {
    found.own_code = reader.word_at(outer + *code) & ~tag_bits;
  }
  auto const in_state = first_word(words_of_state, [&](std::size_t offset) {
    if (reader.word_at(state + offset) == frames.front()) { return true; }
    found.frame_in_holder = first_word(2, [&](std::size_t inner) {
      return reader.word_at(reader.word_at(state + offset) + inner) == frames.front();
    });
    return found.frame_in_holder.has_value();
  });
  if (!in_state) { return std::nullopt; }
  found.frame_in_state = *in_state;
  std::vector<code_place> read(known.size());
  read.resize(read_frames(state, found, read));
  auto const as_known = [](code_place const& one, known_frame const& other) {
    return one == other.place;
  };
  bool const agrees = std::equal(read.begin(), read.end(), known.begin(), known.end(), as_known);
  return agrees ? std::optional{found} : std::nullopt;
}

std::size_t read_frames(std::uintptr_t state,
                        frame_layout const& layout,
                        std::span<code_place> frames) noexcept
{
  if (state == 0) { return 0; }
  auto frame = word_at(state + layout.frame_in_state);
  if (layout.frame_in_holder && frame != 0) { frame = word_at(frame + *layout.frame_in_holder); }
  std::size_t count = 0;
  while (frame != 0 && count < frames.size()) {
    auto const code = word_at(frame + layout.code_in_frame) & ~tag_bits;
    // The interpreter puts frames of its own between, which have no code, or always the same.
    if (code != 0 && code != layout.own_code &&
        word_at(code + type_in_object) == layout.code_type) {
      auto const begin = code + layout.instructions_in_code;
      frames[count++]  = {
        code, word_at(frame + layout.instruction_in_frame) - begin, layout.contents(code)};
    }
    frame = word_at(frame + layout.previous_in_frame);
  }
  return count;
}

}  // namespace rmm_uvm::monitor
