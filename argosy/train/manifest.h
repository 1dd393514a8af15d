#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/dataset.h"
#include "argosy/ps/saved_table.h"

namespace argosy {

/// The point from which a run continues.
struct ResumePoint {
  int epoch = 1;           // to continue with; the first is 1
  DataPosition data = {};  // how much of it has been trained on
};

/// What the text of persistables.argosy says, line by line:
///   argosy checkpoint 4
///   epoch 2                      the one to go on with
///   batches 340                  of it that are done
///   generation 7                 of the table files
///   file 3 1200                  lines of file 3 that are done; file 3 whole
///   table factors factors.7.rows 812 24080 1f00a9c3d2e4b576     rows, bytes, sum
///   server 1 812 1630 1622       ServerMark of server 1
///   replaced factors.6.rows
///   cut server-0.cut 812 24080 1f00a9c3d2e4b576      of a cut (ps/cut.h), as a table
///   shape fc.0.w 400 9
/// Version 1 has no servers, versions 1 and 2 have no sums; only cuts are of version 4.
struct Manifest {
  ResumePoint resume;
  std::vector<ps::SavedTable> tables;
  std::vector<std::string> replaced;      // files of the generation before, which may be left
  std::vector<std::string> marks;         // by server
  std::vector<ps::SavedTable> cuts = {};  // of a cut: the parts of the servers, which have no table
  struct ParameterShape {
    std::string name;
    std::vector<uint64_t> sizes;
  };
  std::vector<ParameterShape> shapes = {};  // of a cut: its parameters, which are in the parts
  uint64_t generation = 0;

  std::string text() const;
  /// An empty text is a model without tables, saved before its first epoch. Throws DataError that
  /// begins with `path`.
  static Manifest parse(const std::string& text, const std::string& path);
};

/// Of the checkpoint in a folder.
std::string manifest_path(const std::string& dir);
/// A file's name: something in the folder of the manifest, never a way out of it.
bool is_plain_file_name(const std::string& name);

}  // namespace argosy
