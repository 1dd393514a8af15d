#include "argosy/ps/row_replay.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace argosy::ps {

RowReplay::RowReplay(Shard& shard, size_t threads)
    : shard_(shard), parts_(std::max<size_t>(threads, 1)) {}

RowReplay::~RowReplay() = default;

void RowReplay::fill(Page& page, size_t table, Section section, size_t rows,
                     std::span<const std::byte> bytes) const {
  page.table = table;
  page.section = section;
  page.keys.resize(rows);
  page.images.resize((bytes.size() - rows * sizeof(Key)) / sizeof(float));
  std::memcpy(page.keys.data(), bytes.data(), rows * sizeof(Key));
  std::memcpy(page.images.data(), bytes.data() + rows * sizeof(Key),
              page.images.size() * sizeof(float));
}

void RowReplay::add(size_t table, Section section, size_t rows, std::span<const std::byte> bytes) {
  if (rows == 0) return;
  added_ += bytes.size();
  if (threads_.empty() && (parts_ == 1 || added_ < kInline)) {
    Page page;
    fill(page, table, section, rows, bytes);
    return shard_.table(table).images().put(section, page.keys, page.images);
  }
  for (size_t part = threads_.size(); part < parts_; ++part)
    threads_.emplace_back("replay", [this, part](const std::stop_token& stop) { run(part, stop); });
  std::unique_ptr<Page> page;
  {
    const Lock lock(mutex_);
    const auto room = [&]() REQUIRES(mutex_) { return pages_.size() < kPages; };
    changed_.wait(mutex_, room);
    if (!spare_.empty()) {
      page = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (page == nullptr) page = std::make_unique<Page>();
  fill(*page, table, section, rows, bytes);
  page->left = parts_;
  {
    const Lock lock(mutex_);
    pages_.push_back(std::move(page));
  }
  changed_.notify_all();
}

void RowReplay::finish() {
  const Lock lock(mutex_);
  const auto none = [&]() REQUIRES(mutex_) { return pages_.empty(); };
  changed_.wait(mutex_, none);
}

void RowReplay::run(size_t part, const std::stop_token& stop) {
  std::vector<Key> keys;
  std::vector<float> images;
  for (uint64_t next = 0;; ++next) {
    Page* page = nullptr;
    {
      const Lock lock(mutex_);
      const auto there = [&]() REQUIRES(mutex_) { return next < first_ + pages_.size(); };
      if (!changed_.wait(mutex_, stop, there)) return;
      page = pages_[next - first_].get();
    }
    put_part(*page, part, keys, images);
    {
      const Lock lock(mutex_);
      --page->left;
      for (; !pages_.empty() && pages_.front()->left == 0; ++first_) {
        spare_.push_back(std::move(pages_.front()));
        pages_.pop_front();
      }
    }
    changed_.notify_all();
  }
}

void RowReplay::put_part(const Page& page, size_t part, std::vector<Key>& keys,
                         std::vector<float>& images) {
  RowTable& table = shard_.table(page.table);
  const size_t width = page.images.size() / page.keys.size();
  const RowPart own{part, parts_};
  keys.clear();
  images.clear();
  for (size_t i = 0; i < page.keys.size(); ++i) {
    if (!own.has(page.keys[i], table.spec().shards)) continue;
    const float* const image = page.images.data() + i * width;
    keys.push_back(page.keys[i]);
    images.insert(images.end(), image, image + width);
  }
  table.images().put(page.section, keys, images);
}

}  // namespace argosy::ps
