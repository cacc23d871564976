// Tests how long a source runs in one task, and what it does while Redis does not respond.
import { at, BullpenError, defineSource, TaskError } from '@bullpen/contract'
import { createRunId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { stepsInMemory } from '../attempt/steps.fixture.ts'
import { sha256 } from '../node/sha256.ts'
import type { Emission, RunRef, SourcePosition } from '../ports/broker/runs.ts'
import type { Clock } from '../ports/clock.ts'
import { driveSource, type SourceAttempt } from './source-driver.ts'

const RANDOM = new Uint8Array(ID_RANDOM_BYTES)
const item = z.object({ n: z.int() })
const definition = defineSource({ name: 'test.source', queue: 'q', input: z.object({}), item })

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

function attemptOn(clock: Clock, apart?: SourceAttempt['fetched']['apart'], maxAttempts = 1): SourceAttempt {
  return {
    fetched: {
      id: createTaskId('q', 0, RANDOM),
      task: 'test.source',
      envelope: {},
      enqueuedAt: 0,
      fencingToken: 1,
      attempt: 1,
      maxAttempts,
      readyAt: undefined,
      steps: stepsInMemory().steps,
      progress: async () => {},
      apart,
    },
    ...{ input: {}, name: 'test.source', fencingToken: 1, signal: new AbortController().signal },
    ...{ heartbeat() {}, checkpoint() {}, clock, sha256 },
    decoded: { definition, retry: definition.retry, totalTimeoutAt: 'none' },
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

interface DrivenOptions {
  readonly opened?: Partial<SourcePosition>
  readonly maxAttempts?: number
  readonly encode?: (value: unknown) => string
}

/** Runs a source from where `opened` says that it is. Returns what it emits, and how it ends. */
async function driven(
  source: Parameters<typeof driveSource>[3],
  { opened = {}, maxAttempts = 1, encode = JSON.stringify }: DrivenOptions = {},
) {
  const emitted: Pick<Emission, 'values' | 'count' | 'digest' | 'cursor'>[] = []
  const resumed = {
    ...access,
    encode,
    async emit(_: unknown, { from, values, count, digest, cursor }: Emission) {
      if (values.length > 0) emitted.push({ values, count, digest, cursor })
      const begun = { batch: 0, free: 1_000, digest: '', cursor: '', emitted: 0, ...opened }
      return { ...begun, emitted: Math.max(begun.emitted, from + count) }
    },
  }
  const attempt = attemptOn(fakeClock(), undefined, maxAttempts)
  const end = await driveSource(attempt, { access: resumed, place }, item, source).then(
    () => 'done',
    ({ code, message }) => `${code}: ${message}`,
  )
  return { emitted, end, values: emitted.flatMap(({ values }) => values) }
}

it.each([
  [undefined, 'undefined'],
  ['abc', 'the string "abc"'],
  [Promise.resolve([]), 'a promise'],
])('a source that returns no iterable is dead at once (%#)', async (returned, shown) => {
  const { end } = await driven((() => returned) as never, { maxAttempts: 5 })
  expect(end).toMatch(`invalid_handler: test.source returned ${shown}; expected an iterable`)
})

describe('a source with cursors that is run again', () => {
  const from = (first: number) => Array.from({ length: 6 - first }, (_, i) => at(first + i, { n: first + i }))
  /** What is stored after the items 0 to 3. */
  const stored = async () => {
    const { emitted } = await driven(() => from(0).slice(0, 4))
    const { digest = '', cursor = '' } = emitted.at(-1) ?? {}
    return { emitted: 4, digest, cursor }
  }

  it('resumes after its cursor', async () => {
    const opened = await stored()
    const { end, values } = await driven((_, __, cursor) => from(Number(cursor) + 1), { opened })
    expect({ end, values }).toEqual({ end: 'done', values: ['{"n":4}', '{"n":5}'] })
  })

  it.each([
    ['ignores its cursor', 0, 0],
    ['does not skip the item at its cursor', 3, 0],
    ['begins in the middle of what it has yielded', 2, 1],
  ])('fails if it %s', async (_, first, processed) => {
    const { end, values } = await driven(() => from(first), { opened: await stored() })
    expect(end).toMatch(
      /^source_changed: test\.source was run again with the cursor 3 and has yielded the item .* again/,
    )
    expect(values).toHaveLength(processed)
  })

  it('fails although a codec encodes the same cursor differently each time', async () => {
    let times = 0
    const encode = (cursor: unknown) => `${JSON.stringify(cursor)}${' '.repeat(times++ % 7)}`
    const { end } = await driven(() => from(3), { opened: await stored(), encode })
    expect(end).toMatch(/^source_changed: /)
  })
})

describe('a batch that is not full when the source fails', () => {
  const failing = (error: TaskError) =>
    function* () {
      for (const n of [0, 1, 2]) yield { n }
      throw error
    }

  it('is emitted if the source is dead', async () => {
    const opened = { batch: 2 }
    const permanent = await driven(failing(new TaskError('no', '', { retryable: false })), { opened, maxAttempts: 5 })
    expect(permanent).toMatchObject({ end: 'no: ', values: ['[{"n":0},{"n":1}]', '[{"n":2}]'] })
    expect(permanent.emitted.at(-1)?.count).toBe(3)
    expect((await driven(failing(new TaskError('busy', '')), { opened })).values).toHaveLength(2)
  })

  it('is not emitted if the source is run again, which may yield the rest of it', async () => {
    const { values } = await driven(failing(new TaskError('busy', '')), { opened: { batch: 2 }, maxAttempts: 2 })
    expect(values).toEqual(['[{"n":0},{"n":1}]'])
  })
})
