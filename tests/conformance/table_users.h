#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/conformance/table_model.h"

/// Users of a table who know by a model what to find in it.
namespace argosy {

/// A table and its model, and tickets that are kept for long.
class Pair {
 public:
  Pair(const ps::TableSpec& spec, uint64_t seed)
      : spec_(spec), draws_(seed), table_(make_table(spec)), model_(spec) {}

  void act() {
    switch (draws_.below(13)) {
      case 0:
      case 1:
      case 2:
        return locate();
      case 3:
      case 4:
        return read_one();
      case 5:
      case 6:
      case 7:
        return apply_one();
      case 8:
        return assign();
      case 9:
        if (spec_.track_unseen) shrink();
        return;
      case 10:
        return keep_or_go_back();
      case 11:
        return put();
      default:
        return go_on_in_another();
    }
  }
  void compare() {
    ASSERT_EQ(content_of(*table_), model_.content());
    ASSERT_EQ(table_->size(), model_.images(ps::Section::rows).size());
    for (const ps::Section section : {ps::Section::rows, ps::Section::counted})
      ASSERT_EQ(walked(*table_, section, 1 + draws_.below(40)), model_.images(section));
  }

 private:
  /// A list that is read and applied in parts.
  struct Held {
    KeyColumns list;
    std::vector<ps::Ticket> parts;
  };
  Held& any() { return held_[draws_.below(std::size(held_))]; }

  void locate() {
    Held& held = any();
    held.list = draws_.keys(40);
    held.parts.resize(1 + draws_.below(3));
    for (size_t i = 0; i < held.parts.size(); ++i)
      table_->locate(held.list.keys, held.list.columns(), {i, held.parts.size()}, held.parts[i]);
  }
  void read_one() {
    Held& held = any();
    if (held.parts.empty()) return;
    const ps::Purpose purpose =
        draws_.below(2) == 0 ? ps::Purpose::training : ps::Purpose::inference;
    Floats rows(held.list.keys.size() * spec_.dim, -99.0F);
    for (ps::Ticket& part : held.parts) {
      await(*table_, part);
      table_->read(part, purpose, rows);
    }
    ASSERT_EQ(rows, model_.read(held.list, purpose));
  }
  void apply_one() {
    Held& held = any();
    if (held.parts.empty()) return;
    const Floats grads = draws_.normals(held.list.keys.size() * spec_.dim);
    ++step_;
    for (ps::Ticket& part : held.parts) apply_located(*table_, part, grads, step_);
    model_.apply(held.list, grads, step_);
  }
  void assign() {
    const Keys keys = draws_.keys(10).keys;
    const Floats rows = draws_.normals(keys.size() * spec_.dim);
    table_->assign(keys, rows);
    model_.assign(keys, rows);
  }
  void shrink() {
    const auto unseen = static_cast<uint32_t>(1 + draws_.below(4));
    ASSERT_EQ(table_->shrink(unseen), model_.shrink(unseen));
  }
  void put() {
    const Keys keys = draws_.keys(10).keys;
    const size_t width = table_->recipe().floats(ps::Section::rows);
    Floats images = draws_.normals(keys.size() * width);
    for (float& value : images) value = std::abs(value);
    table_->images().put(ps::Section::rows, keys, images);
    model_.put(keys, images);
  }
  /// A save that is loaded again later, while tickets of another content are held.
  void keep_or_go_back() {
    if (!kept_) {
      kept_.emplace(saved(*table_), model_.content());
      return;
    }
    load(*table_, kept_->first);
    model_.set_content(std::move(kept_->second));
    kept_.reset();
  }
  /// Moves to a table with other shards. Held tickets belong to the old one, so they are dropped.
  void go_on_in_another() {
    spec_.shards = size_t{1} << draws_.below(5);
    auto other = make_table(spec_);
    apply(*other, Keys{1, 2, 3}, Floats(3 * spec_.dim, 1.0F), 1);
    load(*other, saved(*table_));
    ASSERT_EQ(saved(*other), saved(*table_));
    for (Held& held : held_) held = {};
    table_ = std::move(other);
  }

  ps::TableSpec spec_;
  Draws draws_;
  std::unique_ptr<ps::RowTable> table_;
  TableModel model_;
  uint64_t step_ = 0;
  std::optional<std::pair<std::vector<std::byte>, TableModel::Content>> kept_;
  Held held_[4];
};

/// One thread's share of a table that several use: private keys, which it models call by call, and
/// keys to which all add the same amount, so that sums do not depend on the order.
class Sharer {
 public:
  static constexpr Key kOwn = 1000, kShared = 40;

  Sharer(ps::RowTable& table, const ps::TableSpec& spec, uint64_t number, uint64_t seed)
      : table_(table), draws_(mix(seed) + number), first_((number + 1) * kOwn), model_(spec) {}

  void round(uint64_t step) {
    for (int i = 0; i < 25; ++i) act(step);
  }
  /// How often it has pushed each of the shared keys, since it was last asked.
  std::map<Key, uint32_t> pushed() { return std::exchange(pushed_, {}); }
  TableModel& own() { return model_; }

 private:
  void act(uint64_t step) {
    ps::Ticket& ticket = tickets_[draws_.below(std::size(tickets_))];
    const size_t dim = table_.spec().dim;
    KeyColumns own;
    for (Key key = 0; key < 60; ++key)
      if (draws_.below(3) == 0) own.keys.push_back(first_ + key);
    if (draws_.below(2) == 0)
      for (size_t i = 0; i < own.keys.size(); ++i)
        own.counts.push_back(static_cast<uint32_t>(draws_.below(3)));
    Floats rows(own.keys.size() * dim);
    switch (draws_.below(8)) {
      case 0:
      case 1: {
        table_.locate(own.keys, own.columns(), {}, ticket);
        await(table_, ticket);
        table_.read(ticket, ps::Purpose::training, rows);
        EXPECT_EQ(rows, model_.read(own, ps::Purpose::training));
        for (float& grad : rows) grad = draws_.integer();
        apply_located(table_, ticket, rows, step);
        return model_.apply(own, rows, step);
      }
      case 2:
        EXPECT_EQ(peek(table_, own.keys), model_.read(own, ps::Purpose::inference));
        return;
      case 3:
        own.keys.resize(own.keys.size() / 4);
        rows.resize(own.keys.size() * dim);
        for (float& value : rows) value = draws_.integer();
        table_.assign(own.keys, rows);
        return model_.assign(own.keys, rows);
      case 4: {
        const TableModel::Content all = content_of(table_);
        for (const auto& [key, image] : model_.images(ps::Section::rows))
          EXPECT_EQ(all.rows.at(key), image) << key;
        return;
      }
      case 5: {
        const TableModel::Images met = walked(table_, ps::Section::rows, 7);
        for (const auto& [key, image] : model_.images(ps::Section::rows))
          EXPECT_EQ(met.at(key), image) << key;
        return;
      }
      default:
        return push_shared(ticket, step);
    }
  }
  void push_shared(ps::Ticket& ticket, uint64_t step) {
    Keys keys;
    Floats grads;
    for (Key key = 0; key < kShared; ++key) {
      if (draws_.below(2) == 0) continue;
      keys.push_back(key);
      grads.insert(grads.end(), table_.spec().dim, static_cast<float>(1 + key % 3));
      ++pushed_[key];
    }
    table_.locate(keys, {}, {}, ticket);
    apply_located(table_, ticket, grads, step);
  }

  ps::RowTable& table_;
  Draws draws_;
  const Key first_;
  TableModel model_;  // of its private keys
  std::map<Key, uint32_t> pushed_;
  ps::Ticket tickets_[3];
};

}  // namespace argosy
