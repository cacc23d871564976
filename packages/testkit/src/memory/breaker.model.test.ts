// Lets random outages of a service, deaths of workers and cancels happen to tasks that depend on it, and compares the calls of the service,
// which it counts itself, with what its circuit breaker may let through.
import { defineCatalogue, defineHandler, defineQueue, defineTask, type TaskId } from '@bullpen/contract'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { fakeClock } from '../fake-clock.ts'
import { memoryPool } from '../test-pool.ts'
import { memoryBroker } from './memory-broker.ts'

const QUEUE = 'outages'
const SERVICE = 'smtp'
const MAX_ATTEMPTS = 30

interface Program {
  readonly probes: number
  readonly openS: number
  readonly workers: readonly { readonly slots: number; readonly diesAtMs: number }[]
  /** The outages follow each other. */
  readonly outages: readonly { readonly afterMs: number; readonly lastsMs: number }[]
  readonly tasks: readonly {
    readonly atMs: number
    readonly callMs: number
    readonly key: 'a' | 'b' | undefined
    readonly cancelledAtMs: number | undefined
  }[]
}

const program: fc.Arbitrary<Program> = fc.record({
  probes: fc.integer({ min: 1, max: 3 }),
  openS: fc.integer({ min: 1, max: 3 }),
  workers: fc.array(
    fc.record({ slots: fc.integer({ min: 1, max: 6 }), diesAtMs: fc.integer({ min: 0, max: 60_000 }) }),
    { minLength: 1, maxLength: 4 },
  ),
  outages: fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: 5_000 }), lastsMs: fc.integer({ min: 100, max: 20_000 }) }),
    { minLength: 1, maxLength: 3 },
  ),
  tasks: fc.array(
    fc.record({
      atMs: fc.integer({ min: 0, max: 15_000 }),
      // A call may take longer than a period of probes.
      callMs: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 200 }) }, fc.integer({ min: 1, max: 4_000 })),
      key: fc.constantFrom('a', 'b', undefined),
      cancelledAtMs: fc.option(fc.integer({ min: 0, max: 30_000 }), { nil: undefined, freq: 8 }),
    }),
    { minLength: 1, maxLength: 30, size: 'max' },
  ),
})

async function run({ probes, openS, workers, outages, tasks }: Program): Promise<void> {
  const openMs = openS * 1_000
  const queue = defineQueue({
    name: QUEUE,
    fairness: true,
    breakers: { [SERVICE]: { minimumCalls: 3, openFor: `${openS}s`, maxOpenFor: `${openS}s`, probes } },
  })
  const retry = {
    maxAttempts: MAX_ATTEMPTS,
    backoff: { type: 'fixed', initialDelay: '50ms', jitter: 0 },
    budget: 'none',
  } as const
  const call = defineTask({
    name: 'outages.call',
    queue,
    input: z.object({ callMs: z.int() }),
    retry,
    dependsOn: [SERVICE],
  })
  const catalogue = defineCatalogue(call)
  const clock = fakeClock()
  const start = clock.now()
  const broker = memoryBroker({ clock, queues: [QUEUE], stallMs: 500 })
  let isDown = false
  const calls: { readonly id: TaskId; readonly at: number }[] = []
  const handler = defineHandler(call, import.meta.url, async ({ id, input: { callMs }, signal }) => {
    calls.push({ id, at: clock.now() })
    await new Promise<void>((resolve) => {
      clock.after(callMs, resolve)
      signal.addEventListener('abort', () => resolve())
    })
    if (isDown) throw Object.assign(new Error('the service is down'), { code: 'ECONNREFUSED' })
  })
  const work = (worker: string, slots: number) =>
    memoryPool(broker, {
      catalogue,
      handlers: { [call.name]: handler },
      queue: QUEUE,
      clock,
      concurrency: slots,
      worker,
    })
  const pools = workers.map(({ slots, diesAtMs }, i) => {
    clock.after(diesAtMs, () => {
      broker.kill(`w${i}`)
      const successor = work(`v${i}`, slots)
      pools.push(successor)
      void successor.start()
    })
    return work(`w${i}`, slots)
  })
  let [at, lastEnd] = [0, 0]
  for (const { afterMs, lastsMs } of outages) {
    clock.after(at + afterMs, () => (isDown = true))
    at += afterMs + lastsMs
    clock.after(at, () => (isDown = false))
    lastEnd = at
  }
  const ids: Promise<TaskId>[] = []
  for (const { atMs, callMs, key, cancelledAtMs } of tasks) {
    clock.after(atMs, () => {
      const added = broker.add(call, { callMs }, key === undefined ? {} : { concurrencyKey: key })
      ids.push(added)
      if (cancelledAtMs === undefined) return
      clock.after(
        Math.max(0, cancelledAtMs - atMs),
        () => void added.then((id) => broker.cancel(id, { stoppable: true })),
      )
    })
  }
  await Promise.all(pools.map((pool) => pool.start()))

  const read = async () => (await broker.breakers.list(QUEUE, queue.breakers ?? {}))[0] ?? expect.fail()
  /** The calls that started while the breaker was not closed, since it was closed for the last time. */
  let through: number[] = []
  let before = await read()
  for (let next = clock.next(); next !== undefined && clock.now() < start + 300_000; next = clock.next()) {
    const seen = calls.length
    await clock.advance(next)
    const now = await read()
    const started = calls.slice(seen).map((each) => each.at)
    // The end of a call can close the breaker, and start further tasks within the same step.
    if (before.state === 'closed' || now.state === 'closed') through = []
    else {
      through.push(...started)
      for (const from of through) {
        const within = through.filter((each) => each >= from && each < from + openMs)
        // The last probes of a period, and all of the next one.
        expect(within.length).toBeLessThanOrEqual(2 * probes - 1)
      }
      const [first = 0, last = 0] = [through[0], through.at(-1)]
      expect(through.length).toBeLessThanOrEqual(probes * (Math.floor((last - first) / openMs) + 1))
    }
    before = now
  }
  // Whatever has happened, every task has ended, and has used an attempt for nothing but a call that failed or succeeded.
  expect(clock.now() - start).toBeGreaterThanOrEqual(lastEnd)
  for (const id of await Promise.all(ids)) {
    const record = (await broker.find(id)) ?? expect.fail()
    const cancelled = record.status === 'cancelled'
    expect(cancelled || record.status === 'completed').toBe(true)
    const made = calls.filter((each) => each.id === id).length
    expect(record.attempts.filter(({ counted }) => counted).length).toBeLessThanOrEqual(made + Number(cancelled))
  }
  expect((await broker.counts(QUEUE)).waiting).toBe(0)
  await Promise.all(pools.map((pool) => pool.drain({ drainMs: 0, graceMs: 0 })))
  await broker.close()
}

it('a service that is down gets at most its probes, and every task ends once the service works, whatever happens', async () => {
  await fc.assert(fc.asyncProperty(program, run), { numRuns: 60 })
})
