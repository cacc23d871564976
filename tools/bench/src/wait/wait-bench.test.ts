// Runs the benchmark of waits at small scale, with every case and on both sides.
import { expect, inject, it } from 'vitest'
import { benchWait, WAIT_CASES, WAIT_FIGURES } from './wait-bench.ts'

it.each(WAIT_CASES)('case %s measures every figure of both sides', async (name) => {
  const found: string[] = []
  const small = { callers: 4, pairs: 1, seconds: 0.5, warmUpSeconds: 0.5 }
  for await (const comparison of benchWait({ redisUrl: inject('redisUrl'), cases: [name], ...small })) {
    const { figure, ours, theirs } = comparison
    expect(comparison).toMatchObject({ bench: 'wait', case: name })
    expect(ours, `${figure} of ours`).toBeGreaterThan(0)
    expect(theirs, `${figure} of theirs`).toBeGreaterThan(0)
    found.push(figure)
  }
  expect(found).toEqual(WAIT_FIGURES)
})
