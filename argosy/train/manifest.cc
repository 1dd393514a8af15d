#include "argosy/train/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <sstream>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr std::string_view kOfCuts = "argosy checkpoint 4", kOfSaves = "argosy checkpoint 3";
constexpr std::array kHeaders = {kOfCuts, kOfSaves, std::string_view("argosy checkpoint 2"),
                                 std::string_view("argosy checkpoint 1")};

/// Fails the stream unless the next word is a number of this base, all of it.
void read_number(std::istream& words, int base, uint64_t& number) {
  std::string word;
  words >> word;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  if (error != std::errc() || end != word.data() + word.size()) words.setstate(std::ios::failbit);
}

/// A file and its sums, of a table or of a cut.
void read_saved(std::istream& words, bool has_sum, ps::SavedTable& table) {
  constexpr int kDecimal = 10, kHex = 16;
  words >> table.file;
  if (!is_plain_file_name(table.file)) words.setstate(std::ios::failbit);
  if (!has_sum) return;
  read_number(words, kDecimal, table.sum.rows);
  read_number(words, kDecimal, table.sum.bytes);
  read_number(words, kHex, table.sum.sum);
  if (table.sum.bytes <= sizeof(uint64_t)) words.setstate(std::ios::failbit);
}

void read_shape(std::istream& words, Manifest::ParameterShape& shape) {
  constexpr int kDecimal = 10;
  words >> shape.name;
  while (words && !words.eof()) read_number(words, kDecimal, shape.sizes.emplace_back());
}

}  // namespace

std::string manifest_path(const std::string& dir) { return dir + "/persistables.argosy"; }

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

std::string Manifest::text() const {
  std::string out =
      fmt::format("{}\nepoch {}\nbatches {}\ngeneration {}\n", cuts.empty() ? kOfSaves : kOfCuts,
                  resume.epoch, resume.data.batches, generation);
  auto line = std::back_inserter(out);
  for (const FileMark& mark : resume.data.files) {
    if (mark.lines == FileMark::kWhole)
      fmt::format_to(line, "file {} whole\n", mark.file);
    else
      fmt::format_to(line, "file {} {}\n", mark.file, mark.lines);
  }
  for (const auto& [table, file, sum] : tables)
    fmt::format_to(line, "table {} {} {} {} {:016x}\n", table, file, sum.rows, sum.bytes, sum.sum);
  for (const ps::SavedTable& part : cuts)
    fmt::format_to(line, "cut {} {} {} {:016x}\n", part.file, part.sum.rows, part.sum.bytes,
                   part.sum.sum);
  for (const ParameterShape& shape : shapes)
    fmt::format_to(line, "shape {}{}{}\n", shape.name, shape.sizes.empty() ? "" : " ",
                   fmt::join(shape.sizes, " "));
  for (size_t i = 0; i < marks.size(); ++i) fmt::format_to(line, "server {} {}\n", i, marks[i]);
  for (const std::string& file : replaced) fmt::format_to(line, "replaced {}\n", file);
  return out;
}

Manifest Manifest::parse(const std::string& text, const std::string& path) {
  Manifest manifest;
  if (text.empty()) return manifest;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  check<DataError>(std::ranges::find(kHeaders, line) != kHeaders.end(), path, ": begins with '",
                   line, "', expected '", kOfCuts, "'");
  const bool has_sums = line == kOfCuts || line == kOfSaves;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string what, lines_done;
    words >> what;
    if (what == "epoch") {
      words >> manifest.resume.epoch;
    } else if (what == "batches") {
      words >> manifest.resume.data.batches;
    } else if (what == "generation") {
      words >> manifest.generation;
    } else if (what == "file") {
      FileMark& mark = manifest.resume.data.files.emplace_back();
      words >> mark.file >> lines_done;
      if (lines_done == "whole")
        mark.lines = FileMark::kWhole;
      else
        std::istringstream(lines_done) >> mark.lines;
    } else if (what == "table") {
      ps::SavedTable& table = manifest.tables.emplace_back();
      words >> table.table;
      read_saved(words, has_sums, table);
    } else if (what == "cut") {
      read_saved(words, true, manifest.cuts.emplace_back());
    } else if (what == "shape") {
      read_shape(words, manifest.shapes.emplace_back());
    } else if (what == "server") {
      size_t number = 0;
      words >> number >> std::ws;
      if (number == manifest.marks.size()) std::getline(words, manifest.marks.emplace_back());
    } else if (what == "replaced") {
      words >> manifest.replaced.emplace_back();
    } else {
      words.setstate(std::ios::failbit);
    }
    check<DataError>(!words.fail(), path, ": cannot read '", line, "' of the checkpoint");
  }
  return manifest;
}

}  // namespace argosy
