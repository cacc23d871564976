// The engine's runner with real isolates: what loops for ever is ended, and what has been done is not done again.
import { createTaskId } from '@bullpen/contract/internal'
import { createRegistry, type FetchedTask, type RunnerHost, runAttempt, Slot } from '@bullpen/engine/internal'
import { sha256, systemClock } from '@bullpen/engine/node'
import { expect, it } from 'vitest'
import { catalogue, handlers } from './loops.fixture.ts'
import { openIsolator } from './open-isolator.ts'
import { keptLog } from './rig.fixture.ts'

/** One task after the other, with what its starts have kept. */
function world() {
  const isolator = openIsolator({ threads: { max: 1 }, processes: { max: 1 }, log: keptLog().log })
  const { log } = keptLog()
  const events: string[] = []
  const host: RunnerHost = {
    registry: createRegistry(catalogue, handlers, { isolator }),
    context: { run: (attempt, code) => code(attempt), current: () => undefined },
    clock: systemClock,
    random: () => 0.5,
    sink: ({ event }) => events.push(event),
    queue: 'q',
    enqueue: async () => {},
    closedBy: () => undefined,
    stuckHandlers: new Set(),
    sha256,
    maxOutputBytes: 1_000,
    worker: 'host:1',
    poolSignal: new AbortController().signal,
    resources: {},
    logFor: () => log,
  }
  const kept = new Map<string, string>()
  const taken = (task: string, start: number): FetchedTask => ({
    id: createTaskId('q', 1, new Uint8Array(10)),
    task,
    envelope: { v: 2, version: 1, input: {} },
    enqueuedAt: Date.now(),
    fencingToken: start,
    attempt: start,
    maxAttempts: 3,
    readyAt: undefined,
    progress: async () => {},
    steps: {
      read: async () => kept,
      keep: async (step, result) => kept.set(step, result).get(step),
    },
  })
  const slot = new Slot(1, systemClock)
  const run = async (task: string, start = 1) => runAttempt(taken(task, start), slot, host)
  const close = (): Promise<void> => {
    slot.close()
    return isolator.close()
  }
  return { run, events, kept, [Symbol.asyncDispose]: close }
}

it.each(['loop.thread', 'loop.process'])('%s ends within timeout, grace and 250 ms', async (task) => {
  await using isolates = world()
  const startedAt = performance.now()
  const { record } = await isolates.run(task)
  const tookMs = performance.now() - startedAt
  expect(record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
  expect(tookMs).toBeLessThan(1_000 + 100 + 250)
  expect(isolates.events).toEqual(['attempt.started', 'attempt.ended'])
})

it.each(['steps.thread', 'steps.process'])(
  '%s dies after its step, and is given its result in the next start',
  async (task) => {
    await using isolates = world()
    expect((await isolates.run(task)).record).toMatchObject({ state: 'RECOVER_ERR', reason: 'isolate_died' })
    const { verdict } = await isolates.run(task, 2)
    expect(verdict).toEqual({ kind: 'completed', output: { paid: 1, key: expect.stringMatching(/^[0-9a-f]{32}$/) } })
    expect(isolates.kept.size).toBe(1)
  },
)
