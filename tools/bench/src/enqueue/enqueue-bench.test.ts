// Runs the benchmark of enqueues at small scale, with every case and on both sides.
import { expect, inject, it } from 'vitest'
import { benchEnqueue, ENQUEUE_CASES, type EnqueueComparison } from './enqueue-bench.ts'

it.each(ENQUEUE_CASES)('case %s measures every figure of both sides', async (name) => {
  const found = new Map<string, EnqueueComparison>()
  // On a busy machine, many of so few requests may be refused.
  const small = { pairs: 1, seconds: 0.3, warmUpSeconds: 0.2, connections: 4, mostRefused: 0.99 }
  for await (const comparison of benchEnqueue({ redisUrl: inject('redisUrl'), cases: [name], ...small })) {
    expect(comparison).toMatchObject({ bench: 'enqueue', case: name })
    found.set(comparison.figure, comparison)
  }
  const usesRedis = name !== 'limit'
  const figures = usesRedis ? ['rate', 'processCpu', 'redisCpu', 'p99Ms', 'scripts'] : ['rate', 'processCpu', 'p99Ms']
  expect([...found.keys()]).toEqual(figures)
  for (const { figure, ours, theirs } of found.values()) {
    // Other tests use the same Redis, which can only raise its figures. Redis may have run the scripts of tasks that are counted
    // before the measurement began: those of one request per connection, which is a large share if each request has 1,000 tasks. One
    // of our scripts adds up to 16 tasks.
    const least = figure === 'scripts' && name !== 'bulk' ? 1 / 32 : 0
    expect(ours, `${figure} of ours`).toBeGreaterThan(least)
    expect(theirs, `${figure} of theirs`).toBeGreaterThan(least)
  }
})
