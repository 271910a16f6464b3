// Contiguous memory of an array of numbers of one kind, released at the end of its scope; for steps.cpp and coarse.cpp.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstring>

namespace {

struct Held {
    Py_buffer view{};
    bool good = false;

    // `kinds`: letters of the struct module, any of which will do; `width`: bytes of a number. Sets an error where not good.
    Held(PyObject* object, const char* kinds, Py_ssize_t width, int flags = 0) {
        if (PyObject_GetBuffer(object, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) != 0) return;
        const char* found = view.format;
        good = view.itemsize == width && found != nullptr && found[0] != '\0' && found[1] == '\0' && std::strchr(kinds, found[0]);
        if (good) return;
        PyBuffer_Release(&view);
        PyErr_Format(PyExc_ValueError, "an array of %zd-bit numbers of kind '%s' is needed.", 8 * width, kinds);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
        if (good) PyBuffer_Release(&view);
    }
    size_t size() const { return (size_t)(view.len / view.itemsize); }
};

}  // namespace
