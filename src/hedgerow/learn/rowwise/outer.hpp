// Exact sums of outer products of 16-bit numbers, for one instruction set; included by vectors.hpp.
//
// total[i][j] += sum over records u[r][i] a[r][j]. Two records make a pair in one 32-bit word, and `dot` adds both products to a
// 32-bit sum, modulo 2^32. Records are taken together as long as
//
//     sum over them of max|u[r]| max|a[r]|  <=  2^31 - 1.
//
// Every sum of theirs is then a number of 32 bits with its sign, so what is left modulo 2^32 is the sum itself, whatever happened
// on the way; it goes into 64 bits. One record alone always fits: 2^15 2^15 = 2^30. Clipped gradients are below 2^25 (1 + 2^-10)
// each, so that at least 63 fit.
constexpr size_t PAIRS = 256;

template <int R, int C>
TARGET static inline void tile(const int32_t* const* u, const int32_t* a, size_t n, int64_t* const* out, size_t left) {
    ivec s[R][C];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 16
        for (int c = 0; c < C; c++) s[r][c] = none();
    for (size_t t = 0; t < n; t++, a += C * WHOLES) {
        ivec b[C];
#pragma GCC unroll 16
        for (int c = 0; c < C; c++) b[c] = pairs(a + c * WHOLES);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const ivec v = pair(u[r][t]);
#pragma GCC unroll 16
            for (int c = 0; c < C; c++) s[r][c] = dot(s[r][c], v, b[c]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 16
        for (int c = 0; c < C; c++)
            if ((size_t)c * WHOLES < left) spill(out[r] + c * WHOLES, s[r][c], left - (size_t)c * WHOLES);
}

template <int C>
TARGET static void tiles(const int32_t* u, size_t k, const int32_t* a, size_t n, int64_t* out, size_t ld, size_t left) {
    constexpr int R = tall(C);
    const int32_t* rows[R];
    int64_t* to[R];
    for (size_t i = 0; i < k;) {
        const size_t rest = k - i, height = rest >= R ? R : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
        for (size_t r = 0; r < height; r++) rows[r] = u + (i + r) * PAIRS, to[r] = out + (i + r) * ld;
        if (height == R) tile<R, C>(rows, a, n, to, left);
        else if (height == 4) tile<4, C>(rows, a, n, to, left);
        else if (height == 2) tile<2, C>(rows, a, n, to, left);
        else tile<1, C>(rows, a, n, to, left);
        i += height;
    }
}

TARGET static int largest(const int16_t* row, size_t n) {
    int most = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        most = std::max<int>(most, row[i]);
        least = std::min<int>(least, row[i]);
    }
    return std::max(most, -least);
}

static inline int32_t joined(int16_t low, int16_t high) { return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)(uint16_t)high << 16); }

TARGET static void add_outer(const int16_t* u, const int16_t* a, size_t m, size_t k, size_t l, int64_t* total) {
    const size_t panel = (size_t)(ACROSS * WHOLES), vectors = (l + WHOLES - 1) / WHOLES;
    std::vector<int32_t> left(k * PAIRS), right(PAIRS * vectors * WHOLES);
    const std::vector<int16_t> zeros(std::max(k, l), 0);
    for (size_t first = 0, records; first < m; first += records) {
        int64_t room = ((int64_t)1 << 31) - 1;
        for (records = 0; records < 2 * PAIRS && first + records < m; records++) {
            room -= (int64_t)largest(u + (first + records) * k, k) * largest(a + (first + records) * l, l);
            if (room < 0) break;
        }
        const size_t n = (records + 1) / 2;
        for (size_t t = 0; t < n; t++) {
            const int16_t* p = u + (first + 2 * t) * k;
            const int16_t* q = 2 * t + 1 < records ? p + k : zeros.data();
            for (size_t i = 0; i < k; i++) left[i * PAIRS + t] = joined(p[i], q[i]);
        }
        int32_t* to = right.data();
        for (size_t j = 0; j < l; j += panel) {
            const size_t width = std::min(panel, (l - j + WHOLES - 1) / WHOLES * WHOLES), real = std::min(width, l - j);
            for (size_t t = 0; t < n; t++, to += width) {
                const int16_t* p = a + (first + 2 * t) * l + j;
                const int16_t* q = 2 * t + 1 < records ? p + l : zeros.data();
                for (size_t i = 0; i < real; i++) to[i] = joined(p[i], q[i]);
                for (size_t i = real; i < width; i++) to[i] = 0;
            }
        }
        const int32_t* b = right.data();
        for (size_t j = 0; j < l; j += panel) {
            const size_t rest = std::min(panel, l - j), across = (rest + WHOLES - 1) / WHOLES;
            if (across == 1) tiles<1>(left.data(), k, b, n, total + j, l, rest);
            if constexpr (ACROSS >= 2)
                if (across == 2) tiles<2>(left.data(), k, b, n, total + j, l, rest);
            if constexpr (ACROSS >= 4) {
                if (across == 3) tiles<3>(left.data(), k, b, n, total + j, l, rest);
                if (across == 4) tiles<4>(left.data(), k, b, n, total + j, l, rest);
            }
            b += n * across * WHOLES;
        }
    }
}
