/* Measures the most float32 multiply-adds of a device: independent chains in registers, no memory.
 *
 *   args     0 rounds uint, 1 a float, 2 b float, 3 out float [items], so that no work is optimised
 *            away
 *   grid     items
 *   CPU      CHAINS times for each lane: x = x * a + b, `rounds` times; out = sum of all. Each lane
 *            begins with a value of its own, because a compiler for a GPU computes equal lanes once
 *            and lanes that nothing reads not at all
 *   flops    2 * WIDTH * CHAINS * rounds * items
 *   defines  WIDTH 4, 8 or 16: floats of a chain; CHAINS 6 or 12 */
#ifndef WIDTH
#define WIDTH 16
#endif
#ifndef CHAINS
#define CHAINS 12
#endif

#if WIDTH == 16
typedef float16 chain;
#define LANES (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define SUM(v) SUM4((v).lo.lo + (v).lo.hi + (v).hi.lo + (v).hi.hi)
#elif WIDTH == 8
typedef float8 chain;
#define LANES (float8)(0, 1, 2, 3, 4, 5, 6, 7)
#define SUM(v) SUM4((v).lo + (v).hi)
#else
typedef float4 chain;
#define LANES (float4)(0, 1, 2, 3)
#define SUM(v) SUM4(v)
#endif
#define SUM4(v) ((v).s0 + (v).s1 + (v).s2 + (v).s3)

#if CHAINS == 12
#define FOR_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#else
#define FOR_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#endif
#define BEGIN(i) chain x##i = (LANES + (float)(get_global_id(0) % 64 + 16 * i)) * 0.001f;
#define STEP(i) x##i = fma(x##i, av, bv);
#define ADD(i) sum += SUM(x##i);

kernel void peak(uint rounds, float a, float b, global float *out) {
    const chain av = (chain)a;
    const chain bv = (chain)b;
    float sum = 0;
    FOR_CHAINS(BEGIN)
    for (uint i = 0; i < rounds; i++) {
        FOR_CHAINS(STEP)
    }
    FOR_CHAINS(ADD)
    out[get_global_id(0)] = sum;
}
