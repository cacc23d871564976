// The engine's runner with real isolates: what loops for ever is ended by its time limit.
import { makeTaskId } from '@bullpen/contract'
import { makeRegistry, type RunnerHost, runAttempt, Worker } from '@bullpen/engine'
import { systemClock } from '@bullpen/engine/node'
import { expect, it } from 'vitest'
import { catalogue, handlers } from './loops.fixture.ts'
import { openIsolator } from './open-isolator.ts'
import { keptLog } from './rig.fixture.ts'

it.each(['loop.thread', 'loop.process'])('%s ends within timeout, grace and 250 ms', async (task) => {
  const { log } = keptLog()
  const isolator = openIsolator({ threads: { max: 1 }, processes: { max: 1 }, log })
  const events: string[] = []
  const host: RunnerHost = {
    registry: makeRegistry(catalogue, handlers, { isolator }),
    context: { run: (attempt, code) => code(attempt), current: () => undefined },
    clock: systemClock,
    random: () => 0.5,
    sink: ({ event }) => events.push(event),
    queue: 'q',
    enqueue: async () => {},
    closedBy: () => undefined,
    leftovers: new Set(),
    sha256: () => new Uint8Array(32),
    outputLimitBytes: 1_000,
    process: 'host:1',
    poolSignal: new AbortController().signal,
    resources: {},
    logFor: () => log,
  }
  const taken = {
    id: makeTaskId('q', 1, new Uint8Array(10)),
    task,
    envelope: { v: 1, version: 1, input: {} },
    enqueuedAt: Date.now(),
    start: 1,
    attempt: 1,
    maxAttempts: 3,
    readyAt: undefined,
    progress: async () => {},
  }
  const beganAt = performance.now()
  const { end } = await runAttempt(taken, new Worker(1, systemClock), host)
  const tookMs = performance.now() - beganAt
  await isolator.close()
  expect(end).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run' })
  expect(tookMs).toBeLessThan(1_000 + 100 + 250)
  expect(events).toEqual(['attempt.started', 'attempt.ended'])
})
