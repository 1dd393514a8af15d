#include "training.h"

#include <algorithm>
#include <chrono>

#include "argosy/modes/local_store.h"
#include "argosy/train/predictor.h"
#include "argosy/train/train_from_dataset.h"
#include "argosy/world/env.h"

namespace argosy::python {

using namespace nb::literals;

namespace {

using NamedNumbers = std::vector<std::pair<std::string, int32_t>>;
using Meters = std::vector<std::tuple<std::string, std::string, int32_t, int32_t>>;

template <class T>
T item(const nb::dict& dict, const char* name, T otherwise = {}) {
  if (!dict.contains(name) || dict[name].is_none()) return otherwise;
  return nb::cast<T>(dict[name]);
}

std::vector<std::pair<std::string, VarId>> variables(const NamedNumbers& named) {
  std::vector<std::pair<std::string, VarId>> result;
  for (const auto& [name, number] : named) result.emplace_back(name, VarId{number});
  return result;
}

std::optional<std::string> text(const nb::dict& dict, const char* name) {
  if (!dict.contains(name) || dict[name].is_none()) return std::nullopt;
  return nb::cast<std::string>(dict[name]);
}

TablesOptions tables_of(const nb::dict& tables) {
  TablesOptions result;
  for (const auto& [name, value] : tables) {
    const auto options = nb::cast<nb::dict>(value);
    result[nb::cast<std::string>(name)] = {.rule = text(options, "rule"),
                                           .learning_rate = text(options, "learning_rate"),
                                           .regularizer = text(options, "regularizer"),
                                           .entry = item<std::string>(options, "entry"),
                                           .size = item<uint64_t>(options, "size")};
  }
  return result;
}

Fed fed_of(const std::string& name, nb::handle value) {
  if (!nb::isinstance<nb::tuple>(value)) return {.values = tensor_of(value, "feed '" + name + "'")};
  const auto [values, offsets] = nb::cast<std::pair<nb::object, std::vector<uint32_t>>>(value);
  return {.values = tensor_of(values, "feed '" + name + "'"), .offsets = offsets};
}

FedByName fed_by_name(const nb::dict& feeds) {
  FedByName fed;
  for (const auto& [key, value] : feeds) {
    const auto name = nb::cast<std::string>(key);
    fed.emplace(name, fed_of(name, value));
  }
  return fed;
}

NamedTensor find_value(Training& training, const std::string& name) {
  const std::vector<NamedTensor> values = training.values();
  const auto found = std::ranges::find(values, name, &NamedTensor::name);
  check<ConfigError>(found != values.end(), "the program keeps no value '", name, "'");
  return *found;
}

void set_value(Training& training, const std::string& name, nb::handle array) {
  std::vector<NamedTensor> values = training.values();
  const auto found = std::ranges::find(values, name, &NamedTensor::name);
  check<ConfigError>(found != values.end(), "the program keeps no value '", name, "'");
  const Tensor value = tensor_of(array, name);
  check<ConfigError>(value.dtype() == found->value.dtype() && value.numel() == found->value.numel(),
                     "'", name, "' is ", found->value.dtype(), found->value.shape(), ", got ",
                     value.dtype(), value.shape());
  std::copy_n(value.data(), value.bytes(), found->value.data());
  training.trainer().communicator().store().restore(values);
}

void set_rows(Training& training, const std::string& table, const std::vector<uint64_t>& keys,
              nb::handle rows) {
  auto* store = dynamic_cast<LocalStore*>(&training.trainer().communicator().store());
  check<ConfigError>(store != nullptr, "rows of '", table,
                     "' live in servers, where they can only be trained or loaded");
  const std::vector<ps::TableSpec>& tables = training.trainer().plan().tables;
  const auto found = std::ranges::find(tables, table, &ps::TableSpec::name);
  check<ConfigError>(found != tables.end(), "there is no table '", table, "'");
  store->table(static_cast<size_t>(found - tables.begin()))
      .assign(keys, tensor_of(rows, table).as<float>());
}

/// A progress bar of Python's, moved five times a second; also where Ctrl-C ends the pass.
class Bar final : public ProgressObserver {
 public:
  /// `bar` is called with steps, steps in all, samples and seconds; null: there is none.
  Bar(PyObject* bar, const StopAsked& stop) : bar_(bar), stop_(stop) {}
  bool due() override {
    if (stop_) throw Interrupted();
    return bar_ != nullptr && Clock::now() - last_ >= std::chrono::milliseconds(200);
  }
  void show(const Progress& now) override {
    last_ = Clock::now();
    const nb::gil_scoped_acquire gil;
    const nb::handle call(bar_);
    call(now.step, now.steps.value_or(0), now.samples, now.seconds);
  }

 private:
  using Clock = std::chrono::steady_clock;
  PyObject* bar_;
  const StopAsked& stop_;
  Clock::time_point last_ = Clock::now();
};

/// The pass of one data set; lines go to Python's own output, and five times a second how far it
/// is, where `progress` is not None.
void train_from_dataset(const std::shared_ptr<Training>& training,
                        const std::shared_ptr<FileData>& data, const nb::dict& options,
                        const nb::callable& print, nb::handle progress) {
  FetchOptions fetch{.fetch_list = item<std::vector<std::string>>(options, "fetch_list"),
                     .fetch_info = item<std::vector<std::string>>(options, "fetch_info"),
                     .print_period = item<uint64_t>(options, "print_period", 100),
                     .debug = item<bool>(options, "debug")};
  const auto threads = item<int>(options, "threads", 1);
  // The callables live as long as the caller waits, which is as long as anything is printed.
  PyObject* printer = print.ptr();
  PyObject* bar = progress.is_none() ? nullptr : progress.ptr();
  fetch.print = [printer](const std::string& line) {
    const nb::gil_scoped_acquire gil;
    const nb::handle function(printer);
    function(line);
  };
  long_call([=](const StopAsked& stop) {
    Bar shown(bar, stop);
    FetchOptions watched = fetch;
    watched.observers = {&shown};
    Trainer& trainer = training->trainer();
    trainer.set_threads(std::min(threads, trainer.most_threads()));
    argosy::train_from_dataset(trainer, data->make(trainer.plan().layout), watched);
  });
}

std::map<std::string, double> infer_from_dataset(const std::shared_ptr<Training>& training,
                                                 const std::shared_ptr<FileData>& data) {
  const auto result = std::make_shared<std::map<std::string, double>>();
  long_call([=](const StopAsked&) {
    Trainer& trainer = training->trainer();
    for (const Metric& metric : trainer.evaluate(data->make(trainer.plan().layout)))
      (*result)[metric.name] = metric.value;
  });
  return *result;
}

}  // namespace

Env& engine_env() {
  static Env* env = real_env().release();  // never destroyed: threads of the engine use it
  return *env;
}

TrainingSpec training_spec(const Recorder& recorder, const nb::dict& spec) {
  ForwardProgram forward{.program = recorder.program(),
                         .loss = {item<int32_t>(spec, "loss", -1)},
                         .metrics = variables(item<NamedNumbers>(spec, "metrics")),
                         .predictions = variables(item<NamedNumbers>(spec, "predictions")),
                         .frozen = item<std::vector<std::string>>(spec, "frozen")};
  for (const auto& [name, meter, prediction, label] : item<Meters>(spec, "meters"))
    forward.meters.push_back({name, meter, {prediction}, {label}});
  TrainerOptions options;
  options.tables = tables_of(item<nb::dict>(spec, "tables"));
  options.seed = item<uint64_t>(spec, "seed");
  options.check_nan = parse_check_nan(item<std::string>(spec, "check_nan", "fail"));
  const auto optimizer = item<nb::dict>(spec, "optimizer");
  options.optimizer = {.rule = item<std::string>(optimizer, "rule", "sgd"),
                       .learning_rate = item<std::string>(optimizer, "learning_rate", "0.01"),
                       .regularizer = item<std::string>(optimizer, "regularizer"),
                       .clip = item<std::string>(optimizer, "clip")};
  options.strategy.threads = item<int>(spec, "threads", 1);
  SlotLimits limits;
  for (const auto& [slot, below] : item<std::map<std::string, uint64_t>>(spec, "limits"))
    limits[slot] = below;
  return {as_model(forward), std::move(options), std::move(limits)};
}

nb::list Training::run(const nb::dict& feeds, const std::vector<int32_t>& fetch, bool train) {
  const FedByName fed = fed_by_name(feeds);
  std::vector<VarId> wanted;
  for (const int32_t number : fetch) {
    check<ConfigError>(static_cast<size_t>(number) < now_.size(),
                       "fetch_list: a variable was added after the program was first run");
    wanted.push_back(now_[static_cast<size_t>(number)]);
  }
  const ps::Purpose purpose = train ? ps::Purpose::training : ps::Purpose::inference;
  std::vector<Tensor> values;
  if (waits_) {
    const auto result = std::make_shared<std::vector<Tensor>>();
    long_call([this, fed, wanted, purpose, result](const StopAsked&) {
      *result = session_.run(fed, wanted, purpose);
    });
    values = *result;
  } else {
    const nb::gil_scoped_release release;
    values = session_.run(fed, wanted, purpose);
  }
  nb::list arrays;
  for (const Tensor& value : values) arrays.append(array_of(value));
  return arrays;
}

namespace {

/// Floats of a batch, one for each instance.
std::span<const float> floats(const Tensor& tensor) { return tensor.as<float>(); }

/// An exported model on arrays.
class ArrayPredictor {
 public:
  explicit ArrayPredictor(const std::string& dir)
      : predictor_(engine_env(), dir), batcher_(predictor_.layout()) {}

  std::map<std::string, nb::object> run(const nb::dict& feeds) {
    const FedByName fed = fed_by_name(feeds);
    Feeds answers;
    {
      const nb::gil_scoped_release release;
      batcher_.fill(fed, batch_);
      answers = predictor_.run(batch_);
    }
    std::map<std::string, nb::object> arrays;
    for (const auto& [name, value] : answers) arrays[name] = array_of(value.clone());
    return arrays;
  }

  std::vector<std::string> inputs() const {
    std::vector<std::string> names;
    for (const ColumnFeed& column : predictor_.layout().columns) names.push_back(column.input);
    for (const IndexFeed& index : predictor_.layout().indices)
      for (const std::string& slot : index.slots)
        if (std::ranges::find(names, slot) == names.end()) names.push_back(slot);
    return names;
  }

  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    for (const VarId id : predictor_.program().outputs)
      names.push_back(predictor_.program().var(id).name);
    return names;
  }

 private:
  Predictor predictor_;
  FeedBatcher batcher_;
  Batch batch_;
};

void bind_predictor(nb::module_& module) {
  nb::class_<ArrayPredictor>(module, "Predictor", "An exported model.")
      .def(nb::init<const std::string&>(), "folder"_a)
      .def("run", &ArrayPredictor::run, "feeds"_a)
      .def("inputs", &ArrayPredictor::inputs)
      .def("outputs", &ArrayPredictor::outputs);
}

void bind_meter(nb::module_& module) {
  nb::class_<Meter>(module, "Meter", "A metric over all instances that it has seen.")
      .def(nb::new_(
               [](const std::string& text) { return std::shared_ptr<Meter>(make_meter(text)); }),
           "text"_a, "Such as auc(buckets=4096).")
      .def(
          "add",
          [](Meter& self, nb::handle predictions, nb::handle labels) {
            const Tensor p = tensor_of(predictions, "predictions"), l = tensor_of(labels, "labels");
            self.add({.predictions = floats(p), .labels = floats(l)});
          },
          "predictions"_a, "labels"_a, "One float32 each for every instance.")
      .def("value", &Meter::value, "Not-a-number as long as it is not defined.")
      .def("reset", &Meter::reset);
  module.def("meter_names", &meter_names);
}

}  // namespace

void bind_training(nb::module_& module) {
  bind_meter(module);
  bind_predictor(module);
  nb::class_<Training>(module, "Training", "A program in training or in use.")
      .def("run", &Training::run, "feeds"_a, "fetch"_a, "train"_a)
      .def(
          "value",
          [](Training& self, const std::string& name) {
            return array_of(find_value(self, name).value.clone());
          },
          "name"_a)
      .def("set_value", &set_value, "name"_a, "array"_a)
      .def("value_names",
           [](Training& self) {
             std::vector<std::string> names;
             for (const NamedTensor& value : self.values()) names.push_back(value.name);
             return names;
           })
      .def(
          "rows",
          [](Training& self, const std::string& table) {
            const TableRows rows = self.trainer().communicator().store().rows(table);
            const auto count = static_cast<int64_t>(rows.keys.size());
            Tensor keys({count}, DType::i64);
            std::copy_n(reinterpret_cast<const int64_t*>(rows.keys.data()), rows.keys.size(),
                        keys.as<int64_t>().data());
            return nb::make_tuple(array_of(keys), array_of(rows.rows));
          },
          "table"_a, "The keys of a table and their rows.")
      .def("set_rows", &set_rows, "table"_a, "keys"_a, "rows"_a)
      .def("save",
           [](const std::shared_ptr<Training>& self, const std::string& dir) {
             long_call([=](const StopAsked&) { self->trainer().save(dir); });
           })
      .def("load",
           [](const std::shared_ptr<Training>& self, const std::string& dir) {
             long_call([=](const StopAsked&) { self->trainer().load(dir); });
           })
      .def("export_inference",
           [](const std::shared_ptr<Training>& self, const std::string& dir,
              const std::vector<std::string>& predictions) {
             long_call(
                 [=](const StopAsked&) { self->trainer().export_inference(dir, predictions); });
           })
      .def("plan", [](Training& self) { return self.trainer().plan().text(); });
  module.def(
      "local_training",
      [](const Recorder& recorder, const nb::dict& spec) {
        TrainingSpec made = training_spec(recorder, spec);
        const auto trainer = std::make_shared<Trainer>(engine_env(), std::move(made.recorded.model),
                                                       std::move(made.options));
        trainer->set_threads(1);  // until a data set asks for more
        return std::make_shared<Training>(trainer, *trainer, std::move(made.recorded.now),
                                          std::move(made.limits), false);
      },
      "recorder"_a, "spec"_a);
  module.def("train_from_dataset", &train_from_dataset, "training"_a, "data"_a, "options"_a,
             "print"_a, "progress"_a.none());
  module.def("infer_from_dataset", &infer_from_dataset, "training"_a, "data"_a);
}

}  // namespace argosy::python
