// One header for each instruction set: what chain.hpp and outer.hpp say, in its registers.
//
//     vec       LANES floats;  load, everywhere, chain (a b + s, rounded once), rectified (numbers below zero to zero, a NaN
//               stays), store (the first n lanes)
//     ivec      WHOLES 32-bit numbers;  dot adds products of pairs of 16-bit numbers, modulo 2^32;  spill adds to 64 bits
//     ACROSS    vectors beside each other in a block, tall(c) the rows of a block of c vectors: as many as registers allow
//
// The NEON part was compiled and compared with the plain one under an emulator, bit by bit; it has not been timed. Tests compare
// every path with the plain one on the machine where they run.

#if defined(__x86_64__)
namespace avx512 {
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma")))
constexpr int LANES = 16, ACROSS = 4, WHOLES = 16;
constexpr int tall(int c) { return c == 4 ? 6 : c == 3 ? 8 : c == 2 ? 12 : 14; }
typedef __m512 vec;
typedef __m512i ivec;
TARGET static inline vec load(const float* from) { return _mm512_loadu_ps(from); }
TARGET static inline vec everywhere(const float* from) { return _mm512_set1_ps(*from); }
TARGET static inline vec chain(vec a, vec b, vec s) { return _mm512_fmadd_ps(a, b, s); }
TARGET static inline vec rectified(vec v) { return _mm512_maskz_max_ps((__mmask16)0xffff, _mm512_setzero_ps(), v); }
TARGET static inline void store(float* to, vec v, size_t n) {
    _mm512_mask_storeu_ps(to, (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1u), v);
}
TARGET static inline ivec none() { return _mm512_setzero_si512(); }
TARGET static inline ivec pairs(const int32_t* from) { return _mm512_loadu_si512(from); }
TARGET static inline ivec pair(int32_t value) { return _mm512_set1_epi32(value); }
TARGET static inline ivec dot(ivec sum, ivec a, ivec b) { return _mm512_dpwssd_epi32(sum, a, b); }
TARGET static inline void spill(int64_t* to, ivec v, size_t n) {
    const __m256i halves[2] = {_mm512_maskz_extracti64x4_epi64((__mmask8)0xf, v, 0), _mm512_maskz_extracti64x4_epi64((__mmask8)0xf, v, 1)};
    for (size_t half = 0; half < 2 && n > half * 8; half++, to += 8) {
        const size_t left = n - half * 8;
        const __mmask8 mask = (__mmask8)(left >= 8 ? 0xffu : (1u << left) - 1u);
        const __m512i wide = _mm512_maskz_cvtepi32_epi64(mask, halves[half]);
        _mm512_mask_storeu_epi64(to, mask, _mm512_add_epi64(_mm512_maskz_loadu_epi64(mask, to), wide));
    }
}
#include "chain.hpp"
#include "outer.hpp"
#include "elements.hpp"
#include "plain.hpp"
#undef TARGET
}  // namespace avx512

namespace avx2 {
#define TARGET __attribute__((target("avx2,fma")))
constexpr int LANES = 8, ACROSS = 2, WHOLES = 8;
constexpr int tall(int c) { return c == 2 ? 6 : 10; }
typedef __m256 vec;
typedef __m256i ivec;
TARGET static inline vec load(const float* from) { return _mm256_loadu_ps(from); }
TARGET static inline vec everywhere(const float* from) { return _mm256_broadcast_ss(from); }
TARGET static inline vec chain(vec a, vec b, vec s) { return _mm256_fmadd_ps(a, b, s); }
TARGET static inline vec rectified(vec v) { return _mm256_max_ps(_mm256_setzero_ps(), v); }
TARGET static inline void store(float* to, vec v, size_t n) {
    if (n >= 8) return _mm256_storeu_ps(to, v);
    float held[8];
    _mm256_storeu_ps(held, v);
    std::memcpy(to, held, n * sizeof(float));
}
TARGET static inline ivec none() { return _mm256_setzero_si256(); }
TARGET static inline ivec pairs(const int32_t* from) { return _mm256_loadu_si256((const __m256i*)from); }
TARGET static inline ivec pair(int32_t value) { return _mm256_set1_epi32(value); }
TARGET static inline ivec dot(ivec sum, ivec a, ivec b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
TARGET static inline void spill(int64_t* to, ivec v, size_t n) {
    int32_t held[8];
    _mm256_storeu_si256((__m256i*)held, v);
    for (size_t i = 0; i < std::min<size_t>(n, 8); i++) to[i] += held[i];
}
#include "chain.hpp"
#include "outer.hpp"
#include "elements.hpp"
#include "plain.hpp"
#undef TARGET
}  // namespace avx2
#endif

#if defined(__aarch64__)
namespace neon {
#define TARGET
constexpr int LANES = 4, ACROSS = 4, WHOLES = 4;
constexpr int tall(int c) { return c == 4 ? 6 : c == 3 ? 8 : c == 2 ? 12 : 14; }
typedef float32x4_t vec;
typedef int32x4_t ivec;
static inline vec load(const float* from) { return vld1q_f32(from); }
static inline vec everywhere(const float* from) { return vld1q_dup_f32(from); }
static inline vec chain(vec a, vec b, vec s) { return vfmaq_f32(s, a, b); }
static inline vec rectified(vec v) { return vbslq_f32(vcltq_f32(v, vdupq_n_f32(0.0f)), vdupq_n_f32(0.0f), v); }
static inline void store(float* to, vec v, size_t n) {
    if (n >= 4) return vst1q_f32(to, v);
    float held[4];
    vst1q_f32(held, v);
    std::memcpy(to, held, n * sizeof(float));
}
static inline ivec none() { return vdupq_n_s32(0); }
static inline ivec pairs(const int32_t* from) { return vld1q_s32(from); }
static inline ivec pair(int32_t value) { return vdupq_n_s32(value); }
static inline ivec dot(ivec sum, ivec a, ivec b) {
    const int16x8_t p = vreinterpretq_s16_s32(a), q = vreinterpretq_s16_s32(b);
    return vaddq_s32(sum, vpaddq_s32(vmull_s16(vget_low_s16(p), vget_low_s16(q)), vmull_high_s16(p, q)));
}
static inline void spill(int64_t* to, ivec v, size_t n) {
    int32_t held[4];
    vst1q_s32(held, v);
    for (size_t i = 0; i < std::min<size_t>(n, 4); i++) to[i] += held[i];
}
#include "chain.hpp"
#include "outer.hpp"
#include "elements.hpp"
#include "plain.hpp"
#undef TARGET
}  // namespace neon
#endif

namespace scalar {  // what the others are compared with; std::fma is exact also where the machine has no such instruction
#define TARGET
constexpr int LANES = 1, ACROSS = 1, WHOLES = 1;
constexpr int tall(int) { return 4; }
typedef float vec;
typedef int32_t ivec;
static inline vec load(const float* from) { return *from; }
static inline vec everywhere(const float* from) { return *from; }
static inline vec chain(vec a, vec b, vec s) { return std::fma(a, b, s); }
static inline vec rectified(vec v) { return 0.0f > v ? 0.0f : v; }
static inline void store(float* to, vec v, size_t) { *to = v; }
static inline ivec none() { return 0; }
static inline ivec pairs(const int32_t* from) { return *from; }
static inline ivec pair(int32_t value) { return value; }
static inline ivec dot(ivec sum, ivec a, ivec b) {
    const int32_t low = (int16_t)(uint16_t)a * (int16_t)(uint16_t)b, high = (int16_t)(a >> 16) * (int16_t)(b >> 16);
    return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
}
static inline void spill(int64_t* to, ivec v, size_t) { *to += v; }
#include "chain.hpp"
#include "outer.hpp"
#include "elements.hpp"
#include "plain.hpp"
#undef TARGET
}  // namespace scalar
