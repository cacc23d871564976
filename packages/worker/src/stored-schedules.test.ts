// Tests that a worker stores the schedules of its catalogue when it starts, and runs them, without an API or a sync.
import { randomUUID } from 'node:crypto'
import { BullpenError, defineCatalogue, defineHandler, defineSchedule, defineTask } from '@bullpen/contract'
import { openDeclareLoop } from '@bullpen/engine/internal'
import { fakeClock } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createWorker } from './index.ts'

const beat = defineTask({ name: 'stored.beat', queue: 'stored', input: z.object({}), output: z.object({}) })
const tick = defineSchedule({ name: 'tick', task: beat, input: {}, every: '1s' })

test('a worker that starts alone stores the schedules of its catalogue and runs them', async () => {
  const ran = Promise.withResolvers<string | undefined>()
  const worker = createWorker({
    catalogue: defineCatalogue(beat, tick),
    handlers: {
      'stored.beat': defineHandler(beat, import.meta.url, ({ meta }) => {
        ran.resolve(meta['bullpen.schedule'])
        return {}
      }),
    },
    config: { redisUrl: inject('redisUrl'), namespace: `t-${randomUUID().slice(0, 8)}`, port: 0, logLevel: 'silent' },
  })
  onTestFinished(() => worker.drain().then(() => {}))
  await worker.start()
  expect(await ran.promise).toBe('tick')
})

test('while Redis is unreachable, storing the schedules is retried every second without a log line, and other errors are logged', async () => {
  const clock = fakeClock(0)
  const lines: string[] = []
  const note = (_: unknown, message: string) => void lines.push(message)
  const answers: (() => unknown)[] = [
    () => Promise.reject(new BullpenError('redis_unavailable', 'away')),
    () => Promise.reject(new BullpenError('redis_unavailable', 'away')),
    () => Promise.reject(new Error('broken')),
    () => Promise.resolve([{ name: 'tick', queue: 'stored', action: 'created' }]),
    () => Promise.resolve([]),
  ]
  let calls = 0
  const schedules = { declare: async () => answers[Math.min(calls++, 4)]?.() as never }
  const log = { debug: note, info: note, warn: note, error: note } as never
  const stop = openDeclareLoop({ schedules, definitions: [tick], clock, log })
  for (const [ms, expected] of [
    [1_000, 2],
    [1_000, 3],
    [60_000, 4],
    [60_000, 5],
  ] as const) {
    await clock.advance(ms)
    expect(calls).toBe(expected)
  }
  expect(lines).toEqual([
    'schedules of the catalogue could not be stored: retrying',
    'schedule of the catalogue stored',
  ])
  stop()
  await clock.advance(600_000)
  expect(calls).toBe(5)
})
