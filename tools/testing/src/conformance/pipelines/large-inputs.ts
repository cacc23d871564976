// Tests on every broker how outputs of more than 64 KiB reach the next stage, and that a run leaves nothing behind.
import { TaskError } from '@bullpen/contract'
import type { PayloadCodec } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, type Handle } from '../setup.ts'
import { any, openRuns } from './runs-setup.ts'

/** Two bytes for each of its 40,000 characters. */
const TEXT = 'ü'.repeat(40_000)
const LARGE = { maxOutputBytes: 100_000 }
const codec: PayloadCodec = { encode: (json) => `"${json}`, decode: (stored) => stored.slice(1) }

interface Item {
  readonly n: number
  readonly text?: string
}

/** Adds the text to an item, and returns an item that has the text as it is. */
const enlarge = (input: unknown): Item => {
  const { n, text } = input as Item
  expect(text === undefined || text === TEXT).toBe(true)
  return { n, text: TEXT }
}

/** Waits until nothing of the run is stored but its record, and this many tasks. */
async function expectKept(kept: () => Promise<{ ofRun: readonly string[]; tasks: number } | undefined>, tasks: number) {
  const isLeft = await eventually(async () => {
    const now = await kept()
    return now === undefined || (now.ofRun.join() === 'definition,meta' && now.tasks === tasks)
  })
  expect(isLeft).toBe(true)
}

export function largeInputs(open: OpenBackend): void {
  it.each([
    ['', {}],
    [' through a codec', { codec }],
  ] as const)(
    'a large output reaches the next stage and the reduction%s, also in a second attempt',
    async (_, used) => {
      const tried = new Set<number>()
      const handle: Handle = ({ input, attempt }) => {
        const { n, text } = input as Item
        if (text !== undefined && !tried.has(n)) {
          tried.add(n)
          throw new Error('once more')
        }
        expect(text === undefined || attempt === 2).toBe(true)
        return enlarge(input)
      }
      const { startRun, start, ended, runs, kept } = await openRuns(open, { ...LARGE, ...used, handle })
      await start()
      const id = await startRun({ count: 3, stages: [any(3), any(2)], maxBytes: 1_000_000 })
      const run = await ended(id)
      expect(run).toMatchObject({ results: 3, errors: 0, ended: { result: 'completed' } })
      expect(run.resultBytes).toBeGreaterThan(240_000)
      expect(await runs.output(id)).toEqual({ ns: [0, 1, 2] })
      await expectKept(() => kept(id), 0)
    },
  )

  it('a run keeps the large inputs of tasks that have not ended, and a cancelled one keeps none', async () => {
    const { startRun, start, ended, runs, broker, kept } = await openRuns(open, {
      ...LARGE,
      handle: ({ input }) => enlarge(input),
    })
    await start()
    const id = await startRun({ count: 6, stages: [any(2), { ...any(2), queue: AFTER }] })
    await eventually(async () => (await broker.counts(AFTER)).waiting === 2)
    await eventually(async () => (await runs.find(id))?.stages[1]?.waiting === 4)
    const { tasks } = await broker.list({ queue: AFTER, status: 'waiting', limit: 10, cursor: undefined })
    expect(tasks.map(({ input }) => input)).toEqual([undefined, undefined])
    expect((await kept(id))?.ofRun.includes('inputs') ?? true).toBe(true)
    await runs.cancel(id, 'bob')
    await ended(id)
    await expectKept(() => kept(id), 0)
  })

  it('a task whose input is gone is dead at once', async () => {
    const { startRun, start, ended, runs, broker, find, idsOf } = await openRuns(open, {
      ...LARGE,
      handle({ input }) {
        if ((input as Item).text !== undefined) throw new TaskError('unlucky', 'no', { retryable: false })
        return enlarge(input)
      },
    })
    await start()
    const id = await startRun({ count: 1, stages: [any(1), any(1)], onError: 'collect' })
    expect(await ended(id)).toMatchObject({ errors: 1, results: 0 })
    const [dead = expect.fail()] = await idsOf('dead')
    // The run has counted the task, so it does not keep the input any more.
    expect(await broker.retry(dead, { request: 'again', by: 'ann' })).toBe('done')
    const record = await eventually(async () => {
      const found = await find(dead)
      return found.status === 'dead' && found.attempts.length === 2 && found
    })
    expect(record.attempts[1]).toMatchObject({
      code: 'input_gone',
      message: expect.stringContaining('the input, 80017 bytes, was kept by run-'),
    })
    expect((await runs.find(id))?.errors).toBe(1)
  })

  it('the tasks of a run leave nothing but its record, however many they were', async () => {
    const { startRun, start, ended, broker, kept } = await openRuns(open, {
      ...LARGE,
      concurrency: 20,
      handle: ({ input }) => input,
    })
    await start()
    const id = await startRun({ count: 500, stages: [any(20), any(20)] })
    expect(await ended(id)).toMatchObject({ results: 500, ended: { result: 'completed' } })
    expect(await broker.counts('conformance')).toMatchObject({ completed: 0, waiting: 0, active: 0, dead: 0 })
    await expectKept(() => kept(id), 0)
  })
}
