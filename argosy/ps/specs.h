#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace argosy::ps {

/// A dense parameter, or a slice of one, as text and numbers: the same in every process.
struct ParameterSpec {
  std::string name;
  size_t elements = 1;
  std::string rule = "sgd";                 // rule.h
  std::string init = "zeros";               // initializer.h
  std::string learning_rate = "0.01";       // schedule.h
  std::string regularizer = {}, clip = {};  // gradient.h
  uint64_t seed = 0;
  size_t unit = 1;           // floats that are never cut apart: a row of a matrix
  size_t first = 0, of = 0;  // a slice of a parameter of `of` elements, from `first`; 0: whole

  template <class A>
  void fields(A& a) {
    a(name, elements, rule, init, learning_rate, regularizer, clip, seed, unit, first, of);
  }
};

/// A table of rows by key, in the same way.
struct TableSpec {
  std::string name;
  size_t dim = 1;                           // floats per row
  std::string rule = "sgd";                 // rule.h
  std::string init = "zeros";               // initializer.h
  std::string learning_rate = "0.01";       // schedule.h
  std::string regularizer = {}, clip = {};  // gradient.h
  uint64_t seed = 0;
  std::string entry = {};        // who gets a row: entry.h
  bool track_unseen = false;     // count the shrinks since a row was last used, 4 bytes a row
  size_t shards = 16;            // parts with a lock of their own: a power of two up to 4,096
  std::string store = "memory";  // where the rows are: a file of ps/tables/, with its settings

  template <class A>
  void fields(A& a) {
    a(name, dim, rule, init, learning_rate, regularizer, clip, seed, entry, track_unseen, shards,
      store);
  }
};

}  // namespace argosy::ps
