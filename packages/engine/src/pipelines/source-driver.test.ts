// Tests how long a source runs in one task, and what it does while Redis does not respond.
import { at, BullpenError } from '@bullpen/contract'
import { createRunId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { fakeClock } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { stepsInMemory } from '../attempt/steps.fixture.ts'
import type { Emission, RunRef } from '../ports/broker/runs.ts'
import type { Clock } from '../ports/clock.ts'
import { driveSource, type SourceAttempt } from './source-driver.ts'

const RANDOM = new Uint8Array(ID_RANDOM_BYTES)
const item = z.object({ n: z.int() })

const place = { id: createRunId(0, RANDOM), position: 1 }
const access = {
  emit: async (_: RunRef, { from, values }: Pick<Emission, 'from' | 'values'>) => ({
    ...{ emitted: from + values.length, batch: 0, free: 1_000, digest: '', cursor: '' },
  }),
  encode: JSON.stringify,
  decode: JSON.parse,
  untilCredits: async () => {},
  results: async () => [],
}

function attemptOn(clock: Clock, apart?: SourceAttempt['fetched']['apart']): SourceAttempt {
  return {
    fetched: {
      id: createTaskId('q', 0, RANDOM),
      task: 'test.source',
      envelope: {},
      enqueuedAt: 0,
      fencingToken: 1,
      attempt: 1,
      maxAttempts: 1,
      readyAt: undefined,
      steps: stepsInMemory().steps,
      progress: async () => {},
      apart,
    },
    ...{ input: {}, name: 'test.source', fencingToken: 1, signal: new AbortController().signal },
    ...{ heartbeat() {}, checkpoint() {}, clock, sha256: () => new Uint8Array(32) },
  }
}

/** Runs a source that yields an item every 100 ms until it is closed. Returns how long it has run, in ms. */
async function durationOf(apart: SourceAttempt['fetched']['apart']): Promise<number> {
  const clock = fakeClock()
  let isClosed = false
  async function* source() {
    try {
      for (let n = 0; ; n++) {
        await new Promise<void>((resolve) => void clock.after(100, resolve))
        yield { n }
      }
    } finally {
      isClosed = true
    }
  }
  const running = driveSource(attemptOn(clock, apart), { access, place }, item, source)
  while (!isClosed) await clock.advance(10)
  await running
  return clock.monotonic()
}

it('a source emits its items although Redis sometimes does not respond', async () => {
  const clock = fakeClock()
  const emitted: string[] = []
  let calls = 0
  const unreliable = {
    ...access,
    emit: async (run: RunRef, emission: Emission) => {
      if (++calls % 3 > 0) throw new BullpenError('redis_unavailable', 'Redis did not respond')
      emitted.push(...emission.values)
      return access.emit(run, emission)
    },
  }
  let hasEnded = false
  const running = driveSource(attemptOn(clock), { access: unreliable, place }, item, () => [{ n: 1 }, { n: 2 }])
  void running.finally(() => {
    hasEnded = true
  })
  while (!hasEnded) await clock.advance(10)
  expect(emitted).toEqual(['{"n":1}', '{"n":2}'])
})

it('a source emits only full batches until its last one, each with the cursor after its last item', async () => {
  const clock = fakeClock()
  const emitted: Partial<Emission>[] = []
  const batching = {
    ...access,
    async emit(_: RunRef, { from, values, count, cursor, isLast }: Emission) {
      if (values.length > 0) emitted.push({ from, values, count, cursor, isLast })
      return { emitted: from + count, batch: 2, free: 1_000, digest: '', cursor: '' }
    },
  }
  // The first page is due while the second batch is not full.
  async function* source() {
    for (const n of [0, 1, 2, 3, 4]) {
      if (n === 3) await new Promise<void>((resolve) => void clock.after(100, resolve))
      yield at(n + 1, { n })
    }
  }
  let hasEnded = false
  const running = driveSource(attemptOn(clock), { access: batching, place }, item, source)
  void running.finally(() => {
    hasEnded = true
  })
  while (!hasEnded) await clock.advance(10)
  expect(emitted).toEqual([
    { from: 0, values: ['[{"n":0},{"n":1}]'], count: 2, cursor: '2', isLast: false },
    { from: 2, values: ['[{"n":2},{"n":3}]', '[{"n":4}]'], count: 3, cursor: '5', isLast: true },
  ])
})

it('a source ends its task after a minute, even if it never fills a page', async () => {
  expect(await durationOf(undefined)).toBeGreaterThan(60_000)
})

it('a source that runs alone in its worker ends its task after a second', async () => {
  const took = await durationOf('alone')
  expect(took).toBeGreaterThan(1_000)
  expect(took).toBeLessThan(2_000)
})
