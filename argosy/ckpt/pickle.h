#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "argosy/modes/table_store.h"

namespace argosy {

/// What a dict of arrays holds, in the order of its entries. Names of dicts within it are joined
/// with dots.
struct PickledArrays {
  std::vector<NamedTensor> tensors;          // numbers are tensors of one value
  std::map<std::string, std::string> texts;  // and what else Paddle calls a tensor, by its name
};

/// Reads a pickle of a dict of arrays, as paddle.save and pickle.dump write it in protocols 2 to 5:
/// arrays of NumPy, the tuples (name, array) that Paddle makes of tensors, numbers and texts. Half
/// floats become floats.
///
/// Nothing is ever executed: only the instructions and names that such a file needs are understood,
/// anything else is a DataError that names it and its offset. It takes memory in proportion to the
/// bytes, whatever they say.
PickledArrays read_pickled_arrays(std::span<const std::byte> bytes, const std::string& what);

}  // namespace argosy
