// Sums of whole numbers over records, for whole.py, which says what they are for and gives the same bits without them.
//
//     rows(columns, v, out)        out[k] <- sum over i of rint(columns[k][i] * v[i])
//     products(columns, v, out)    out    <- sum over i of rint(columns[k][i] * (columns[j][i] * v[i])),  j <= k, row by row
//
// Every product is rounded by itself: compiled with -ffp-contract=off, so that none is fused with what follows. Rounding adds and
// subtracts 1.5 * 2^52, which is exact to the nearest whole number, ties to even, below 2^51. Sums are of whole numbers, and
// exact in any order below 2^53.
#include <Python.h>

#include <cstddef>

namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define BEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BEST
#endif

constexpr size_t LANES = 16, PART = 2048;
constexpr double SHIFT = 6755399441055744.0;

BEST double added(const double* column, const double* v, size_t n) {
    double sums[LANES] = {}, total = 0.0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) sums[l] += (column[i + l] * v[i + l] + SHIFT) - SHIFT;
    for (size_t l = 0; l < LANES; l++) total += sums[l];
    for (; i < n; i++) total += (column[i] * v[i] + SHIFT) - SHIFT;
    return total;
}

BEST void times(const double* column, const double* v, double* out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = column[i] * v[i];
}

void rows(const double* columns, const double* v, double* out, size_t d, size_t n) {
    for (size_t k = 0; k < d; k++) out[k] = added(columns + k * n, v, n);
}

void products(const double* columns, const double* v, double* out, size_t d, size_t n) {
    for (size_t place = 0; place < d * (d + 1) / 2; place++) out[place] = 0.0;
    for (size_t start = 0; start < n; start += PART) {
        const size_t some = n - start < PART ? n - start : PART;
        double first[PART], *place = out;
        for (size_t j = 0; j < d; j++) {
            times(columns + j * n + start, v + start, first, some);
            for (size_t k = j; k < d; k++) *place++ += added(columns + k * n + start, first, some);
        }
    }
}

// Contiguous memory of a float64 array; released at the end of its scope.
struct Held {
    Py_buffer view{};
    bool held = false;
    Held(PyObject* object, int flags) { held = PyObject_GetBuffer(object, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) == 0; }
    ~Held() {
        if (held) PyBuffer_Release(&view);
    }
    size_t size() const { return (size_t)view.len / 8; }
    bool doubles() const {
        if (held && view.itemsize == 8 && view.format != nullptr && view.format[0] == 'd' && view.format[1] == '\0') return true;
        if (held) PyErr_SetString(PyExc_ValueError, "an array of 64-bit floating-point numbers is needed.");
        return false;
    }
};

template <typename Sum>
PyObject* summed(PyObject* args, bool pairs, Sum sum) {
    PyObject *from, *by, *to;
    if (!PyArg_ParseTuple(args, "OOO", &from, &by, &to)) return nullptr;
    const Held columns(from, PyBUF_ND);
    if (!columns.doubles()) return nullptr;
    const Held v(by, PyBUF_ND);
    if (!v.doubles()) return nullptr;
    const Held out(to, PyBUF_ND | PyBUF_WRITABLE);
    if (!out.doubles()) return nullptr;
    const size_t d = columns.view.ndim == 2 ? (size_t)columns.view.shape[0] : 0, n = v.size();
    if (d == 0 || (size_t)columns.view.shape[1] != n || out.size() != (pairs ? d * (d + 1) / 2 : d))
        return PyErr_Format(PyExc_ValueError, "columns (d, n), numbers (n,) and places for their sums are needed.");
    Py_BEGIN_ALLOW_THREADS;
    sum((const double*)columns.view.buf, (const double*)v.view.buf, (double*)out.view.buf, d, n);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject* py_rows(PyObject*, PyObject* args) { return summed(args, false, rows); }
PyObject* py_products(PyObject*, PyObject* args) { return summed(args, true, products); }

PyMethodDef methods[] = {
    {"rows", py_rows, METH_VARARGS, "Add up columns times numbers, each rounded to a whole number."},
    {"products", py_products, METH_VARARGS, "Add up products of pairs of columns times numbers, each rounded to a whole number."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef_Slot slots[] = {{0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_sums", "Sums of whole numbers.", 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__sums() { return PyModuleDef_Init(&definition); }
