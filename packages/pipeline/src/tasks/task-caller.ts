// Runs the tasks of one stage to their ends, within this process: with the attempts, timeouts, retries and delays of a worker.
import { type Log, type Resources, type TaskDefinition, TaskError } from '@bullpen/contract'
import { createTaskId, ENVELOPE_VERSION, type Envelope, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import {
  type AsyncContext,
  type AttemptResult,
  type Clock,
  countsAsAttempt,
  decodeValue,
  type FetchedTask,
  InterruptibleRun,
  type Registry,
  type RunAccess,
  type RunnerHost,
  runAttempt,
  type StoredSteps,
  textOfResult,
} from '@bullpen/engine/internal'
import { createRandomPool, sha256 } from '@bullpen/engine/node'
import type { RetryWaits } from './retry-waits.ts'

/** What the stages of a run share. */
export interface TaskHost {
  readonly pipeline: string
  readonly registry: Registry
  readonly resources: Resources
  readonly log: Log
  readonly access: RunAccess
  readonly clock: Clock
  readonly waits: RetryWaits
}

/** Runs a task for an input, which is JSON or '' for none. Resolves with the output, in the same form. */
export type TaskCaller = (input: string) => Promise<string>

const randomBytes = createRandomPool()

/** An uncaught error belongs to the process, which handles it as it handles its own. */
const NO_CONTEXT: AsyncContext = { run: (attempt, code) => code(attempt), current: () => undefined }

/**
 * Returns what runs tasks of this definition. When the signal aborts, running attempts are cancelled and no further one starts. A call
 * then rejects when its handler has returned, or when the definition's grace period has passed.
 *
 * @throws What the last attempt has thrown, or a TaskError that says why the task is dead.
 */
export function createTaskCaller(definition: TaskDefinition, host: TaskHost, signal: AbortSignal): TaskCaller {
  const { name, queue, version, retry } = definition
  const { pipeline, registry, log, resources, access, clock, waits } = host
  const running = new Set<InterruptibleRun>()
  const stop = (run: InterruptibleRun): void => void run.stop({ reason: 'cancelled', by: `pipeline ${pipeline}` })
  signal.addEventListener('abort', () => running.forEach(stop), { once: true })
  const runnerHost: RunnerHost = {
    ...{ registry, resources, clock, sha256, queue, runs: access },
    context: NO_CONTEXT,
    poolSignal: signal,
    random: Math.random,
    sink: () => {},
    worker: `pipeline ${pipeline}`,
    logFor: (fields) => withFields(log, fields),
    // Nothing is stored, so the size of an output does not matter.
    maxOutputBytes: Number.POSITIVE_INFINITY,
    enqueue: () => Promise.reject(new Error('no task can be enqueued in a pipeline within one process')),
  }

  const attempt = async (task: FetchedTask): Promise<AttemptResult> => {
    const run = runAttempt(task, runnerHost)
    if (!(run instanceof InterruptibleRun)) return run
    running.add(run)
    if (signal.aborted) stop(run)
    const result = await run.result
    running.delete(run)
    return result
  }

  return async (input) => {
    const enqueuedAt = clock.now()
    const task = {
      id: createTaskId(queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES)),
      task: name,
      enqueuedAt,
      maxAttempts: retry.maxAttempts,
      readyAt: undefined,
      progress: async () => {},
      steps: createSteps(),
    }
    let number = 1
    for (let fencingToken = 1; ; fencingToken++) {
      await waits.untilReleased(queue, signal)
      signal.throwIfAborted()
      // Every attempt gets its own copy of the input, as from a store.
      const envelope: Envelope = { v: ENVELOPE_VERSION, version, run: IN_PROCESS, input: decodeValue(input, undefined) }
      const result = await attempt({ ...task, envelope, fencingToken, attempt: number })
      const { verdict } = result
      await waits.afterAttempt(result, signal)
      if (verdict.kind === 'completed') return textOfResult(verdict)
      signal.throwIfAborted()
      if (verdict.kind === 'dead' || verdict.kind === 'expired') throw errorOf(result)
      if (countsAsAttempt(verdict)) number++
    }
  }
}

/** The place of each task, which tells the handlers of sources and reductions that they belong to a pipeline. */
const IN_PROCESS: NonNullable<Envelope['run']> = { id: 'run-in-process', stage: 0, position: 0 }

/** The steps that `ctx.once` has run, which the task's later attempts find. */
function createSteps(): StoredSteps {
  let results: Map<string, string> | undefined
  return {
    read: async () => new Map(results),
    async keep(step, result) {
      results ??= new Map()
      const kept = results.get(step) ?? result
      results.set(step, kept)
      return kept
    },
    register: () => Promise.reject(new Error('no task can be registered in a pipeline within one process')),
  }
}

function errorOf({ error, record: { code, reason, message } }: AttemptResult): unknown {
  return error ?? new TaskError(code ?? reason ?? 'dead', message ?? 'the task is dead')
}

function withFields(log: Log, fields: object): Log {
  const write = (level: keyof Log) => (own: object, message: string) => log[level]({ ...fields, ...own }, message)
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
