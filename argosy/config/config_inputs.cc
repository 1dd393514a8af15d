#include "argosy/config/config_parts.h"

namespace argosy {
namespace {

constexpr Limits kSize{0, 1 << 20}, kSlots{1, 1 << 20};

const std::string& checked_name(const Setting& setting, const std::string& name) {
  if (!is_plain_name(name)) fail_at(setting, "'", name, "': ", kPlainName);
  return name;
}

/// "C1..C26", or a list of names and ranges.
std::vector<std::string> slot_names(const Setting& setting) {
  const std::vector<std::string> texts = setting.kind == Setting::Kind::list
                                             ? read_texts(setting)
                                             : std::vector<std::string>{read_text(setting)};
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    std::vector<std::string> range;
    try {
      range = expand_range(text);
    } catch (const ConfigError& e) {
      fail_at(setting, e.what());
    }
    for (const std::string& name : range) names.push_back(checked_name(setting, name));
  }
  if (names.empty()) fail_at(setting, "expected at least one slot");
  return names;
}

/// 13, whose slot has the name of the key, or {name: dense_feature, size: 13}.
void read_dense(const Setting& setting, InputKeys& inputs) {
  inputs.dense = "dense";
  if (setting.kind != Setting::Kind::map) {
    inputs.dense_size = read_integer(setting, kSize);
    return;
  }
  for (const Setting& item : setting.items) {
    if (item.key() == "name")
      inputs.dense = checked_name(item, read_text(item));
    else if (item.key() == "size")
      inputs.dense_size = read_integer(item, kSize);
    else
      fail_unknown_key(item, {"name", "size"});
  }
}

void read_ids_per_slot(const Setting& setting, InputKeys& inputs) {
  const std::string& text = read_text(setting);
  if (text != "1" && text != "any") fail_at(setting, "expected 1 or any, got '", text, "'");
  inputs.one_id = text == "1";
}

/// Returns the parts in file order, which is that of a MultiSlot line.
std::vector<std::string> read_inputs(const Setting& map, InputKeys& inputs) {
  std::vector<std::string> order;
  for (const Setting& setting : expect_map(map).items) {
    const std::string key(setting.key());
    if (key == "dense")
      read_dense(setting, inputs);
    else if (key == "slots")
      inputs.slots = slot_names(setting);
    else if (key == "label")
      inputs.label = checked_name(setting, read_text(setting));
    else if (key == "ids_per_slot")
      read_ids_per_slot(setting, inputs);
    else
      fail_unknown_key(setting, {"dense", "slots", "label", "ids_per_slot"});
    order.push_back(key);
  }
  if (inputs.label.empty()) fail_at(map, "expected a label, as label: click");
  return order;
}

/// A value in hyper_parameters must agree with the one in `inputs:`.
void compare(const Hyper& hyper, const char* key, int64_t declared) {
  const int64_t said = hyper.integer(key, declared);
  check<ConfigError>(said == declared, "hyper_parameters.", key, " is ", said,
                     ", but inputs declares ", declared);
}

EmptySlot empty_of(const Setting* setting, const InputKeys& inputs) {
  const std::string text = setting == nullptr ? "error" : setting->text;
  if (text == "empty" && inputs.one_id)
    fail_at(*setting, "empty needs inputs.ids_per_slot: any, with one id per slot use pad");
  return text == "pad" ? EmptySlot::pad : text == "empty" ? EmptySlot::empty : EmptySlot::error;
}

std::vector<SlotSpec> columns_of(const InputKeys& inputs, const std::vector<std::string>& order,
                                 EmptySlot empty) {
  std::vector<SlotSpec> columns;
  columns.reserve(inputs.slots.size() + 2);
  for (const std::string& part : order) {
    if (part == "dense" && inputs.dense_size > 0)
      columns.push_back({.name = inputs.dense,
                         .kind = SlotKind::floats,
                         .width = static_cast<size_t>(inputs.dense_size),
                         .empty = empty == EmptySlot::pad ? empty : EmptySlot::error});
    if (part == "slots")
      for (const std::string& slot : inputs.slots)
        columns.push_back({.name = slot,
                           .kind = SlotKind::ids,
                           .width = inputs.one_id ? size_t{1} : size_t{0},
                           .empty = empty});
    if (part == "label")
      columns.push_back({.name = inputs.label, .kind = SlotKind::floats, .width = 1});
  }
  return columns;
}

}  // namespace

InputKeys make_inputs(const Setting* map, const Hyper& hyper, const SlotNames& names,
                      const Setting* empty_slot) {
  InputKeys inputs;
  std::vector<std::string> order = {"dense", "slots", "label"};
  if (map != nullptr && map->given()) {
    order = read_inputs(*map, inputs);
    compare(hyper, "dense_input_dim", inputs.dense_size);
    compare(hyper, "sparse_inputs_slots", static_cast<int64_t>(inputs.slots.size()) + 1);
  } else {
    inputs.dense = names.dense;
    inputs.label = names.label;
    inputs.dense_size = hyper.integer("dense_input_dim", 13, kSize);
    const int64_t slots = hyper.integer("sparse_inputs_slots", 27, kSlots) - 1;
    if (slots > 0)
      inputs.slots = expand_range(names.prefix + "1.." + names.prefix + std::to_string(slots));
  }
  if (inputs.dense_size == 0) inputs.dense.clear();
  inputs.columns = columns_of(inputs, order, empty_of(empty_slot, inputs));
  check_slots(inputs.columns);
  return inputs;
}

}  // namespace argosy
