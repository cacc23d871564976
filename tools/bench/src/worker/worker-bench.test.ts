// Runs the benchmark of workers at small scale, with every case and on both sides.
import { expect, inject, it } from 'vitest'
import { benchWorker, WORKER_CASES, WORKER_FIGURES } from './worker-bench.ts'

it('measures every figure of both sides in every case', async () => {
  const found: string[] = []
  const small = { slots: 4, pairs: 1, seconds: 0.1 }
  for await (const comparison of benchWorker({ redisUrl: inject('redisUrl'), cases: WORKER_CASES, ...small })) {
    const { case: name, figure, ours, theirs } = comparison
    expect(ours, `${name}: ${figure} of ours`).toBeGreaterThan(0)
    expect(theirs, `${name}: ${figure} of theirs`).toBeGreaterThan(0)
    found.push(`${name} ${figure}`)
  }
  expect(found).toEqual(WORKER_CASES.flatMap((name) => WORKER_FIGURES.map((figure) => `${name} ${figure}`)))
})
