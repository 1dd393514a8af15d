#pragma once

#include "argosy/data/batch.h"
#include "argosy/data/layout.h"

namespace argosy {

/// Fills the side columns of a batch whose keys and indices are there, and whose feeds have the
/// inputs that the layout names. Throws ConfigError for one that is missing or does not have one
/// number for each instance.
void fill_key_columns(const BatchLayout& layout, Batch& batch);

}  // namespace argosy
