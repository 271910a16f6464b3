// Products whose rows know nothing of each other, for one instruction set; included by vectors.hpp.
//
//     out[r][n] = start[n] + a[r][at 0] b[0][n] + a[r][at 1] b[1][n] + ...       in ascending order, one chain a term
//
// Each number is a chain of fused multiply-adds, each rounded once as IEEE 754 says. That defines its bits. Vectors run along n
// and blocks along rows and n, so no chain is cut, and nothing that a block shares enters a number.

// Columns of the right operand in panels of up to ACROSS vectors, (k, vectors LANES) each, padded with zeros.
TARGET static size_t panel_size(size_t k, size_t n) { return k * ((n + LANES - 1) / LANES * LANES); }

// b[i][j] = from[i down + j right]. Without TARGET: gathers would be slower than loads one by one.
static void pack(const float* from, size_t k, size_t n, ptrdiff_t down, ptrdiff_t right, float* to) {
    constexpr size_t STRIP = 16;
    const size_t panel = (size_t)(ACROSS * LANES);
    for (size_t first = 0; first < n; first += panel) {
        const size_t width = std::min(panel, (n - first + LANES - 1) / LANES * LANES), real = std::min(width, n - first);
        const float* own = from + (ptrdiff_t)first * right;
        if (right == 1) {
            for (size_t i = 0; i < k; i++) {
                std::copy_n(own + (ptrdiff_t)i * down, real, to + i * width);
                std::fill(to + i * width + real, to + (i + 1) * width, 0.0f);
            }
        } else {
            for (size_t j0 = 0; j0 < width; j0 += STRIP) {  // so many columns of b side by side, each read from end to end
                const size_t j1 = std::min(width, j0 + STRIP), j2 = std::max(j0, std::min(real, j1));
                for (size_t i = 0; i < k; i++) {
                    for (size_t j = j0; j < j2; j++) to[i * width + j] = own[(ptrdiff_t)i * down + (ptrdiff_t)j * right];
                    for (size_t j = j2; j < j1; j++) to[i * width + j] = 0.0f;
                }
            }
        }
        to += k * width;
    }
}

struct Left {
    const int64_t* terms;  // offsets of the k terms, or null: one behind the other
    size_t k;
};

// R rows and C vectors; `left` numbers of them are stored.
template <int R, int C>
TARGET static inline void block(const float* const* rows, const Left& a, const float* panel, const float* start, float* const* out,
                                size_t left, bool relu) {
    vec s[R][C];
#pragma GCC unroll 16
    for (int c = 0; c < C; c++) {
        const vec begin = load(start + c * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) s[r][c] = begin;
    }
    for (size_t i = 0; i < a.k; i++, panel += C * LANES) {
        const int64_t at = a.terms ? a.terms[i] : (int64_t)i;
        vec b[C];
#pragma GCC unroll 16
        for (int c = 0; c < C; c++) b[c] = load(panel + c * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const vec v = everywhere(rows[r] + at);
#pragma GCC unroll 16
            for (int c = 0; c < C; c++) s[r][c] = chain(v, b[c], s[r][c]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 16
        for (int c = 0; c < C; c++)
            if ((size_t)c * LANES < left)
                store(out[r] + c * LANES, relu ? rectified(s[r][c]) : s[r][c], std::min<size_t>(LANES, left - (size_t)c * LANES));
}

// Rows from `first` to `last` beside one panel of C vectors.
template <int C, class Row>
TARGET static void beside(const Row& row, size_t first, size_t last, const Left& a, const float* panel, const float* start, float* out,
                          size_t ld, size_t left, bool relu) {
    constexpr int R = tall(C);
    const float* rows[R];
    float* to[R];
    for (size_t r = first; r < last;) {
        const size_t rest = last - r, height = rest >= R ? R : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
        for (size_t i = 0; i < height; i++) rows[i] = row(r + i), to[i] = out + (r + i) * ld;
        if (height == R) block<R, C>(rows, a, panel, start, to, left, relu);
        else if (height == 4) block<4, C>(rows, a, panel, start, to, left, relu);
        else if (height == 2) block<2, C>(rows, a, panel, start, to, left, relu);
        else block<1, C>(rows, a, panel, start, to, left, relu);
        r += height;
    }
}

// `row(r)` is where row r begins. start holds zeros or numbers for whole panels.
template <class Row>
TARGET static void product(const Row& row, size_t m, const Left& a, const float* packed, size_t n, const float* start, float* out, bool relu) {
    const size_t panel = (size_t)(ACROSS * LANES), some = std::max<size_t>(48, 65536 / std::max<size_t>(a.k, 1) / 12 * 12);
    for (size_t first = 0; first < m; first += some) {  // rows that stay in the second cache while panels pass
        const size_t last = std::min(m, first + some);
        const float* b = packed;
        for (size_t j = 0; j < n; j += panel) {
            const size_t left = std::min(panel, n - j), vectors = (left + LANES - 1) / LANES;
            if (vectors == 1) beside<1>(row, first, last, a, b, start + j, out + j, n, left, relu);
            if constexpr (ACROSS >= 2)
                if (vectors == 2) beside<2>(row, first, last, a, b, start + j, out + j, n, left, relu);
            if constexpr (ACROSS >= 4) {
                if (vectors == 3) beside<3>(row, first, last, a, b, start + j, out + j, n, left, relu);
                if (vectors == 4) beside<4>(row, first, last, a, b, start + j, out + j, n, left, relu);
            }
            b += a.k * vectors * LANES;
        }
    }
}

TARGET static std::vector<float> padded(const float* start, size_t n) {
    std::vector<float> whole(n + (size_t)(ACROSS * LANES), 0.0f);
    if (start) std::copy(start, start + n, whole.begin());
    return whole;
}

TARGET static void multiply(const float* a, size_t m, size_t k, const float* packed, size_t n, const float* start, bool relu, float* out) {
    const std::vector<float> begin = padded(start, n);
    product([=](size_t r) { return a + r * k; }, m, Left{nullptr, k}, packed, n, begin.data(), out, relu);
}

// x of shape (m, d): rows of the product are places of records, and begin at x[i] + where[p].
TARGET static void gathered(const float* x, size_t m, size_t d, const int64_t* where, size_t places, const int64_t* terms, size_t k,
                            const float* packed, size_t n, const float* start, bool relu, float* out) {
    const std::vector<float> begin = padded(start, n);
    product([=](size_t r) { return x + r / places * d + where[r % places]; }, m * places, Left{terms, k}, packed, n, begin.data(), out, relu);
}

// The same with the roles of the tables exchanged: rows are terms, and the chain runs over places.
TARGET static void outer_gathered(const float* x, size_t m, size_t d, const int64_t* where, size_t places, const int64_t* terms, size_t k,
                                  const float* g, size_t n, float* out) {
    const std::vector<float> begin = padded(nullptr, n);
    std::vector<float> panel(panel_size(places, n));
    for (size_t i = 0; i < m; i++) {
        const float* own = x + i * d;
        pack(g + i * places * n, places, n, (ptrdiff_t)n, 1, panel.data());
        product([=](size_t t) { return own + terms[t]; }, k, Left{where, places}, panel.data(), n, begin.data(), out + i * k * n, false);
    }
}
