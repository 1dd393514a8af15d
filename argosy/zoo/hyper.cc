#include "argosy/zoo/hyper.h"

#include <algorithm>

namespace argosy {

const Setting* Hyper::find(std::string_view name) const {
  if (asked_ != nullptr) asked_->emplace(name);
  const auto setting = std::ranges::find(settings_, name, &Setting::key);
  return setting == settings_.end() || !setting->given() ? nullptr : &*setting;
}

bool Hyper::flag(std::string_view name, bool otherwise) const {
  const Setting* const setting = find(name);
  return setting == nullptr ? otherwise : read_flag(*setting);
}

int64_t Hyper::integer(std::string_view name, int64_t otherwise, const Limits& limits) const {
  const Setting* const setting = find(name);
  return setting == nullptr ? otherwise : read_integer(*setting, limits);
}

double Hyper::real(std::string_view name, double otherwise, const Limits& limits) const {
  const Setting* const setting = find(name);
  return setting == nullptr ? otherwise : read_real(*setting, limits);
}

std::string Hyper::text(std::string_view name, std::string otherwise) const {
  const Setting* const setting = find(name);
  return setting == nullptr ? otherwise : read_text(*setting);
}

std::vector<int64_t> Hyper::integers(std::string_view name, std::vector<int64_t> otherwise,
                                     const Limits& limits) const {
  const Setting* const setting = find(name);
  return setting == nullptr ? otherwise : read_integers(*setting, limits);
}

Hyper Hyper::recording(Names& asked) const {
  Hyper hyper = *this;
  hyper.asked_ = &asked;
  return hyper;
}

void Hyper::refuse_others(const Names& asked) const {
  for (const Setting& setting : settings_)
    if (!asked.contains(setting.key()))
      fail_unknown_key(setting, std::vector<std::string>(asked.begin(), asked.end()));
}

}  // namespace argosy
