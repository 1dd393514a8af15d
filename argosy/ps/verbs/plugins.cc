// Collects the verbs of this folder: every other .cc file here defines Verb <file>(). A new verb is
// a new file and nothing else.
#include "argosy/ps/verb.h"
#include "argosy/ps/verbs.def"

namespace argosy::ps {

ARGOSY_COLLECT(verbs, VerbPlugin, builtin_verbs)

}  // namespace argosy::ps
