#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/base/file_sink.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/ckpt.h"

namespace argosy {
namespace {

/// A name as part of a file's: '/' and '%' become %2F and %25.
std::string as_file_name(const std::string& name) {
  std::string file;
  for (const char c : name)
    if (c == '/')
      file += "%2F";
    else if (c == '%')
      file += "%25";
    else
      file += c;
  return file;
}

void write_text(FileSink& out, std::string_view text) { out.write(std::as_bytes(std::span(text))); }

std::vector<uint64_t> sizes_of(const Tensor& value) {
  std::vector<uint64_t> sizes;
  for (const int64_t dim : value.shape()) sizes.push_back(static_cast<uint64_t>(dim));
  return sizes;
}

/// One of the arrays that a table becomes; its name is the table's, then this ending.
struct TableArray {
  std::string ending;
  bool keys = false;  // else this column:
  ImageColumn column = {};
  std::vector<uint64_t> sizes;
};

/// Reads the table once, to know how many rows it has.
struct TableShape {
  uint64_t rows = 0;
  ps::TableLayout layout;
};
TableShape shape_of(Env& env, const CheckpointFiles& files, const std::string& table) {
  TableMerge merge(env, files.dir, files.files_of(table));
  TableShape shape{.rows = 0, .layout = merge.layout()};
  while (const auto row = merge.next()) shape.rows += row->section == ps::Section::rows ? 1 : 0;
  return shape;
}

std::vector<TableArray> arrays_of(const TableShape& shape) {
  std::vector<TableArray> arrays(1);
  arrays[0].keys = true;
  arrays[0].ending = "keys";
  arrays[0].sizes = {shape.rows};
  for (const ImageColumn& column : columns_of(shape.layout)) {
    TableArray& array = arrays.emplace_back();
    array.ending = column.name;
    array.column = column;
    array.sizes = {shape.rows, column.size};
  }
  return arrays;
}

void write_array_row(ByteSink& out, const TableArray& array, const TableMerge::Row& row) {
  if (array.keys)
    out.put(row.key);
  else
    out.put_all(row.image.subspan(array.column.first, array.column.size));
}

// npy: a file per array, version 1.0 of NumPy's format.

const char* npy_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "<f4";
    case DType::f64:
      return "<f8";
    case DType::i32:
      return "<i4";
    case DType::i64:
      return "<i8";
    case DType::u8:
      return "|u1";
    case DType::b8:
      return "|b1";
  }
  return "";
}

std::string npy_header(const std::string& type, const std::vector<uint64_t>& sizes) {
  constexpr size_t kAlignment = 64;
  std::string shape;
  for (const uint64_t size : sizes) shape += fmt::format("{},", size);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  const std::string magic("\x93NUMPY\x01\x00", 8);
  const size_t before = magic.size() + sizeof(uint16_t);
  text.append(kAlignment - 1 - (before + text.size()) % kAlignment, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  std::string header = magic;
  header += static_cast<char>(length & 0xFF);
  header += static_cast<char>(length >> 8);
  return header + text;
}

void write_npy_tensor(Env& env, const std::string& to, const NamedTensor& tensor) {
  FileSink file(env, to + "/" + as_file_name(tensor.name) + ".npy");
  write_text(file, npy_header(npy_type(tensor.value.dtype()), sizes_of(tensor.value)));
  file.write({tensor.value.data(), tensor.value.bytes()});
  file.finish();
}

void write_npy_table(Env& env, const std::string& to, const CheckpointFiles& files,
                     const std::string& table) {
  const std::vector<TableArray> arrays = arrays_of(shape_of(env, files, table));
  std::vector<std::unique_ptr<FileSink>> sinks;
  for (const TableArray& array : arrays) {
    const std::string name = fmt::format("{}.{}.npy", as_file_name(table), array.ending);
    write_text(*sinks.emplace_back(std::make_unique<FileSink>(env, fmt::format("{}/{}", to, name))),
               npy_header(array.keys ? "<u8" : "<f4", array.sizes));
  }
  TableMerge merge(env, files.dir, files.files_of(table));
  for (auto row = merge.next(); row && row->section == ps::Section::rows; row = merge.next())
    for (size_t i = 0; i < arrays.size(); ++i) write_array_row(*sinks[i], arrays[i], *row);
  for (const auto& sink : sinks) sink->finish();
}

// text: a line per row, a file per parameter and per table.

void write_text_tensor(Env& env, const std::string& to, const NamedTensor& tensor) {
  FileSink file(env, to + "/" + as_file_name(tensor.name) + ".txt");
  const Tensor& value = tensor.value;
  const auto width =
      static_cast<size_t>(value.shape().empty() || value.numel() == 0 ? 1 : value.shape().back());
  const auto write = [&](auto values) {
    for (size_t i = 0; i < values.size(); ++i)
      write_text(file, fmt::format("{}{}", values[i],
                                   (i + 1) % width == 0 || i + 1 == values.size() ? "\n" : " "));
  };
  switch (value.dtype()) {
    case DType::f32:
      write(value.as<float>());
      break;
    case DType::f64:
      write(value.as<double>());
      break;
    case DType::i32:
      write(value.as<int32_t>());
      break;
    case DType::i64:
      write(value.as<int64_t>());
      break;
    default:
      for (const std::byte byte : std::span(value.data(), value.bytes()))
        write_text(file, fmt::format("{}\n", static_cast<int>(byte)));
  }
  file.finish();
}

void write_text_table(Env& env, const std::string& to, const CheckpointFiles& files,
                      const std::string& table) {
  TableMerge merge(env, files.dir, files.files_of(table));
  FileSink file(env, to + "/" + as_file_name(table) + ".txt");
  std::string line = "# key";
  for (const auto& [name, first, size] : columns_of(merge.layout()))
    line += fmt::format(" {}*{}", name, size);
  write_text(file, line + "\n");
  for (auto row = merge.next(); row && row->section == ps::Section::rows; row = merge.next()) {
    line = fmt::format("{}", row->key);
    for (const float value : row->image) fmt::format_to(std::back_inserter(line), " {}", value);
    write_text(file, line += '\n');
  }
  file.finish();
}

// safetensors: one file; u64 length of a JSON text, the text, then the arrays.

const char* safetensors_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
    case DType::b8:
      return "BOOL";
  }
  return "";
}

/// The JSON text, entry by entry.
class SafetensorsHeader {
 public:
  void add(const std::string& name, const char* type, const std::vector<uint64_t>& sizes,
           uint64_t bytes) {
    std::string quoted;
    for (const char c : name) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    text_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                         text_.empty() ? "" : ",", quoted, type, fmt::join(sizes, ","), end_,
                         end_ + bytes);
    end_ += bytes;
  }
  std::string text() const {
    constexpr size_t kAlignment = 8;
    std::string text = "{" + text_ + "}";
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    return text;
  }

 private:
  std::string text_;
  uint64_t end_ = 0;
};

void write_safetensors(Env& env, const std::string& to, const CheckpointFiles& files) {
  SafetensorsHeader header;
  // The widest first, so that each array begins at a multiple of its element's size.
  std::vector<NamedTensor> tensors = files.tensors;
  std::ranges::stable_sort(tensors, std::greater(),
                           [](const NamedTensor& tensor) { return size_of(tensor.value.dtype()); });
  const auto is_wide = [](const NamedTensor& tensor) {
    return size_of(tensor.value.dtype()) == sizeof(Key);
  };
  const auto narrow = std::ranges::find_if_not(tensors, is_wide);
  struct Entry {
    std::string table;
    TableArray array;
  };
  std::vector<Entry> keys, columns;
  for (const std::string& table : files.tables())
    for (TableArray& array : arrays_of(shape_of(env, files, table)))
      (array.keys ? keys : columns).push_back({table, std::move(array)});
  const auto add_tensors = [&](auto begin, auto end) {
    for (auto tensor = begin; tensor != end; ++tensor)
      header.add(tensor->name, safetensors_type(tensor->value.dtype()), sizes_of(tensor->value),
                 tensor->value.bytes());
  };
  const auto add_arrays = [&](const std::vector<Entry>& entries) {
    for (const auto& [table, array] : entries) {
      uint64_t bytes = array.keys ? sizeof(Key) : sizeof(float);
      for (const uint64_t size : array.sizes) bytes *= size;
      header.add(table + "@" + array.ending, array.keys ? "U64" : "F32", array.sizes, bytes);
    }
  };
  add_tensors(tensors.begin(), narrow);
  add_arrays(keys);
  add_arrays(columns);
  add_tensors(narrow, tensors.end());

  FileSink file(env, to + "/model.safetensors");
  const std::string text = header.text();
  file.put(static_cast<uint64_t>(text.size()));
  write_text(file, text);
  const auto write_tensors = [&](auto begin, auto end) {
    for (auto tensor = begin; tensor != end; ++tensor)
      file.write({tensor->value.data(), tensor->value.bytes()});
  };
  const auto write_arrays = [&](const std::vector<Entry>& entries) {
    for (const auto& [table, array] : entries) {
      TableMerge merge(env, files.dir, files.files_of(table));
      for (auto row = merge.next(); row && row->section == ps::Section::rows; row = merge.next())
        write_array_row(file, array, *row);
    }
  };
  write_tensors(tensors.begin(), narrow);
  write_arrays(keys);
  write_arrays(columns);
  write_tensors(narrow, tensors.end());
  file.finish();
}

}  // namespace

void export_checkpoint(Env& env, const std::string& dir, const std::string& to,
                       const std::string& format, std::FILE* out) {
  const std::vector<std::string> formats = {"text", "npy", "safetensors"};
  if (std::ranges::find(formats, format) == formats.end()) {
    const std::string near = nearest(format, formats);
    fail<ConfigError>("format '", format, "', expected text, npy or safetensors",
                      near.empty() ? "" : "; did you mean " + near + "?");
  }
  const CheckpointFiles files = open_checkpoint(env, dir);
  env.make_directories(to);
  if (format == "safetensors") {
    write_safetensors(env, to, files);
  } else {
    const bool npy = format == "npy";
    for (const NamedTensor& tensor : files.tensors)
      npy ? write_npy_tensor(env, to, tensor) : write_text_tensor(env, to, tensor);
    for (const std::string& table : files.tables())
      npy ? write_npy_table(env, to, files, table) : write_text_table(env, to, files, table);
  }
  fmt::print(out, "{}: {} parameters and {} tables as {}\n", to, files.tensors.size(),
             files.tables().size(), format);
}

}  // namespace argosy
