#include "argosy/base/error.h"

#include "bindings.h"

namespace argosy::python {
namespace {

// Kept for the life of the process: the translator may be called until the very end.
struct ExceptionTypes {
  nb::object error, config, data, io;
};
ExceptionTypes* types = nullptr;

nb::object make_type(nb::module_& module, const char* name, const char* doc,
                     const nb::tuple& bases) {
  const std::string full = std::string("argosy.") + name;
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr));
  if (!type.is_valid()) throw nb::python_error();
  module.attr(name) = type;
  return type;
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& e) {
    PyErr_SetString(types->config.ptr(), e.what());
  } catch (const DataError& e) {
    PyErr_SetString(types->data.ptr(), e.what());
  } catch (const IoError& e) {
    PyErr_SetString(types->io.ptr(), e.what());
  } catch (const Error& e) {
    PyErr_SetString(types->error.ptr(), e.what());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  const auto builtin = [](PyObject* type) { return nb::borrow(type); };
  const nb::object error = make_type(module, "Error", "Root of what argosy raises.",
                                     nb::make_tuple(builtin(PyExc_Exception)));
  types = new ExceptionTypes{
      error,
      make_type(module, "ConfigError", "Something that the script says does not fit.",
                nb::make_tuple(error, builtin(PyExc_ValueError))),
      make_type(module, "DataError", "Data are wrong: a sample, a file, a number.",
                nb::make_tuple(error, builtin(PyExc_ValueError))),
      make_type(module, "IoError", "The world failed: a peer, a socket, a disk.",
                nb::make_tuple(error, builtin(PyExc_OSError)))};
  nb::register_exception_translator(translate, nullptr);
}

}  // namespace argosy::python
