import {
  defineCatalogue,
  defineHandler,
  defineSource,
  defineSourceHandler,
  defineTask,
  type Log,
  TaskError,
  type TaskEvent,
} from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Outcome } from '../ports/attempt-result.ts'
import type { IsolateCalls, IsolatedTask, Isolator } from '../ports/isolator.ts'
import { declaredFailure, describeOutcome } from '../verdict/outcome.ts'
import type { Middleware } from './middleware.ts'
import { createRegistry } from './registry.ts'
import { RunSlot } from './run-slot.fixture.ts'
import { stepsInMemory } from './steps.fixture.ts'

const isolated = defineTask({
  name: 'test.isolated',
  queue: 'q',
  timeout: '100ms',
  grace: '50ms',
  isolation: 'process',
  memoryLimit: '64MiB',
  input: z.object({ n: z.int().default(1) }),
  output: z.object({ n: z.int() }),
})
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A world whose isolate does what the test says. */
function world(middleware: readonly Middleware[] = []) {
  const { promise: outcome, resolve: end } = Promise.withResolvers<Outcome>()
  const seen: { task?: IsolatedTask; calls?: IsolateCalls; signals: string[]; killed: number } = {
    signals: [],
    killed: 0,
  }
  const isolator: Isolator = {
    isolations: ['process'],
    run(task, calls) {
      Object.assign(seen, { task, calls })
      return { outcome, signal: ({ name }) => void seen.signals.push(name), kill: () => void seen.killed++ }
    },
    close: async () => {},
  }
  const handler = defineHandler(isolated, import.meta.url, () => {
    throw new Error('it must not run here')
  })
  const clock = fakeClock()
  const events: TaskEvent[] = []
  const progress: unknown[] = []
  const store = stepsInMemory()
  const taken = {
    id: createTaskId('q', 1, new Uint8Array(10)),
    task: isolated.name,
    envelope: { v: 2, version: 1, input: {}, meta: { a: 'b' } },
    enqueuedAt: clock.now(),
    fencingToken: 3,
    attempt: 1,
    maxAttempts: 3,
    readyAt: undefined,
    progress: async (at: unknown) => void progress.push(at),
    steps: store.steps,
  }
  const slot = new RunSlot({
    registry: createRegistry(defineCatalogue(isolated), { 'test.isolated': handler }, { middleware, isolator }),
    context: { run: (attempt, code) => code(attempt), current: () => undefined },
    clock,
    random: () => 0.5,
    sink: (event) => events.push(event),
    queue: 'q',
    enqueue: async ({ id }) => ({ id, action: 'created' }),
    sha256: () => new Uint8Array(32),
    maxOutputBytes: 1_000,
    worker: 'host:1',
    resources: {},
    logFor: () => silent,
  })
  const take = async () => slot.run(taken)
  return { take, end, seen, clock, events, progress, store, isolator }
}

it('the source of a pipeline has no process for its quarantine, because only the worker has access to its run', () => {
  const { isolator } = world()
  const source = defineSource({ name: 'test.source', queue: 'q', input: z.object({}), item: z.object({}) })
  const handler = defineSourceHandler(source, import.meta.url, () => [])
  const quarantine = { isolator, fits: async () => true, memoryLimitBytes: 0 }
  const registry = createRegistry(defineCatalogue(source), { 'test.source': handler }, { quarantine })
  expect(registry.get('test.source')).not.toMatchObject({ inProcess: expect.anything() })
  expect(registry.get('test.source')?.findApart).toBeUndefined()
})

describe('an isolated task', () => {
  it('runs in its isolate, with its raw input and limits, and ends with the isolate’s output', async () => {
    const { take, end, seen, progress } = world()
    const ended = take()
    await seen.calls?.progress({ fraction: 0.5 })
    end({ kind: 'returned', output: { n: 5 } })
    expect((await ended).verdict).toEqual({ kind: 'completed', output: { n: 5 } })
    expect(seen.task).toMatchObject({
      isolation: 'process',
      module: import.meta.url,
      input: {},
      fencingToken: 3,
      meta: { a: 'b' },
      memoryLimitBytes: 64 * 2 ** 20,
    })
    expect(progress).toEqual([{ fraction: 0.5 }])
  })

  it('has its steps kept by the slot that runs it', async () => {
    const { take, end, seen, store } = world()
    const ended = take()
    store.kept.set('before', '1')
    expect(await seen.calls?.findStep('before')).toEqual({ key: '0'.repeat(32), result: '1' })
    expect(await seen.calls?.storeStep('now', '2')).toBe('2')
    expect([...store.kept.keys()]).toEqual(['before', 'now'])
    await expect(seen.calls?.storeStep('large', 'x'.repeat(1_001))).rejects.toMatchObject({ code: 'invalid_result' })
    store.loseLock()
    await expect(seen.calls?.storeStep('late', '3')).rejects.toMatchObject({ code: 'lock_lost' })
    end({ kind: 'returned', output: { n: 5 } })
    expect((await ended).verdict).toEqual({ kind: 'lost' })
  })

  it.each<[string, Outcome]>([
    ['out of memory', { kind: 'panicked', reason: 'out_of_memory', error: new Error('heap') }],
    ['its isolate died', { kind: 'panicked', reason: 'isolate_died', error: new Error('exit 7') }],
    ['a declared failure', declaredFailure(new TaskError('busy', 'later', { retryable: false }))],
  ])('ends as its isolate says, through middleware too: %s', async (_, outcome) => {
    const seen: unknown[] = []
    const reporter: Middleware = async (_, next) => {
      try {
        return await next()
      } catch (error) {
        seen.push(error)
        throw error
      }
    }
    const { take, end } = world([reporter])
    const ended = take()
    end(outcome)
    const { state, reason, code } = describeOutcome(outcome)
    const { record: recorded } = await ended
    expect([recorded.state, recorded.reason, recorded.code]).toEqual([state, reason, code])
    expect(seen).toMatchObject([{ name: 'IsolateEnded' }])
  })

  it('is signalled at its timeout and killed after its grace; what comes back then is no late result', async () => {
    const { take, end, seen, clock, events } = world()
    const ended = take()
    await clock.advance(100)
    expect(seen).toMatchObject({ signals: ['TimeoutError'], killed: 0 })
    await clock.advance(50)
    expect(seen.killed).toBe(1)
    expect((await ended).record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
    end({ kind: 'panicked', reason: 'isolate_died', error: new Error('killed') })
    await clock.advance(0)
    expect(events.map(({ event }) => event)).toEqual(['attempt.started', 'attempt.ended'])
  })

  it('lives by the signs that its isolate hands on', async () => {
    const { take, end, seen, clock } = world()
    const ended = take()
    await clock.advance(90)
    seen.calls?.heartbeat()
    end({ kind: 'returned', output: { n: 1 } })
    expect((await ended).record.state).toBe('DONE_SUCCESS')
  })
})
