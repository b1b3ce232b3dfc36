/* The rows of the expression benchmark as a C programmer writes them by hand, for elements of type T.
   Compiled with -ffast-math, linked without it: a shared object linked with it sets flush-to-zero for
   the process. */
#include <immintrin.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

/* Everything a row needs; `mode`: on one thread, on all, and either with stores past the caches. */
enum { SERIAL = 0, PARALLEL = 1, STREAM = 2 };
typedef struct {
  int64_t rows, columns, mode;
  T *out;
  const void *in[3];
  T eta, lam;
} Work;

void repeat(void (*row)(const Work *), const Work *w, int64_t times) {
  for (int64_t k = 0; k < times; k++) row(w);
}

#define FAST static inline __attribute__((always_inline))
#define BUFFER 1024

/* `count` elements of `buffer` to `out`, past the caches. */
FAST void stream(T *out, const T *buffer, int64_t count) {
  const int64_t step = 16 / sizeof(T);
  int64_t i = 0;
  for (; i < count && ((uintptr_t)(out + i) & 15); i++) out[i] = buffer[i];
#ifdef __AVX512F__
  for (; i < count && ((uintptr_t)(out + i) & 63); i += step)
    if (i + step > count) break;
    else _mm_stream_si128((__m128i *)(out + i), _mm_loadu_si128((const __m128i *)(buffer + i)));
  for (; i + 4 * step <= count; i += 4 * step)
    _mm512_stream_si512((__m512i *)(out + i), _mm512_loadu_si512(buffer + i));
#endif
  for (; i + step <= count; i += step)
    _mm_stream_si128((__m128i *)(out + i), _mm_loadu_si128((const __m128i *)(buffer + i)));
  for (; i < count; i++) out[i] = buffer[i];
}

typedef void Some(int64_t row, int64_t from, int64_t count, T *out, const Work *w);

FAST void some_rows(Some some, int64_t low, int64_t high, int64_t from, int64_t to, const Work *w) {
  for (int64_t r = low; r < high; r++) {
    T *out = w->out + r * w->columns;
    if (!(w->mode & STREAM)) {
      some(r, from, to - from, out + from, w);
      continue;
    }
    T buffer[BUFFER] __attribute__((aligned(64)));
    int64_t lead = (64 - ((uintptr_t)(out + from) & 63)) % 64 / sizeof(T);
    for (int64_t c = from, count; c < to; c += count) {
      count = c == from && lead ? lead : BUFFER;
      if (count > to - c) count = to - c;
      some(r, c, count, buffer, w);
      stream(out + c, buffer, count);
    }
  }
}

/* This thread's part of `n`, on boundaries of `grain`. */
FAST void share(int64_t n, int64_t grain, int64_t *low, int64_t *high) {
  int64_t k = omp_get_thread_num(), threads = omp_get_num_threads(), lines = (n + grain - 1) / grain;
  *low = lines * k / threads * grain;
  *high = lines * (k + 1) / threads * grain;
  if (*high > n) *high = n;
}

typedef void Part(int64_t low, int64_t high, const Work *w);

/* `part` of 0 to n, on one thread or on all. */
FAST void split(Part part, int64_t n, int64_t grain, const Work *w) {
  if (!(w->mode & PARALLEL)) {
    part(0, n, w);
    return;
  }
#pragma omp parallel
  {
    int64_t low, high;
    share(n, grain, &low, &high);
    part(low, high, w);
  }
}

#define MAP(NAME, X, EXPRESSION)                                                                     \
  FAST void NAME##_some(int64_t row, int64_t from, int64_t count, T *out, const Work *w) {           \
    const X *x = (const X *)w->in[0] + row * w->columns + from;                                      \
    const T *y = (const T *)w->in[1] + row * w->columns + from;                                      \
    const T *z = (const T *)w->in[2] + row * w->columns + from;                                      \
    const T *r = (const T *)w->in[1] + from, c = w->in[1] ? ((const T *)w->in[1])[row] : 0;          \
    const T eta = w->eta, lam = w->lam, half = (T)0.5, one = 1;                                      \
    (void)x, (void)y, (void)z, (void)r, (void)c, (void)eta, (void)lam, (void)half, (void)one;        \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < count; i++) out[i] = EXPRESSION;                    \
  }                                                                                                  \
  FAST void NAME##_row(int64_t low, int64_t high, const Work *w) {                                   \
    some_rows(NAME##_some, 0, 1, low, high, w);                                                      \
  }                                                                                                  \
  FAST void NAME##_rows(int64_t low, int64_t high, const Work *w) {                                  \
    some_rows(NAME##_some, low, high, 0, w->columns, w);                                             \
  }                                                                                                  \
  void NAME(const Work *w) {                                                                         \
    if (w->rows == 1) split(NAME##_row, w->columns, 64, w);                                          \
    else split(NAME##_rows, w->rows, 1, w);                                                          \
  }

MAP(add, T, x[i] + y[i])
MAP(sgd, T, -eta * (x[i] + lam * y[i]))
MAP(mixed, T, x[i] * fmax(y[i], x[i]) + z[i] / (one + fabs(x[i])) - y[i])
MAP(smooth_l1, T, fabs(x[i]) < one ? half * x[i] * x[i] : fabs(x[i]) - half)
MAP(plus, T, y[i] + x[i])
MAP(row, T, x[i] + r[i])
MAP(column, T, x[i] * c)
MAP(cast, int32_t, (T)x[i])
MAP(bytes, uint8_t, (T)x[i] * (one / 255))
MAP(gelu, T, half * x[i] * (one + erf(x[i] * (T)0.70710678118654752)))
MAP(sigmoid, T, one / (one + exp(-x[i])))
MAP(tanh_, T, tanh(x[i]))
MAP(exp_, T, exp(x[i]))
MAP(softplus, T, fmax(x[i], (T)0) + log1p(exp(-fabs(x[i]))))
MAP(activations, T,
    half * x[i] * (one + erf(x[i] * (T)0.70710678118654752)) + one / (one + exp(-x[i])) + tanh(x[i]) + exp(x[i]))

/* Tiles of 32 x 32, their columns one after the other. */
#define TURNED(NAME, EXPRESSION)                                                                     \
  FAST void NAME##_tiles(int64_t low, int64_t high, const Work *w) {                                 \
    const int64_t rows = w->rows, columns = w->columns;                                              \
    const T *restrict x = w->in[0], *restrict y = w->in[1];                                          \
    T *restrict out = w->out;                                                                        \
    (void)y;                                                                                         \
    for (int64_t r = low; r < high; r += 32)                                                         \
      for (int64_t c = 0; c < columns; c += 32)                                                      \
        for (int64_t j = c; j < c + 32 && j < columns; j++)                                          \
          for (int64_t i = r; i < r + 32 && i < rows; i++) out[j * rows + i] = EXPRESSION;           \
  }                                                                                                  \
  void NAME(const Work *w) { split(NAME##_tiles, w->rows, 32, w); }

TURNED(transpose, x[i * columns + j])
TURNED(transposed, x[i * columns + j] + y[j * rows + i])

#define EACH_ROW(NAME, BODY)                                                                         \
  FAST void NAME##_rows(int64_t low, int64_t high, const Work *w) {                                  \
    const int64_t columns = w->columns;                                                              \
    for (int64_t r = low; r < high; r++) {                                                           \
      const T *from = (const T *)w->in[0] + r * columns;                                             \
      BODY                                                                                           \
    }                                                                                                \
  }                                                                                                  \
  void NAME(const Work *w) { split(NAME##_rows, w->rows, 1, w); }

static T sum_of(int64_t n, const T *x) {
  T sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

EACH_ROW(sum1, w->out[r] = sum_of(columns, from);)

FAST void sum0_columns(int64_t low, int64_t high, const Work *w) {
  const T *x = w->in[0];
  T *restrict out = w->out;
  for (int64_t block = low; block < high; block += 512) {
    int64_t end = block + 512 < high ? block + 512 : high;
    for (int64_t c = block; c < end; c++) out[c] = 0;
    for (int64_t r = 0; r < w->rows; r++)
      for (int64_t c = block; c < end; c++) out[c] += x[r * w->columns + c];
  }
}

void sum0(const Work *w) { split(sum0_columns, w->columns, 64, w); }

FAST void sum_all_part(int64_t low, int64_t high, const Work *w) {
  T part = sum_of(high - low, (const T *)w->in[0] + low);
#pragma omp atomic
  *w->out += part;
}

void sum_all(const Work *w) {
  *w->out = 0;
  split(sum_all_part, w->rows * w->columns, 64, w);
}

/* The largest value first, then where it stands: both loops vectorise. */
static T top_of(int64_t n, const T *x) {
  T top = x[0];
  for (int64_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

static int64_t where(int64_t n, const T *x, T top) {
  int64_t i = 0;
  for (int found = 0; i + 64 <= n; i += 64) {
    for (int k = 0; k < 64; k++) found |= x[i + k] == top;
    if (found) break;
  }
  while (i < n && x[i] != top) i++;
  return i;
}

FAST void argmax_part(int64_t low, int64_t high, const Work *w) {
  T part = top_of(high - low, (const T *)w->in[0] + low);
#pragma omp critical
  if (part > *w->out) *w->out = part;
}

void argmax(const Work *w) {
  const int64_t n = w->rows * w->columns;
  *w->out = *(const T *)w->in[0];
  split(argmax_part, n, 64, w);
  *w->out = where(n, w->in[0], *w->out);
}

EACH_ROW(argmax1, w->out[r] = where(columns, from, top_of(columns, from));)

EACH_ROW(softmax, T *restrict to = w->out + r * columns; T top = top_of(columns, from); T sum = 0;
         for (int64_t c = 0; c < columns; c++) sum += to[c] = exp(from[c] - top);
         T scale = 1 / sum; for (int64_t c = 0; c < columns; c++) to[c] *= scale;)

EACH_ROW(variance, T mean = sum_of(columns, from) / columns; T squares = 0;
         for (int64_t c = 0; c < columns; c++) squares += (from[c] - mean) * (from[c] - mean);
         w->out[r] = squares / columns;)
