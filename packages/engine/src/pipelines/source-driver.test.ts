// Tests how long a source runs in one task.
import { createRunId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { fakeClock } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { stepsInMemory } from '../attempt/steps.fixture.ts'
import { driveSource, type SourceAttempt } from './source-driver.ts'

const RANDOM = new Uint8Array(ID_RANDOM_BYTES)
const item = z.object({ n: z.int() })

/** Runs a source that yields an item every 100 ms until it is closed. Returns how long it has run, in ms. */
async function durationOf(apart: SourceAttempt['fetched']['apart']): Promise<number> {
  const clock = fakeClock()
  const attempt: SourceAttempt = {
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
  const access = {
    emit: async (_: string, { from, values }: { readonly from: number; readonly values: readonly string[] }) => ({
      ...{ emitted: from + values.length, free: 1_000, digest: '', cursor: '' },
    }),
    encode: JSON.stringify,
    decode: JSON.parse,
    untilCredits: async () => {},
    results: async () => [],
  }
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
  const place = { id: createRunId(0, RANDOM), position: 1 }
  const running = driveSource(attempt, { access, place }, item, source)
  while (!isClosed) await clock.advance(10)
  await running
  return clock.monotonic()
}

it('a source ends its task after a minute, even if it never fills a page', async () => {
  expect(await durationOf(undefined)).toBeGreaterThan(60_000)
})

it('a source that runs alone in its worker ends its task after a second', async () => {
  const took = await durationOf('alone')
  expect(took).toBeGreaterThan(1_000)
  expect(took).toBeLessThan(2_000)
})
