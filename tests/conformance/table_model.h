#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/row_sums.h"
#include "argosy/ps/table_file.h"
#include "argosy/world/env.h"

/// A reference model of tables, row by row and call by call, and short ways to call one.
namespace argosy {

using Keys = std::vector<Key>;
using Floats = std::vector<float>;

/// Different keys with their side columns, each column there or not.
struct KeyColumns {
  Keys keys = {};
  std::vector<uint32_t> counts = {};
  Floats shows = {}, clicks = {};
  ps::RowColumns columns() const { return {counts, shows, clicks}; }
};

/// A table with a folder of its own for rows that are not in memory.
inline std::unique_ptr<ps::RowTable> make_table(const ps::TableSpec& spec) {
  struct Place {
    const std::unique_ptr<Env> env = real_env();
    const TestFolder folder;
  };
  static Place place;
  static std::atomic<int> tables = 0;
  return make_row_table(
      spec, ps::TableHome::in(*place.env, place.folder.path() + "/" + std::to_string(tables++)));
}

class TableModel {
 public:
  using Images = std::map<Key, Floats>;
  explicit TableModel(const ps::TableSpec& spec) : recipe_(spec) {}

  const Images& images(ps::Section section) const {
    return section == ps::Section::rows ? content_.rows : content_.counted;
  }
  /// Weights of the i-th key, as read() gives them.
  Floats weights(const KeyColumns& list, size_t i, ps::Purpose purpose) const {
    const Key key = list.keys[i];
    Floats weights(recipe_.dim(), 0.0F);
    if (const auto row = content_.rows.find(key); row != content_.rows.end())
      std::copy_n(row->second.data() + recipe_.weights_at(), weights.size(), weights.data());
    else if (purpose == ps::Purpose::training &&
             recipe_.admits(key, count_before(key) + count(list, i)))
      recipe_.first_weights(key, weights);
    return weights;
  }
  Floats read(const KeyColumns& list, ps::Purpose purpose) const {
    Floats all;
    for (size_t i = 0; i < list.keys.size(); ++i) {
      const Floats one = weights(list, i, purpose);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  void apply(const KeyColumns& list, const Floats& grads, uint64_t step) {
    for (size_t i = 0; i < list.keys.size(); ++i) {
      const Key key = list.keys[i];
      Floats* const row = row_for_apply(key, count(list, i));
      if (row == nullptr) continue;
      if (recipe_.tracks_unseen()) row->front() = 0;
      if (recipe_.scores_rows())
        recipe_.add_scores(row->data(), list.shows.empty() ? count(list, i) : list.shows[i],
                           list.clicks.empty() ? 0 : list.clicks[i]);
      ps::RowStep one{row->data() + recipe_.weights_at(), grads.data() + i * recipe_.dim()};
      recipe_.apply({&one, 1}, recipe_.update_of(step), scratch_);
    }
  }
  void assign(const Keys& keys, const Floats& rows) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = content_.rows.find(keys[i]);
      Floats& row = found == content_.rows.end() ? make(keys[i]) : found->second;
      if (recipe_.tracks_unseen()) row.front() = 0;
      std::copy_n(rows.data() + i * recipe_.dim(), recipe_.dim(),
                  row.data() + recipe_.weights_at());
    }
  }
  void put(const Keys& keys, const Floats& images) {
    const size_t width = recipe_.floats(ps::Section::rows);
    for (size_t i = 0; i < keys.size(); ++i) {
      content_.rows[keys[i]].assign(images.data() + i * width, images.data() + (i + 1) * width);
      content_.counted.erase(keys[i]);
    }
  }
  size_t shrink(uint32_t unseen) {
    const auto erase_old = [&](Images& images, size_t age_at) {
      for (auto& [key, image] : images) ++image[age_at];
      return std::erase_if(images, [&](const auto& each) {
        return each.second[age_at] >= static_cast<float>(unseen);
      });
    };
    erase_old(content_.counted, 1);
    return erase_old(content_.rows, 0);
  }

  /// Images of all rows and counted keys.
  struct Content {
    Images rows = {}, counted = {};
    bool operator==(const Content&) const = default;
  };
  const Content& content() const { return content_; }
  void set_content(Content content) { content_ = std::move(content); }

 private:
  static float count(const KeyColumns& list, size_t i) {
    return list.counts.empty() ? 1 : static_cast<float>(list.counts[i]);
  }
  float count_before(Key key) const {
    const auto found = content_.counted.find(key);
    return found == content_.counted.end() ? 0 : found->second[0];
  }
  Floats* row_for_apply(Key key, float count) {
    if (const auto row = content_.rows.find(key); row != content_.rows.end()) return &row->second;
    const float all = count_before(key) + count;
    if (recipe_.admits(key, all)) return &make(key);
    if (!recipe_.counts_keys()) return nullptr;
    content_.counted[key] = recipe_.tracks_unseen() ? Floats{all, 0} : Floats{all};
    return nullptr;
  }
  Floats& make(Key key) {
    Floats& row = content_.rows[key];
    row.assign(recipe_.floats(ps::Section::rows), 0.0F);
    recipe_.make_row(key, row.data());
    content_.counted.erase(key);
    return row;
  }

  ps::RowRecipe recipe_;
  Content content_;
  Floats scratch_;
};

/// All that a table would save.
inline TableModel::Content content_of(ps::RowTable& table) {
  TableModel::Content content;
  for (const ps::Section section : {ps::Section::rows, ps::Section::counted}) {
    const size_t width = table.recipe().floats(section);
    Keys found;
    Floats images;
    table.images().read(section, table.images().keys(section), found, images);
    for (size_t i = 0; i < found.size(); ++i)
      (section == ps::Section::rows ? content.rows : content.counted)[found[i]].assign(
          images.data() + i * width, images.data() + (i + 1) * width);
  }
  return content;
}

/// Images as a walk meets them, each once.
inline TableModel::Images walked(ps::RowTable& table, ps::Section section, size_t page) {
  TableModel::Images met;
  ps::RowImages::Cursor cursor;
  while (!cursor.at_end)
    table.images().visit(section, cursor, page, [&](Key key, std::span<const float> image) {
      EXPECT_TRUE(met.try_emplace(key, image.begin(), image.end()).second)
          << key << " is met twice";
    });
  return met;
}

inline std::vector<std::byte> saved(ps::RowTable& table) {
  ByteBuffer buffer;
  save_table(table, buffer);
  return {buffer.bytes().begin(), buffer.bytes().end()};
}

inline void load(ps::RowTable& table, std::span<const std::byte> bytes) {
  ByteSource source(bytes, "a save");
  load_table(table, source);
}

inline Floats read(ps::RowTable& table, const KeyColumns& list,
                   ps::Purpose purpose = ps::Purpose::training) {
  ps::Ticket ticket;
  Floats rows(list.keys.size() * table.spec().dim, -99.0F);
  read_rows(table, list.keys, list.columns(), purpose, rows, ticket);
  return rows;
}
inline Floats read(ps::RowTable& table, const Keys& keys) { return read(table, KeyColumns{keys}); }

/// Applies gradients to keys, which may repeat.
inline void apply(ps::RowTable& table, const KeyColumns& list, const Floats& grads, uint64_t step) {
  ps::Ticket ticket;
  ps::RowSums sums;
  apply_rows(table, list.keys, list.columns(), grads, step, sums, ticket);
}
inline void apply(ps::RowTable& table, const Keys& keys, const Floats& grads, uint64_t step) {
  apply(table, KeyColumns{keys}, grads, step);
}

/// Draws what a test does from a seed.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t n) { return random_.below(drawn_++, n); }
  float normal() { return static_cast<float>(random_.normal(drawn_++)); }
  /// From -8 to 8.
  float integer() { return static_cast<float>(below(17)) - 8; }
  /// Some of few and some of many, in no order, 0 and the largest among them.
  KeyColumns keys(size_t most) {
    KeyColumns list;
    const size_t n = below(most + 1);
    for (size_t i = 0; i < n; ++i) {
      const Key drawn = below(2) == 0 ? below(50) - 1 : mix(below(300));
      if (std::ranges::find(list.keys, drawn) == list.keys.end()) list.keys.push_back(drawn);
    }
    const auto column = [&](auto& values, uint64_t limit) {
      if (below(2) == 0) return;
      for (size_t i = 0; i < list.keys.size(); ++i)
        values.push_back(static_cast<std::remove_reference_t<decltype(values[0])>>(below(limit)));
    };
    column(list.counts, 4);
    column(list.shows, 9);
    column(list.clicks, 5);
    return list;
  }
  Floats normals(size_t n) {
    Floats values(n);
    for (float& value : values) value = normal();
    return values;
  }

 private:
  RandomStream random_;
  uint64_t drawn_ = 0;
};

}  // namespace argosy
