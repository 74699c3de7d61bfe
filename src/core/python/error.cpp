// C++ exceptions as Python ones.
#include <new>

#include "python/python.h"

namespace rushlight::python {

void set_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an error was lost on its way through the core");
  } catch (const Error& e) {
    PyObject* type = PyExc_RuntimeError;
    switch (e.kind) {
      case ErrorKind::Runtime:
      case ErrorKind::OutOfMemory:
        break;
      case ErrorKind::Type:
        type = PyExc_TypeError;
        break;
      case ErrorKind::Value:
        type = PyExc_ValueError;
        break;
      case ErrorKind::Index:
        type = PyExc_IndexError;
        break;
      case ErrorKind::NotImplemented:
        type = PyExc_NotImplementedError;
        break;
      case ErrorKind::Overflow:
        type = PyExc_OverflowError;
        break;
      case ErrorKind::ZeroDivision:
        type = PyExc_ZeroDivisionError;
        break;
      case ErrorKind::Buffer:
        type = PyExc_BufferError;
        break;
    }
    PyErr_SetString(type, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown error in the core");
  }
}

}  // namespace rushlight::python
