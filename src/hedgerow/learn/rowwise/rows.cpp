// Computations in which no record knows of another: products, functions of rows, and sums of whole numbers.
//
// Called through compiled.py, which makes the arrays and says what is wrong with them; here sizes are checked again, because a
// wrong one would write outside an array. vectors.hpp compiles the arithmetic (chain.hpp, elements.hpp, outer.hpp, plain.hpp) for several
// instruction sets; the caller names one of `paths`. All give the same bits.
//
// Needs GCC or Clang and -ffp-contract=off. Uses the stable interface of Python 3.11.

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

#include "vectors.hpp"

struct Path {
    const char* name;
    decltype(&scalar::panel_size) panel_size;
    decltype(&scalar::pack) pack;
    decltype(&scalar::multiply) multiply;
    decltype(&scalar::gathered) gathered;
    decltype(&scalar::outer_gathered) outer_gathered;
    decltype(&scalar::add_outer) add_outer;
    decltype(&scalar::squares) squares;
    decltype(&scalar::summed) summed;
    decltype(&scalar::whole) whole;
    decltype(&scalar::lengths) lengths;
    decltype(&scalar::shorten) shorten;
    decltype(&scalar::steps) steps;
    decltype(&scalar::add_steps) add_steps;
    decltype(&scalar::exp64) exp64;
    decltype(&scalar::elementwise) elementwise;
    decltype(&scalar::softmax_slopes) softmax_slopes;
    decltype(&scalar::max_pool) max_pool;
    decltype(&scalar::max_pool_slopes) max_pool_slopes;
};

#define PATH(set)                                                                                                              \
    Path {                                                                                                                     \
        #set, set::panel_size, set::pack, set::multiply, set::gathered, set::outer_gathered, set::add_outer, set::squares,     \
            set::summed, set::whole, set::lengths, set::shorten, set::steps, set::add_steps, set::exp64, set::elementwise,     \
            set::softmax_slopes, set::max_pool, set::max_pool_slopes                                                           \
    }

// Instruction sets of this machine, the best first.
std::vector<Path> paths() {
    std::vector<Path> found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool wide = fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512vnni");
    if (wide) found.push_back(PATH(avx512));
    if (fma) found.push_back(PATH(avx2));
#elif defined(__aarch64__)
    found.push_back(PATH(neon));
#endif
    found.push_back(PATH(scalar));
    return found;
}
const std::vector<Path>& known() {
    static const std::vector<Path> all = paths();
    return all;
}

// Rounding to nearest and subnormal numbers in this thread, as IEEE 754 has them; puts back what was there.
class Standard {
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();

  public:
    Standard() { _mm_setcsr(0x1f80); }
    ~Standard() { _mm_setcsr(before); }
#elif defined(__aarch64__)
    uint64_t before;

  public:
    Standard() {
        asm volatile("mrs %0, fpcr" : "=r"(before));
        asm volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    }
    ~Standard() { asm volatile("msr fpcr, %0" : : "r"(before)); }
#else
  public:
    Standard() {}
    ~Standard() {}
#endif
};

// ---- Python ---------------------------------------------------------------------------------------------------------
// A C-contiguous buffer, released at the end of its scope; absent for None.
struct Buffer {
    Py_buffer view{};
    bool held = false;
    ~Buffer() {
        if (held) PyBuffer_Release(&view);
    }
    template <typename T> T* of() const { return held ? (T*)view.buf : nullptr; }
    template <typename T> bool has(size_t n) const { return held && (size_t)view.len == n * sizeof(T); }
};

constexpr int MOST_BUFFERS = 7, MOST_SIZES = 6;

// What every function is called with: an instruction set, arrays, sizes, and one more number.
struct Call {
    const Path* path = nullptr;
    Buffer arrays[MOST_BUFFERS];
    size_t sizes[MOST_SIZES];
    double number = 0.0;
    const Buffer& operator[](int i) const { return arrays[i]; }
};

// (path, (arrays), (sizes), number): the last `written` arrays are written to.
bool read(PyObject* args, Call& call, int n_arrays, int written, int n_sizes) {
    int path;
    PyObject *arrays, *sizes;
    if (!PyArg_ParseTuple(args, "iO!O!d", &path, &PyTuple_Type, &arrays, &PyTuple_Type, &sizes, &call.number)) return false;
    if (path < 0 || (size_t)path >= known().size() || PyTuple_Size(arrays) != n_arrays || PyTuple_Size(sizes) != n_sizes) {
        PyErr_SetString(PyExc_ValueError, "this is not how compiled.py calls.");
        return false;
    }
    call.path = &known()[(size_t)path];
    for (int i = 0; i < n_sizes; i++) {
        const Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GetItem(sizes, i));
        if (size == -1 && PyErr_Occurred()) return false;
        if (size < 0 || size >= ((Py_ssize_t)1 << 30)) {
            PyErr_Format(PyExc_ValueError, "size %zd is not in 0 to 2^30.", size);
            return false;
        }
        call.sizes[i] = (size_t)size;
    }
    for (int i = 0; i < n_arrays; i++) {
        PyObject* object = PyTuple_GetItem(arrays, i);
        if (object == Py_None) continue;
        const int flags = PyBUF_C_CONTIGUOUS | (i >= n_arrays - written ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(object, &call.arrays[i].view, flags) != 0) return false;
        call.arrays[i].held = true;
    }
    return true;
}

// Computes without the interpreter lock, with this thread's arithmetic as it should be.
template <class Compute>
PyObject* run(bool fits, const Compute& compute) {
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "arrays do not fit their sizes; compiled.py makes them.");
        return nullptr;
    }
    bool exhausted = false;
    Py_BEGIN_ALLOW_THREADS;
    try {
        const Standard standard;
        compute();
    } catch (const std::bad_alloc&) {
        exhausted = true;
    }
    Py_END_ALLOW_THREADS;
    if (exhausted) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

// Sizes are below 2^30, so two of them multiply without overflow; three may be more than any array has.
size_t volume(size_t a, size_t b, size_t c) { return c != 0 && a * b > ((size_t)1 << 58) / c ? (size_t)1 << 58 : a * b * c; }

// Whether every sum of one offset of each table is a place of a record of d numbers.
bool inside(const Buffer& where, size_t places, const Buffer& terms, size_t k, size_t d) {
    if (places == 0 || k == 0) return true;
    const auto *w = where.of<const int64_t>(), *t = terms.of<const int64_t>();
    const auto [w0, w1] = std::minmax_element(w, w + places);
    const auto [t0, t1] = std::minmax_element(t, t + k);
    const int64_t most = (int64_t)1 << 40;
    return *w0 > -most && *w1 < most && *t0 > -most && *t1 < most && *w0 + *t0 >= 0 && *w1 + *t1 < (int64_t)d;
}
bool within(const Buffer& places, size_t n, int64_t end) {
    const auto* p = (const int64_t*)places.view.buf;
    return std::all_of(p, p + n, [=](int64_t place) { return place >= -1 && place < end; });
}

#define FUNCTION(name, n_arrays, written, n_sizes)                                     \
    PyObject* name##_of(const Call& call, const Path& path, const size_t* n);          \
    PyObject* name(PyObject*, PyObject* args) {                                        \
        Call call;                                                                     \
        if (!read(args, call, n_arrays, written, n_sizes)) return nullptr;             \
        return name##_of(call, *call.path, call.sizes);                                \
    }                                                                                  \
    PyObject* name##_of(const Call& call, const Path& path, const size_t* n)

#include "calls.hpp"

PyMethodDef methods[] = {
    {"panel_size", py_panel_size, METH_VARARGS, nullptr},
    {"pack", py_pack, METH_VARARGS, nullptr},
    {"multiply", py_multiply, METH_VARARGS, nullptr},
    {"gathered", py_gathered, METH_VARARGS, nullptr},
    {"outer_gathered", py_outer_gathered, METH_VARARGS, nullptr},
    {"add_outer", py_add_outer, METH_VARARGS, nullptr},
    {"squares", py_squares, METH_VARARGS, nullptr},
    {"summed", py_summed, METH_VARARGS, nullptr},
    {"whole", py_whole, METH_VARARGS, nullptr},
    {"lengths", py_lengths, METH_VARARGS, nullptr},
    {"shorten", py_shorten, METH_VARARGS, nullptr},
    {"steps", py_steps, METH_VARARGS, nullptr},
    {"add_steps", py_add_steps, METH_VARARGS, nullptr},
    {"exp64", py_exp64, METH_VARARGS, nullptr},
    {"elementwise", py_elementwise, METH_VARARGS, nullptr},
    {"softmax_slopes", py_softmax_slopes, METH_VARARGS, nullptr},
    {"max_pool", py_max_pool, METH_VARARGS, nullptr},
    {"max_pool_slopes", py_max_pool_slopes, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

int fill(PyObject* module) {
    PyObject* names = PyTuple_New((Py_ssize_t)known().size());
    if (names == nullptr) return -1;
    for (size_t i = 0; i < known().size(); i++) {
        PyObject* name = PyUnicode_FromString(known()[i].name);
        if (name == nullptr || PyTuple_SetItem(names, (Py_ssize_t)i, name) < 0) {
            Py_DECREF(names);
            return -1;
        }
    }
    const int failed = PyModule_AddObjectRef(module, "paths", names);
    Py_DECREF(names);
    return failed;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, (void*)fill}, {0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_rows", "Computations in which no record knows of another.", 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__rows() { return PyModuleDef_Init(&definition); }
