/* The rows of the expression benchmark as a C programmer writes them by hand. Compiled with
   -ffast-math, linked without it: a shared object linked with it sets flush-to-zero for the process. */
#include <math.h>
#include <stdint.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define LOOP _Pragma("omp parallel for simd if(n > 20000) schedule(static)") for (int64_t i = 0; i < n; i++)
static const int64_t STREAM = 4000000; /* elements from which the result misses the last cache */

void sgd(int64_t n, float *out, const float *g, const float *w, float eta, float lam) {
  LOOP out[i] = -eta * (g[i] + lam * w[i]); /* in place: out is w */
}

void add(int64_t n, float *out, const float *x, const float *y) { LOOP out[i] = x[i] + y[i]; }

static void mixed_some(int64_t from, int64_t to, float *out, const float *b, const float *c, const float *d) {
  for (int64_t i = from; i < to; i++)
    out[i] = b[i] * fmaxf(c[i], b[i]) + d[i] / (1 + fabsf(b[i])) - c[i];
}

void mixed(int64_t n, float *out, const float *b, const float *c, const float *d) {
#ifdef __AVX512F__
  if (n > STREAM) {
    /* the memory of NumPy's large arrays is 16-byte aligned: find the next 64 */
    int64_t head = (64 - ((uintptr_t)out & 63)) / 4 % 16, whole = (n - head) / 16;
    __m512 one = _mm512_set1_ps(1.0f);
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < whole; k++) {
      int64_t i = head + 16 * k;
      __m512 vb = _mm512_loadu_ps(b + i), vc = _mm512_loadu_ps(c + i);
      __m512 ratio = _mm512_div_ps(_mm512_loadu_ps(d + i), _mm512_add_ps(one, _mm512_abs_ps(vb)));
      __m512 sum = _mm512_fmadd_ps(vb, _mm512_max_ps(vc, vb), _mm512_sub_ps(ratio, vc));
      _mm512_stream_ps(out + i, sum);
    }
    mixed_some(0, head, out, b, c, d);
    mixed_some(head + 16 * whole, n, out, b, c, d);
    return;
  }
#endif
  LOOP out[i] = b[i] * fmaxf(c[i], b[i]) + d[i] / (1 + fabsf(b[i])) - c[i];
}

void activations(int64_t n, float *out, const float *x) {
  LOOP {
    float v = x[i], gelu = 0.5f * v * (1 + erff(v * 0.70710678f));
    out[i] = gelu + 1 / (1 + expf(-v)) + tanhf(v) + expf(v);
  }
}

void tanh_(int64_t n, float *out, const float *x) { LOOP out[i] = tanhf(x[i]); }
void exp_(int64_t n, float *out, const float *x) { LOOP out[i] = expf(x[i]); }

void smooth_l1(int64_t n, float *out, const float *x) {
  LOOP {
    float v = x[i];
    out[i] = fabsf(v) < 1 ? 0.5f * v * v : fabsf(v) - 0.5f;
  }
}

void argmax(int64_t n, float *out, const float *x) {
  float top = x[0];
#pragma omp parallel for simd schedule(static) reduction(max : top)
  for (int64_t i = 0; i < n; i++) top = fmaxf(top, x[i]);
  int64_t at = 0; /* the largest value first, then where it stands: both loops vectorise */
  while (x[at] != top) at++;
  out[0] = at;
}

void transpose(int64_t rows, int64_t columns, float *out, const float *x) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; r += 32)
    for (int64_t c = 0; c < columns; c += 32)
      for (int64_t j = c; j < c + 32 && j < columns; j++)
        for (int64_t i = r; i < r + 32 && i < rows; i++) out[j * rows + i] = x[i * columns + j];
}

void sum1(int64_t rows, int64_t columns, float *out, const float *x) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; r++) {
    float sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += x[r * columns + c];
    out[r] = sum;
  }
}

void sum0(int64_t rows, int64_t columns, float *out, const float *x) {
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < columns; block += 512) {
    int64_t end = block + 512 < columns ? block + 512 : columns;
    for (int64_t c = block; c < end; c++) out[c] = 0;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = block; c < end; c++) out[c] += x[r * columns + c];
  }
}

void softmax(int64_t rows, int64_t columns, float *out, const float *x) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; r++) {
    const float *from = x + r * columns;
    float *to = out + r * columns, top = from[0], sum = 0;
    for (int64_t c = 1; c < columns; c++) top = fmaxf(top, from[c]);
    for (int64_t c = 0; c < columns; c++) sum += to[c] = expf(from[c] - top);
    for (int64_t c = 0; c < columns; c++) to[c] /= sum;
  }
}
