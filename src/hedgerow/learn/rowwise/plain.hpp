// Functions of a row, and whole numbers, for one instruction set; included by vectors.hpp.
//
// The same operations in the same order as functions.py, folds.py, integers.py and places.py: additions, multiplications,
// divisions and square roots, each rounded as IEEE 754 says. The compiler may use vectors, and must not join a multiplication and
// an addition (-ffp-contract=off).

constexpr size_t FOLD = 4096;

// v[0] = sum of v[0..n), by halves; overwrites.
TARGET static double halves(double* v, size_t n) {
    if (n == 0) return 0.0;
    while (n > 1) {
        const size_t half = (n + 1) / 2;
#pragma GCC ivdep
        for (size_t i = 0; i < n - half; i++) v[i] += v[i + half];
        n = half;
    }
    return v[0];
}

// Sums `of(i)` for i below n in the order of folds.py: blocks of FOLD, blocks of their sums, and so on.
template <class Of>
TARGET static double folded(const Of& of, size_t n, std::vector<double>& room) {
    if (room.size() < FOLD) room.resize(FOLD);
    double* v = room.data();
    if (n <= FOLD) {
        for (size_t i = 0; i < n; i++) v[i] = of(i);
        return halves(v, n);
    }
    std::vector<double> sums;
    for (size_t at = 0; at < n; at += FOLD) {
        const size_t some = std::min(FOLD, n - at);
        for (size_t i = 0; i < some; i++) v[i] = of(at + i);
        sums.push_back(halves(v, some));
    }
    while (sums.size() > 1) {
        size_t to = 0;
        for (size_t at = 0; at < sums.size(); at += FOLD) sums[to++] = halves(sums.data() + at, std::min(FOLD, sums.size() - at));
        sums.resize(to);
    }
    return sums[0];
}

TARGET static double square_of(const float* row, size_t n, std::vector<double>& room) {
    return folded([=](size_t i) { return (double)row[i] * (double)row[i]; }, n, room);
}

TARGET static void squares(const float* rows, size_t m, size_t n, double* out) {
    std::vector<double> room;
    for (size_t r = 0; r < m; r++) out[r] = square_of(rows + r * n, n, room);
}

// (m, places, n) to (m, n): fold over places, a row of n numbers at a time.
TARGET static void fold_rows(double* v, size_t places, size_t n) {
    while (places > 1) {
        const size_t half = (places + 1) / 2;
#pragma GCC ivdep
        for (size_t i = 0; i < (places - half) * n; i++) v[i] += v[i + half * n];
        places = half;
    }
}
TARGET static void summed(const float* values, size_t m, size_t places, size_t n, float* out) {
    std::vector<double> room(std::min(places, FOLD) * n), sums;
    for (size_t r = 0; r < m; r++, values += places * n, out += n) {
        sums.clear();
        for (size_t at = 0; at < places; at += FOLD) {
            const size_t some = std::min(FOLD, places - at);
            for (size_t i = 0; i < some * n; i++) room[i] = (double)values[at * n + i];
            fold_rows(room.data(), some, n);
            sums.insert(sums.end(), room.begin(), room.begin() + (ptrdiff_t)n);
        }
        for (size_t blocks = sums.size() / std::max<size_t>(n, 1); blocks > FOLD;) {  // blocks of blocks, as in folds.py
            size_t to = 0;
            for (size_t at = 0; at < blocks; at += FOLD, to++) {
                fold_rows(sums.data() + at * n, std::min(FOLD, blocks - at), n);
                std::copy_n(sums.data() + at * n, n, sums.data() + to * n);
            }
            blocks = to;
            sums.resize(blocks * n);
        }
        if (places == 0) std::fill(out, out + n, 0.0f);
        else fold_rows(sums.data(), sums.size() / std::max<size_t>(n, 1), n);
        for (size_t i = 0; i < n && places; i++) out[i] = (float)sums[i];
    }
}

// ---- whole numbers ------------------------------------------------------------------------------------------------------
constexpr int BITS = 12;
constexpr int64_t SHORTEST = (int64_t)1 << 21, TOO_LONG = (int64_t)1 << 52, MOST = (int64_t)1 << 51;

TARGET static void whole(const float* a, size_t m, size_t n, bool one, int16_t* out, double* scale, int64_t* length) {
    std::vector<double> room;
    const size_t wide = n + (one ? 1 : 0);
    constexpr float magic = 12582912.0f;  // 1.5 * 2^23
    for (size_t r = 0; r < m; r++, a += n, out += wide) {
        const double size = std::sqrt(square_of(a, n, room) + (one ? 1.0 : 0.0)) * (1.0 + 0x1p-20);
        const bool there = size >= 0x1p-115 && size <= 0x1p127;
        scale[r] = there ? 1.0 : size < 0x1p-115 ? 1.0 : (double)NAN;
        length[r] = 0;
        if (!there) {
            std::fill(out, out + wide, (int16_t)0);
            continue;
        }
        int exponent;
        std::frexp(size, &exponent);
        scale[r] = std::ldexp(1.0, BITS - exponent);
        const float s = (float)scale[r];
        int32_t sum = 0;  // (2^12 + sqrt(n) / 2)^2 is below 2^31 for rows of fewer than 2^30
        for (size_t i = 0; i < n; i++) out[i] = (int16_t)(int32_t)((a[i] * s + magic) - magic);
        if (one) out[n] = (int16_t)(int32_t)((s + magic) - magic);
        for (size_t i = 0; i < wide; i++) sum += (int32_t)out[i] * (int32_t)out[i];
        length[r] = sum;
        if (length[r] < SHORTEST) {
            std::fill(out, out + wide, (int16_t)0);
            length[r] = -1;
        }
    }
}

TARGET static void lengths(const float* g, size_t m, size_t n, const double* scale, const int64_t* length, double* out) {
    std::vector<double> room;
    for (size_t r = 0; r < m; r++) out[r] = square_of(g + r * n, n, room) * (double)std::max<int64_t>(length[r], 0) / (scale[r] * scale[r]);
}

// cut may be null. Numbers beyond 2^20 are refused before they are rounded, so that adding `magic` rounds.
TARGET static void shorten(const float* g, size_t m, size_t n, const double* factor, const double* scale, const int64_t* length, double step,
                           const uint8_t* cut, int16_t* out, int64_t* used) {
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
    for (size_t r = 0; r < m; r++, g += n, out += n) {
        used[r] = 0;
        const bool live = factor[r] != 0.0 && length[r] > 0;
        if (!live) {
            std::fill(out, out + n, (int16_t)0);
            continue;
        }
        const double by = factor[r] / scale[r] / step;
        const bool off = cut && cut[r];
        int fits = 1;
        for (size_t i = 0; i < n; i++) {
            const double v = (double)g[i] * by, bounded = std::fabs(v) <= 0x1p20 ? v : 0x1p20;  // also for what is not a number
            const int32_t whole = off ? (int32_t)bounded : (int32_t)((bounded + magic) - magic);
            fits &= whole <= 32767 && whole >= -32767;
            out[i] = (int16_t)whole;
        }
        int64_t sum = 0;
        for (size_t i = 0; i < n; i++) sum += (int64_t)((int32_t)out[i] * (int32_t)out[i]);
        if (fits && (double)sum * (double)length[r] <= (double)MOST) {
            used[r] = sum * length[r];
        } else {
            std::fill(out, out + n, (int16_t)0);
            used[r] = TOO_LONG;
        }
    }
}

TARGET static void steps(const float* g, size_t m, size_t d, const double* factor, double step, int32_t* out, int64_t* used) {
    constexpr size_t some = 256;  // squares of at most 2^54 each: their sum fits 64 bits
    for (size_t r = 0; r < m; r++, g += d, out += d) {
        used[r] = 0;
        if (factor[r] == 0.0) {
            std::fill(out, out + d, 0);
            continue;
        }
        const double by = factor[r] / step;
        bool fits = true;
        int64_t total = 0;
        for (size_t at = 0; at < d && fits; at += some) {
            const size_t last = std::min(d, at + some);
            for (size_t i = at; i < last; i++) {
                const double v = (double)g[i] * by;
                out[i] = (int32_t)(std::fabs(v) <= 0x1p27 ? v : 0x1p27);
            }
            int64_t sum = 0;
            for (size_t i = at; i < last; i++) sum += (int64_t)out[i] * (int64_t)out[i];
            total += std::min(sum, MOST + 1);
            fits = total <= MOST;
        }
        used[r] = fits ? total : TOO_LONG;
        if (!fits) std::fill(out, out + d, 0);
    }
}

TARGET static void add_steps(const int32_t* v, size_t m, size_t d, int64_t* total) {
    constexpr size_t some = 2048;  // of the total, which stay in the first cache
    for (size_t at = 0; at < d; at += some)
        for (size_t r = 0; r < m; r++)
            for (size_t i = at; i < std::min(d, at + some); i++) total[i] += v[r * d + i];
}

// ---- losses and pools ---------------------------------------------------------------------------------------------------
TARGET static void softmax_slopes(const float* z, const int64_t* y, size_t m, size_t n, float* out) {
    std::vector<double> e(n), room;
    for (size_t r = 0; r < m; r++, z += n, out += n) {
        bool there = y[r] >= 0 && (size_t)y[r] < n;
        double most = -HUGE_VAL;
        for (size_t i = 0; i < n; i++) {
            there &= std::fabs(z[i]) <= 3.402823466e38f;
            most = std::max(most, (double)z[i]);
        }
        if (!there) {
            std::fill(out, out + n, NAN);
            continue;
        }
        for (size_t i = 0; i < n; i++) e[i] = exponential((double)z[i] - most);
        const double sum = folded([&](size_t i) { return e[i]; }, n, room);
        for (size_t i = 0; i < n; i++) e[i] /= sum;
        e[(size_t)y[r]] -= 1.0;
        for (size_t i = 0; i < n; i++) out[i] = (float)e[i];
    }
}

TARGET static void max_pool(const float* x, size_t m, size_t places, size_t c, const int64_t* windows, size_t n, size_t size, float* out,
                            int32_t* chosen) {
    for (size_t r = 0; r < m; r++, x += places * c)
        for (size_t w = 0; w < n; w++, out += c, chosen += c) {
            std::fill(out, out + c, -HUGE_VALF);
            std::fill(chosen, chosen + c, -1);
            for (size_t t = 0; t < size; t++) {
                const int64_t place = windows[w * size + t];
                if (place < 0) continue;
                const float* own = x + (size_t)place * c;
                for (size_t j = 0; j < c; j++) {
                    const bool larger = (own[j] > out[j]) | ((own[j] != own[j]) & (out[j] == out[j])) | (chosen[j] < 0);
                    out[j] = larger ? own[j] : out[j];
                    chosen[j] = larger ? (int32_t)place : chosen[j];
                }
            }
        }
}

TARGET static void max_pool_slopes(const float* g, const int32_t* chosen, size_t m, size_t n, size_t places, size_t c, float* out) {
    std::fill(out, out + m * places * c, 0.0f);
    for (size_t r = 0; r < m; r++, out += places * c)
        for (size_t w = 0; w < n; w++, g += c, chosen += c)
            for (size_t j = 0; j < c; j++)
                if (chosen[j] >= 0) out[(size_t)chosen[j] * c + j] += g[j];
}
