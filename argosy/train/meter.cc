#include "argosy/train/meter.h"

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {

std::unique_ptr<Meter> make_meter(std::string_view text) {
  const Call call(text);
  for (const MeterPlugin& meter : builtin_meters())
    if (meter.name == call.name()) return meter.make(call);

  const std::string near = nearest(call.name(), meter_names());
  fail<ConfigError>("'", text, "': no meter '", call.name(), "'",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

std::vector<std::string> meter_names() { return names_of(builtin_meters()); }

}  // namespace argosy
