// Two passes over a float32 vector, for grid.py, which says what they are for and works without them.
//
//     squares(row)            the squared length of the row
//     steps(row, factor, out) out <- row * factor, rounded to whole numbers (int32); the squared length of out
//
// Products are added in float, 64 in a row to each of 16 sums, and then in double: a length is right to a part in 10^5.
// Rounding adds and subtracts 1.5 * 2^23, which is exact to the nearest whole number, ties to even, below 2^22.
#include <Python.h>

#include "held.hpp"

#include <cstddef>
#include <cstdint>

namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define BEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BEST
#endif

constexpr size_t LANES = 16, PART = 1024;

BEST double squares(const float* row, size_t n) {
    double total = 0.0;
    size_t i = 0;
    while (i + LANES <= n) {
        float sums[LANES] = {};
        for (size_t end = i + PART; i < end && i + LANES <= n; i += LANES)
            for (size_t l = 0; l < LANES; l++) sums[l] += row[i + l] * row[i + l];
        for (size_t l = 0; l < LANES; l++) total += sums[l];
    }
    for (; i < n; i++) total += (double)row[i] * row[i];
    return total;
}

BEST double steps(const float* row, float factor, int32_t* out, size_t n) {
    const float shift = 12582912.0f;
    double total = 0.0;
    size_t i = 0;
    while (i + LANES <= n) {
        float sums[LANES] = {};
        for (size_t end = i + PART; i < end && i + LANES <= n; i += LANES)
            for (size_t l = 0; l < LANES; l++) {
                const float whole = (row[i + l] * factor + shift) - shift;
                out[i + l] = (int32_t)whole;
                sums[l] += whole * whole;
            }
        for (size_t l = 0; l < LANES; l++) total += sums[l];
    }
    for (; i < n; i++) {
        const float whole = (row[i] * factor + shift) - shift;
        out[i] = (int32_t)whole;
        total += (double)whole * whole;
    }
    return total;
}

PyObject* py_squares(PyObject*, PyObject* object) {
    const Held row(object, "f", 4);
    if (!row.good) return nullptr;
    double found;
    Py_BEGIN_ALLOW_THREADS;
    found = squares((const float*)row.view.buf, row.size());
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(found);
}

PyObject* py_steps(PyObject*, PyObject* args) {
    PyObject *from, *to;
    float factor;
    if (!PyArg_ParseTuple(args, "OfO", &from, &factor, &to)) return nullptr;
    const Held row(from, "f", 4);
    if (!row.good) return nullptr;
    const Held out(to, "i", 4, PyBUF_WRITABLE);
    if (!out.good) return nullptr;
    if (row.size() != out.size()) return PyErr_Format(PyExc_ValueError, "%zu numbers for %zu places.", row.size(), out.size());
    double found;
    Py_BEGIN_ALLOW_THREADS;
    found = steps((const float*)row.view.buf, factor, (int32_t*)out.view.buf, row.size());
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(found);
}

PyMethodDef methods[] = {
    {"squares", py_squares, METH_O, "The squared length of a float32 row."},
    {"steps", py_steps, METH_VARARGS, "Round row * factor to whole numbers; their squared length."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef_Slot slots[] = {{0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_steps", "Rounding to a grid.", 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__steps() { return PyModuleDef_Init(&definition); }
