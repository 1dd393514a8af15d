#pragma once

#include <string>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/ps/specs.h"

namespace argosy::ps {

/// How dense parameters are cut, in the terms of Paddle's transpiler.
struct PlacementOptions {
  size_t min_block = 8192;               // floats; a smaller parameter stays whole
  bool slice = true;                     // false: every parameter stays whole
  std::string dispatch = "round_robin";  // or hash_name: by the name of the block
};

/// A part of a dense parameter and the server that holds it.
struct Slice {
  uint32_t parameter, server;
  size_t begin, end;  // elements
  size_t size() const { return end - begin; }
};

/// Which server holds what, the same in every process of a job. Dense parameters are cut into
/// slices; the rows of every table are spread over all servers by 16,384 slots of their
/// keys' hashes, so that moving a slot moves its rows and nothing else.
struct Placement {
  static constexpr size_t kSlots = 16384;

  std::vector<ParameterSpec> parameters;  // whole
  std::vector<TableSpec> tables;          // every server has rows of each
  std::vector<size_t> key_sets;           // by table: the key set of a batch that it uses
  uint32_t servers = 1;
  std::vector<Slice> slices;     // in the order of parameters, then of elements
  std::vector<uint16_t> owners;  // by slot

  static size_t slot_of(Key key);
  uint32_t server_of(Key key) const { return owners[slot_of(key)]; }
  size_t key_set_count() const;
  /// The dense slices of server `index`.
  std::vector<ParameterSpec> slices_of(uint32_t index) const;
  std::string text() const;
  /// Processes whose hashes differ must not talk to each other.
  uint64_t hash() const;

  template <class A>
  void fields(A& a) {
    a(parameters, tables, key_sets, servers, slices, owners);
  }
};

/// Throws ConfigError. Cuts a parameter into as many blocks as there are servers, of at least
/// min_block floats and of whole units; a rule that needs the whole parameter keeps it whole.
Placement place(std::vector<ParameterSpec> parameters, std::vector<TableSpec> tables,
                std::vector<size_t> key_sets, uint32_t servers,
                const PlacementOptions& options = {});

}  // namespace argosy::ps
