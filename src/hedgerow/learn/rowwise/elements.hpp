// Functions of one number, for one instruction set; included by vectors.hpp. The operations of functions.py, in the same order.

#define ELEMENT TARGET static inline __attribute__((always_inline)) double

static inline double power_of(int64_t n) {
    const int64_t bits = (int64_t)((uint64_t)(n + 1023) << 52);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// n and exp(r) - 1 of x = n ln 2 + r
ELEMENT reduced(double x, int64_t& n) {
    constexpr double magic = 6755399441055744.0;
    const double shifted = x * 1.4426950408889634 + magic, whole = shifted - magic;
    int64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    n = (int64_t)((uint64_t)bits - 0x4338000000000000u);
    const double r = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
    double series = 1.0 / 6227020800.0;
    series = series * r + 1.0 / 479001600.0;
    series = series * r + 1.0 / 39916800.0;
    series = series * r + 1.0 / 3628800.0;
    series = series * r + 1.0 / 362880.0;
    series = series * r + 1.0 / 40320.0;
    series = series * r + 1.0 / 5040.0;
    series = series * r + 1.0 / 720.0;
    series = series * r + 1.0 / 120.0;
    series = series * r + 1.0 / 24.0;
    series = series * r + 1.0 / 6.0;
    series = series * r + 0.5;
    return r + r * r * series;
}
ELEMENT exponential(double x) {
    int64_t n;
    const double less = reduced(x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x, n);
    const int64_t half = n >> 1;
    return (1.0 + less) * power_of(half) * power_of(n - half);
}
ELEMENT hyperbolic_tangent(double x) {
    int64_t n;
    const double twice = -2.0 * std::fabs(x), less = reduced(twice < -40.0 ? -40.0 : twice, n), power = power_of(n);
    const double e = power * less + (power - 1.0);
    return std::copysign(-e / (e + 2.0), x);
}
ELEMENT logistic(double x) { return 1.0 / (1.0 + exponential(-x)); }
ELEMENT softened(double x) {
    const double t = exponential(-std::fabs(x)), s = t / (2.0 + t), square = s * s;
    double series = 1.0 / 29.0;
    for (int i = 13; i > 0; i--) series = series * square + 1.0 / (2 * i + 1);
    return (x < 0.0 ? 0.0 : x) + 2.0 * (s + s * (series * square));
}

constexpr double ERFC[] = {
    6.754726028292488e-08,
    -1.0093173351363426e-06,
    9.029737773641347e-07,
    6.384695114774447e-06,
    -1.2175882349167236e-05,
    -1.5454009621729925e-05,
    7.296214244964127e-05,
    -1.8053123732736105e-05,
    -0.00033177544266799484,
    0.00041890905706891445,
    0.001545350659166439,
    -0.0032396340519457592,
    -0.010755335162433412,
    0.01822111871468521,
    0.13973604643244714,
    0.34358034214532923,
    0.5107913526200771,
};

ELEMENT normal(double x) {
    const double t = std::fabs(x) * 0.7071067811865476, u = 2.0 / (2.0 + t), s = 2.0 * u - 1.0;
    double series = ERFC[0];
    for (int i = 1; i < (int)(sizeof ERFC / sizeof *ERFC); i++) series = series * s + ERFC[i];
    const double tail = 0.5 * (exponential(-(t * t)) * series * u);
    return x < 0.0 ? tail : 1.0 - tail;
}
ELEMENT normal_slope(double x) { return normal(x) + x * (0.3989422804014327 * exponential(-0.5 * (x * x))); }
ELEMENT swish_slope(double x) {
    const double s = logistic(x);
    return s * (1.0 + x * (1.0 - s));
}
#undef ELEMENT

TARGET static void exp64(const double* x, size_t n, double* out) {
    for (size_t i = 0; i < n; i++) out[i] = exponential(x[i]);
}

// Numbered as in compiled.py: first functions of x, then gradients, of which x is the one behind, and h what the slope is taken from.
TARGET static void elementwise(int which, const float* x, const float* h, size_t n, float* out) {
#define EACH(expression)                                                               \
    for (size_t i = 0; i < n; i++) {                                                   \
        const double a = (double)x[i];                                                 \
        out[i] = (float)(expression);                                                  \
    }                                                                                  \
    break
#define EACH_OF_TWO(expression)                                                        \
    for (size_t i = 0; i < n; i++) {                                                   \
        const double a = (double)x[i], b = (double)h[i];                               \
        out[i] = (float)(a * (expression));                                            \
    }                                                                                  \
    break
    switch (which) {
        case 0: EACH(hyperbolic_tangent(a));
        case 1: EACH(logistic(a));
        case 2: EACH(softened(a));
        case 3: EACH(a * normal(a));
        case 4: EACH(a * logistic(a));
        case 5:
            for (size_t i = 0; i < n; i++) out[i] = h[i] > 0.0f ? x[i] : 0.0f;
            break;
        case 6: EACH_OF_TWO(1.0 - b * b);
        case 7: EACH_OF_TWO(b * (1.0 - b));
        case 8: EACH_OF_TWO(logistic(b));
        case 9: EACH_OF_TWO(normal_slope(b));
        default: EACH_OF_TWO(swish_slope(b));
    }
#undef EACH
#undef EACH_OF_TWO
}
