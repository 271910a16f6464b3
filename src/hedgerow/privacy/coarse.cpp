// The loop over candidates of coarse.py, which says what is drawn and why its law is right, and which works without it.
//
//     draw(words, high, guide, bits, (c0, c1, c2), out, at, made) -> (at, made)
//
// Candidates from `at` on are decided, and the numbers that are kept are written to `out` from `made` on. It ends behind
// the last candidate, or at one that is undecided: the high word of its first number ties with a cumulative, or floating
// point is too close to call. Comparisons in floating point have a margin for their rounding, so no outcome depends on the
// instruction set, or on how a compiler fuses operations.
#include <Python.h>

#include "held.hpp"

#include <cstddef>
#include <cstdint>

namespace {

constexpr double QUICK = 0x1p-40, MARGIN = 0x1p-44;
constexpr int TERMS = 13;
constexpr size_t BUCKETS = 4096;

struct Law {
    const uint64_t* high;
    const uint16_t* guide;
    size_t entries;  // of high
    unsigned bits;
    double slopes[3];
};

size_t draw(const Law& law, const uint64_t* words, size_t n, size_t at, int64_t* out, size_t* made) {
    const unsigned bits = law.bits;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    const double part = 1.0 / (double)((uint64_t)1 << bits), bit = 1.0 / (double)((uint64_t)1 << (63 - bits));
    const double c0 = law.slopes[0], c1 = law.slopes[1], c2 = law.slopes[2];
    int64_t* next = out + *made;
    for (; at < n; at++) {
        const uint64_t first = words[2 * at], second = words[2 * at + 1];
        size_t h = law.guide[first >> 52];
        while (h < law.entries && law.high[h] < first) h++;
        if (h < law.entries && law.high[h] == first) break;
        const int64_t low = (int64_t)(second & mask), negative = (int64_t)(second >> bits & 1);
        const double u = (double)(int64_t)(second >> bits >> 1) * bit;
        const double f = (double)low * part;
        const double t = f * (c0 + c1 * (double)(int64_t)h + c2 * f);
        if (!(u + (bit + QUICK) <= 1.0 - t)) {
            double series = 1.0;
            for (int k = TERMS; k > 0; k--) series = 1.0 - t * series / k;
            if (u >= series + MARGIN) continue;
            if (!(u + (bit + MARGIN) <= series)) break;
        }
        const int64_t number = (int64_t)h * (int64_t)(mask + 1) + low;
        *next = (number ^ -negative) + negative;
        next += (number | (negative ^ 1)) != 0;  // but minus zero
    }
    *made = (size_t)(next - out);
    return at;
}

PyObject* py_draw(PyObject*, PyObject* args) {
    PyObject *from, *highs, *guides, *to;
    Law law;
    Py_ssize_t at, made;
    if (!PyArg_ParseTuple(args, "OOOI(ddd)Onn", &from, &highs, &guides, &law.bits, &law.slopes[0], &law.slopes[1],
                          &law.slopes[2], &to, &at, &made))
        return nullptr;
    const Held words(from, "LQ", 8);
    if (!words.good) return nullptr;
    const Held high(highs, "LQ", 8);
    if (!high.good) return nullptr;
    const Held guide(guides, "H", 2);
    if (!guide.good) return nullptr;
    const Held out(to, "lq", 8, PyBUF_WRITABLE);
    if (!out.good) return nullptr;
    const size_t n = words.size() / 2;
    if (at < 0 || made < 0 || (size_t)at > n || (size_t)made > out.size() || n - (size_t)at > out.size() - (size_t)made)
        return PyErr_Format(PyExc_ValueError, "%zu candidates from %zd on, and %zu places from %zd on.", n, at, out.size(), made);
    if (law.bits > 45 || guide.size() != BUCKETS)
        return PyErr_Format(PyExc_ValueError, "a guide of %zu buckets, and %u bits.", guide.size(), law.bits);
    law.high = (const uint64_t*)high.view.buf;
    law.guide = (const uint16_t*)guide.view.buf;
    law.entries = high.size();
    for (size_t b = 0; b < BUCKETS; b++)
        if (law.guide[b] > law.entries) return PyErr_Format(PyExc_ValueError, "the guide leaves the table at %zu.", b);
    size_t end, count = (size_t)made;
    Py_BEGIN_ALLOW_THREADS;
    end = draw(law, (const uint64_t*)words.view.buf, n, (size_t)at, (int64_t*)out.view.buf, &count);
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("nn", (Py_ssize_t)end, (Py_ssize_t)count);
}

PyMethodDef methods[] = {
    {"draw", py_draw, METH_VARARGS, "Decide candidates; see coarse.py."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef_Slot slots[] = {{0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_coarse", "Draws of noise.", 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__coarse() { return PyModuleDef_Init(&definition); }
