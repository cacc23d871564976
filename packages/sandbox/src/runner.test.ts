// Tests the engine's runner with real isolates: a loop is ended, and a finished step is not repeated.
import { createTaskId } from '@bullpen/contract/internal'
import {
  type AttemptResult,
  createRegistry,
  type FetchedTask,
  InterruptibleRun,
  type RunnerHost,
  runAttempt,
} from '@bullpen/engine/internal'
import { sha256, systemClock } from '@bullpen/engine/node'
import { expect, it } from 'vitest'
import { catalogue, handlers } from './loops.fixture.ts'
import { openIsolator } from './open-isolator.ts'
import { recordingLog } from './setup.fixture.ts'

/** Runs one attempt after the other, and stores their steps. */
function setup() {
  const isolator = openIsolator({ threads: { max: 1 }, processes: { max: 1 }, log: recordingLog().log })
  const { log } = recordingLog()
  const events: string[] = []
  const host: RunnerHost = {
    registry: createRegistry(catalogue, handlers, { isolator }),
    context: { run: (attempt, code) => code(attempt), current: () => undefined },
    clock: systemClock,
    random: () => 0.5,
    sink: ({ event }) => events.push(event),
    queue: 'q',
    enqueue: async ({ id }) => ({ id, action: 'created' }),
    sha256,
    maxOutputBytes: 1_000,
    worker: 'host:1',
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
      register: async () => 'stored',
    },
  })
  const run = async (task: string, start = 1): Promise<AttemptResult> => {
    const running = runAttempt(taken(task, start), host)
    return running instanceof InterruptibleRun ? running.result : running
  }
  return { run, events, kept, [Symbol.asyncDispose]: () => isolator.close() }
}

it.each(['loop.thread', 'loop.process'])('%s, which loops, ends at its timeout', async (task) => {
  await using isolates = setup()
  const { record, event } = await isolates.run(task)
  expect(record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
  expect([...isolates.events, event.event]).toEqual(['attempt.started', 'attempt.ended'])
})

it.each(['steps.thread', 'steps.process'])(
  '%s, which dies after its step, gets the stored result in the next attempt',
  async (task) => {
    await using isolates = setup()
    expect((await isolates.run(task)).record).toMatchObject({ state: 'RECOVER_ERR', reason: 'isolate_died' })
    const { verdict, followUps } = await isolates.run(task, 2)
    // The worker makes the follow-ups of the definition from the output of the isolate.
    expect(followUps).toContain(`"task":"${task.replace('steps', 'loop')}"`)
    expect(verdict).toEqual({ kind: 'completed', output: { paid: 1, key: expect.stringMatching(/^[0-9a-f]{32}$/) } })
    expect(isolates.kept.size).toBe(1)
  },
)
