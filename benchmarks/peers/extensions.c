/* The rows of the extension benchmark as a C programmer writes them by hand. Compiled with
   -ffast-math, linked without it: a shared object linked with it sets flush-to-zero for the process. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALL _Pragma("omp parallel for schedule(static)")
typedef int64_t I;

static void pool(float *restrict out, const float *restrict x, I planes, I h, I w, I ph, I pw, int size) {
  ALL for (I p = 0; p < planes; p++)
    for (I y = 0; y < ph; y++)
      for (I z = 0; z < pw; z++) {
        const float *at = x + (p * h + 2 * y) * w + 2 * z;
        float best = at[0];
        for (int j = 0; j < size; j++)
          for (int k = 0; k < size; k++) best = fmaxf(best, at[j * w + k]);
        out[(p * ph + y) * pw + z] = best;
      }
}
void pool2(float *out, const float *x) { pool(out, x, 32 * 64, 56, 56, 28, 28, 2); }
void pool3(float *out, const float *x) { pool(out, x, 32 * 64, 56, 56, 27, 27, 3); }

void unpool(float *restrict out, const float *restrict x, const float *restrict pooled, const float *restrict grad) {
  ALL for (I p = 0; p < 32 * 64; p++)
    for (I y = 0; y < 28; y++)
      for (I z = 0; z < 28; z++) {
        I from = (p * 28 + y) * 28 + z, to = (p * 56 + 2 * y) * 56 + 2 * z;
        float m = pooled[from], g = grad[from];
        out[to] = x[to] == m ? g : 0;
        out[to + 1] = x[to + 1] == m ? g : 0;
        out[to + 56] = x[to + 56] == m ? g : 0;
        out[to + 57] = x[to + 57] == m ? g : 0;
      }
}

void patch2col(float *restrict out, const float *restrict x) {
  const I n = 8, h = 56, w = 56;
  ALL for (I row = 0; row < 16 * 9; row++) {
    I c = row / 9, j = row / 3 % 3 - 1, k = row % 3 - 1;
    for (I i = 0; i < n; i++)
      for (I y = 0; y < h; y++) {
        float *to = out + ((row * n + i) * h + y) * w;
        if (y + j < 0 || y + j >= h) {
          memset(to, 0, 4 * w);
          continue;
        }
        const float *from = x + ((i * 16 + c) * h + y + j) * w;
        if (k < 0) to[0] = 0;
        if (k > 0) to[w - 1] = 0;
        memcpy(to + (k < 0), from + (k > 0), 4 * (w - (k != 0)));
      }
  }
}

void col2patch(float *restrict out, const float *restrict x) {
  const I n = 8, h = 56, w = 56;
  ALL for (I plane = 0; plane < 8 * 16; plane++) {
    I i = plane / 16, c = plane % 16;
    float *to = out + plane * h * w;
    memset(to, 0, 4 * h * w);
    for (I j = -1; j < 2; j++)
      for (I k = -1; k < 2; k++) {
        const float *from = x + (((c * 3 + j + 1) * 3 + k + 1) * n + i) * h * w;
        for (I y = j < 0 ? 1 : 0; y < (j > 0 ? h - 1 : h); y++)
          for (I z = k < 0 ? 1 : 0; z < (k > 0 ? w - 1 : w); z++) to[(y + j) * w + z + k] += from[y * w + z];
      }
  }
}

void take(float *out, const float *x, const I *index) {
  for (I i = 0; i < 700; i++) memcpy(out + 200 * i, x + 200 * index[i], 800);
}

void take_grad(float *restrict out, const float *restrict x, const I *index) {
  ALL for (I part = 0; part < 16; part++) memset(out + part * 125000, 0, 500000);
  for (I i = 0; i < 700; i++)
    for (I j = 0; j < 200; j++) out[200 * index[i] + j] += x[200 * i + j];
}

void one_hot(float *out, const I *index) {
  ALL for (I i = 0; i < 10000; i++) {
    memset(out + 1000 * i, 0, 4000);
    out[1000 * i + index[i]] = 1;
  }
}

void transpose(float *restrict out, const float *restrict x) {
  const I n = 3162, b = 32;
  ALL for (I y = 0; y < n; y += b)
    for (I z = 0; z < n; z += b)
      for (I j = y; j < (y + b < n ? y + b : n); j++)
        for (I k = z; k < (z + b < n ? z + b : n); k++) out[j * n + k] = x[k * n + j];
}

void concat0(float *out, const float *x, const float *y) {
  ALL for (I part = 0; part < 16; part++) {
    const float *from = part < 8 ? x + part * 125000 : y + (part - 8) * 125000;
    memcpy(out + part * 125000, from, 500000);
  }
}

void concat1(float *out, const float *x, const float *y) {
  ALL for (I i = 0; i < 1000; i++) {
    memcpy(out + 2000 * i, x + 1000 * i, 4000);
    memcpy(out + 2000 * i + 1000, y + 1000 * i, 4000);
  }
}

void pad(float *out, const float *x) {
  ALL for (I row = 0; row < 16 * 504; row++) {
    I image = row / 504, y = row % 504 - 2;
    float *to = out + row * 504;
    if (y < 0 || y >= 500) {
      memset(to, 0, 4 * 504);
      continue;
    }
    to[0] = to[1] = to[502] = to[503] = 0;
    memcpy(to + 2, x + (image * 500 + y) * 500, 2000);
  }
}

void softmax(float *restrict out, const float *restrict x) {
  ALL for (I i = 0; i < 10000; i++) {
    const float *from = x + 1000 * i;
    float *to = out + 1000 * i, top = from[0], total = 0;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < 1000; j++) top = fmaxf(top, from[j]);
#pragma omp simd reduction(+ : total)
    for (int j = 0; j < 1000; j++) total += to[j] = expf(from[j] - top);
    total = 1 / total;
    for (int j = 0; j < 1000; j++) to[j] *= total;
  }
}

/* stable: least significant digit first, pairs of key and value, 11 bits a pass */
void sort(float *out, const float *keys, const float *values) {
  enum { N = 1000000, B = 11, R = 1 << B };
  uint64_t *a = malloc(8 * N), *b = malloc(8 * N);
  static uint32_t count[3][R];
  memset(count, 0, sizeof count);
  for (I i = 0; i < N; i++) {
    uint32_t key, value;
    memcpy(&key, keys + i, 4);
    memcpy(&value, values + i, 4);
    key ^= (uint32_t)((int32_t)key >> 31) | 0x80000000u;
    a[i] = (uint64_t)value << 32 | key;
    count[0][key % R]++, count[1][key >> B & (R - 1)]++, count[2][key >> (2 * B)]++;
  }
  for (int pass = 0; pass < 3; pass++) {
    uint32_t sum = 0;
    for (int k = 0; k < R; k++) {
      uint32_t n = count[pass][k];
      count[pass][k] = sum;
      sum += n;
    }
    for (I i = 0; i < N; i++) b[count[pass][(uint32_t)a[i] >> (pass * B) & (R - 1)]++] = a[i];
    uint64_t *other = a;
    a = b, b = other;
  }
  for (I i = 0; i < N; i++) {
    uint32_t value = a[i] >> 32;
    memcpy(out + i, &value, 4);
  }
  free(a), free(b);
}

/* counter-based: Philox2x32-10 of (position, key) */
static inline uint64_t words(uint64_t counter, uint32_t key) {
  uint32_t l = counter, r = counter >> 32;
  for (int round = 0; round < 10; round++) {
    uint64_t p = (uint64_t)l * 0xD256D193u;
    l = (uint32_t)(p >> 32) ^ key ^ r, r = p, key += 0x9E3779B9u;
  }
  return (uint64_t)l << 32 | r;
}

enum { DRAWN = 1000000 };
static uint64_t position;

void uniform(float *out) {
  uint64_t at = position;
  position += DRAWN / 2;
  _Pragma("omp parallel for simd schedule(static)") for (I i = 0; i < DRAWN / 2; i++) {
    uint64_t two = words(at + i, 3);
    out[2 * i] = (two >> 40) * 0x1p-24f;
    out[2 * i + 1] = ((uint32_t)two >> 8) * 0x1p-24f;
  }
}

void gaussian(float *out) { /* Box and Muller: both of a pair */
  uint64_t at = position;
  position += DRAWN / 2;
  _Pragma("omp parallel for simd schedule(static)") for (I i = 0; i < DRAWN / 2; i++) {
    uint64_t two = words(at + i, 3);
    float radius = sqrtf(-2 * logf(((int32_t)(two >> 33) + 0.5f) * 0x1p-31f));
    float angle = (int32_t)two * (float)(M_PI * 0x1p-31);
    out[i] = radius * cosf(angle);
    out[DRAWN / 2 + i] = radius * sinf(angle);
  }
}
