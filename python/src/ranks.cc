#include "ranks.h"

#include <nanobind/stl/shared_ptr.h>

#include <deque>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/modes/ranks/rank_gradients.h"
#include "argosy/world/guard.h"
#include "eager.h"
#include "long_call.h"

namespace argosy::python {

using comm::Group;
using comm::Reduce;

using namespace nb::literals;

namespace {

Reduce reduce_named(const std::string& text) {
  for (const Reduce reduce : {Reduce::sum, Reduce::avg, Reduce::max, Reduce::min, Reduce::prod})
    if (text == name(reduce)) return reduce;
  fail<ConfigError>("reduce by '", text, "', expected sum, avg, max, min or prod");
}

/// A call and the memory that it works on; a tensor that it does not need is empty.
struct Asked {
  std::string kind;
  std::optional<Tensor> in, out;
  int root = -1;
  Reduce reduce = Reduce::sum;

  DType type() const { return (in ? *in : *out).dtype(); }
};

template <comm::Element T>
std::span<const T> input(const Asked& asked) {
  if (!asked.in) return {};
  return std::as_const(*asked.in).as<T>();
}

template <comm::Element T>
comm::Collective collective(const Group& group, Asked& asked) {
  const std::span<const T> in = input<T>(asked);
  const std::span<T> out = asked.out ? asked.out->as<T>() : std::span<T>();
  const std::string& kind = asked.kind;
  if (kind == "all_reduce") return comm::calls::all_reduce(out, asked.reduce);
  if (kind == "reduce") return comm::calls::reduce(group, in, out, asked.root, asked.reduce);
  if (kind == "reduce_scatter") return comm::calls::reduce_scatter(group, in, out, asked.reduce);
  if (kind == "all_gather") return comm::calls::all_gather(group, in, out);
  if (kind == "broadcast") return comm::calls::broadcast(out, asked.root);
  if (kind == "scatter") return comm::calls::scatter(group, in, out, asked.root);
  if (kind == "all_to_all") return comm::calls::all_to_all(group, in, out);
  if (kind == "send") return comm::calls::send(in, asked.root);
  if (kind == "receive") return comm::calls::receive(out, asked.root);
  fail<ConfigError>("there is no call '", kind, "' of ranks");
}

comm::Collective collective(const Group& group, Asked& asked) {
  if (asked.kind == "barrier") return {.call = {.kind = comm::CallKind::barrier}};
  check<ConfigError>(!asked.in || !asked.out || asked.in->dtype() == asked.out->dtype(), asked.kind,
                     ": from ", asked.in->dtype(), " to ", asked.out->dtype(),
                     ", expected one type");
  switch (asked.type()) {
    case DType::f32:
      return collective<float>(group, asked);
    case DType::f64:
      return collective<double>(group, asked);
    case DType::i32:
      return collective<int32_t>(group, asked);
    case DType::i64:
      return collective<int64_t>(group, asked);
    default:
      fail<ConfigError>(asked.kind, " of ", asked.type(),
                        " elements: ranks exchange float32, float64, int32 and int64");
  }
}

/// A group, and the memory of calls that nobody has waited for. Thread safety: by the interpreter's
/// lock.
class PyGroup {
 public:
  PyGroup(std::shared_ptr<Group> group, std::shared_ptr<Activity> activity)
      : group_(std::move(group)), activity_(std::move(activity)) {}
  /// Calls under way write to memory that is held here.
  ~PyGroup() {
    const nb::gil_scoped_release others_run;
    for (Held& held : held_) {
      try {
        held.work.wait();
      } catch (const std::exception&) {
        break;  // the group has failed, and makes no more calls
      }
    }
  }

  const std::shared_ptr<Group>& group() const { return group_; }
  const std::shared_ptr<Activity>& activity() const { return activity_; }

  void run(Asked asked) {
    long_call([group = group_, asked = std::move(asked)](const StopAsked&) mutable {
      group->run(collective(*group, asked));
    });
  }

  /// The call's number, for wait().
  uint64_t start(Asked asked) {
    if (held_.size() >= kMostHeld) wait(held_.front().number);
    const comm::Work work = group_->start(collective(*group_, asked));
    held_.push_back({++number_, std::move(asked), work});
    return number_;
  }

  /// Calls end in the order in which they were started.
  void wait(uint64_t number) {
    while (!held_.empty() && held_.front().number <= number) {
      Held held = std::move(held_.front());
      held_.pop_front();
      long_call(
          [group = group_, held = std::move(held)](const StopAsked&) mutable { held.work.wait(); });
    }
  }

  std::shared_ptr<PyGroup> sub_group(std::vector<int> ranks) {
    const auto made = std::make_shared<std::shared_ptr<Group>>();
    long_call([group = group_, ranks = std::move(ranks), made](const StopAsked&) {
      *made = group->sub_group(ranks);
    });
    return *made == nullptr ? nullptr : std::make_shared<PyGroup>(*made, activity_);
  }

 private:
  static constexpr size_t kMostHeld = 256;
  struct Held {
    uint64_t number;
    Asked asked;
    comm::Work work;
  };
  std::shared_ptr<Group> group_;
  std::shared_ptr<Activity> activity_;
  std::deque<Held> held_;
  uint64_t number_ = 0;
};

std::optional<Tensor> memory(nb::handle array, const std::string& what) {
  if (array.is_none()) return std::nullopt;
  return tensor_of(array, what);
}

Asked asked(const std::string& kind, nb::handle in, nb::handle out, int root,
            const std::string& reduce) {
  return {.kind = kind,
          .in = memory(in, kind),
          .out = memory(out, kind),
          .root = root,
          .reduce = reduce_named(reduce)};
}

std::shared_ptr<RankGradients> rank_gradients(const std::shared_ptr<PyGroup>& group,
                                              const std::vector<const PyTensor*>& parameters,
                                              bool find_unused, bool deterministic,
                                              const std::string& scale, size_t bucket_bytes,
                                              size_t last_bucket_bytes) {
  std::vector<RankGradients::Parameter> named;
  for (const PyTensor* parameter : parameters) named.push_back({parameter->name, parameter->value});
  const RankGradientOptions options{.find_unused = find_unused,
                                    .deterministic = deterministic,
                                    .scale = reduce_named(scale),
                                    .bucket_bytes = bucket_bytes,
                                    .last_bucket_bytes = last_bucket_bytes,
                                    .activity = group->activity()};
  const auto made = std::make_shared<std::shared_ptr<RankGradients>>();
  long_call([ranks = group->group(), named, options, made](const StopAsked&) {
    *made = std::make_shared<RankGradients>(ranks, named, options);
  });
  return *made;
}

}  // namespace

nb::object group_object(std::shared_ptr<Group> group, std::shared_ptr<Activity> activity) {
  return nb::cast(std::make_shared<PyGroup>(std::move(group), std::move(activity)));
}

void bind_ranks(nb::module_& module) {
  nb::class_<PyGroup>(module, "Group", "Ranks that call each other.")
      .def_prop_ro("rank", [](const PyGroup& self) { return self.group()->rank(); })
      .def_prop_ro("size", [](const PyGroup& self) { return self.group()->size(); })
      .def(
          "run",
          [](PyGroup& self, const std::string& kind, nb::handle in, nb::handle out, int root,
             const std::string& reduce) { self.run(asked(kind, in, out, root, reduce)); },
          "kind"_a, "source"_a.none(), "target"_a.none(), "root"_a = -1, "reduce"_a = "sum",
          "Makes a call on the memory of arrays and waits for it.")
      .def(
          "start",
          [](PyGroup& self, const std::string& kind, nb::handle in, nb::handle out, int root,
             const std::string& reduce) { return self.start(asked(kind, in, out, root, reduce)); },
          "kind"_a, "source"_a.none(), "target"_a.none(), "root"_a = -1, "reduce"_a = "sum",
          "Starts a call; its number is for wait().")
      .def("wait", &PyGroup::wait, "number"_a, "Returns when a started call is over.")
      .def("sub_group", &PyGroup::sub_group, "ranks"_a,
           "A group of some of these ranks, which all of them call; None in the others.");
  nb::class_<RankGradients>(module, "RankGradients",
                            "The gradients of parameters, which become those of all ranks.")
      .def(
          "backward",
          [](RankGradients& self, const PyTensor& of, const PyTensor* gradient, bool retain_graph) {
            run_backward(of, gradient, retain_graph, &self);
          },
          "of"_a, "grad_tensor"_a.none(), "retain_graph"_a,
          "Tensor.backward that sends gradients as they become final.")
      .def("reached", &RankGradients::reached)
      .def("reduce", [](const std::shared_ptr<RankGradients>& self) {
        long_call([self](const StopAsked&) { self->reduce(); });
      });
  module.def(
      "mark_of_children", [] { return Guard::of_this_process().mark(); },
      "NAME=1: a process with this in its environment ends with this one, however that ends.");
  module.def("rank_gradients", rank_gradients, "group"_a, "parameters"_a, "find_unused"_a,
             "deterministic"_a, "scale"_a, "bucket_bytes"_a, "last_bucket_bytes"_a);
}

}  // namespace argosy::python
