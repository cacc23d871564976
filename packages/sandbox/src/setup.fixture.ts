// An isolator for a test: records log lines and replaced isolates, and runs tasks by their definitions.
import { existsSync, readFileSync } from 'node:fs'
import { BullpenError, type Log, type Progress, type TaskDefinition } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { IsolatedTask, Isolator } from '@bullpen/engine/internal'
import type { Replaced } from './isolate/isolate-pool.ts'
import { type IsolatorOptions, openIsolator } from './open-isolator.ts'

export type Line = { readonly level: keyof Log; readonly message: string } & Readonly<Record<string, unknown>>

/** Creates a log that records its lines. `logged` resolves with the first line that contains the words. */
export function recordingLog() {
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const at = (level: keyof Log) => (fields: object, message: string) => {
    lines.push({ ...fields, level, message })
    for (const look of waiting) look()
  }
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const logged = (words: string): Promise<Line> =>
    new Promise((resolve) => {
      const look = (): void => {
        const line = lines.find(({ message }) => message.includes(words))
        if (line !== undefined && waiting.delete(look)) resolve(line)
      }
      waiting.add(look)
      look()
    })
  return { log, lines, logged }
}

export function openSetup(
  isolation: IsolatedTask['isolation'],
  options: Partial<IsolatorOptions> = {},
  given?: Pick<Isolator, 'run' | 'close'>,
) {
  const own = recordingLog()
  const replaced: Replaced[] = []
  const isolator =
    given ??
    openIsolator({
      threads: { max: 1 },
      processes: { max: 1 },
      log: own.log,
      onReplaced: (event) => replaced.push(event),
      ...options,
    })
  let tasks = 0
  return {
    isolator,
    replaced,
    /** The log for lines that do not belong to a running task. */
    own,
    run(definition: TaskDefinition, input: unknown = {}, more: Partial<IsolatedTask> = {}) {
      const recorded = recordingLog()
      const progress: Progress[] = []
      const enqueued: unknown[] = []
      const registered: unknown[] = []
      const followUps: unknown[] = []
      const steps = new Map<string, string>([['done', '"before"']])
      let heartbeats = 0
      const task: IsolatedTask = {
        isolation,
        module: new URL('./handlers.fixture.ts', import.meta.url).href,
        task: definition.name,
        id: createTaskId('q', tasks++, new Uint8Array(10)),
        fencingToken: 1,
        attempt: 1,
        input,
        meta: {},
        enqueuedAt: 1_000,
        startedAt: 2_000,
        correlationId: undefined,
        traceContext: undefined,
        group: undefined,
        followUpOf: undefined,
        memoryLimitBytes: undefined,
        ...more,
      }
      const calls = {
        progress: async (at: Progress) => {
          progress.push(at)
          if (at.fraction === 0.9) throw new Error('the store is away')
        },
        heartbeat: () => void heartbeats++,
        enqueue: async (child: string, childInput: unknown, options: unknown) => {
          enqueued.push([child, childInput, options])
          if (enqueued.length > 1) throw new Error('that key is taken')
          return { id: createTaskId('q', 999, new Uint8Array(10)), action: 'created' as const }
        },
        findStep: async (step: string) => ({ key: `key of ${step}`, result: steps.get(step) }),
        onSuccess: (next: string, nextInput: unknown, options: unknown) => {
          followUps.push([next, nextInput, options])
        },
        register: async (kind: string, next: string, nextInput: unknown, options: unknown) => {
          registered.push([kind, next, nextInput, options])
        },
        storeStep: async (step: string, result: string) => {
          if (step === 'lost') throw new BullpenError('lock_lost', 'it has another owner')
          steps.set(step, result)
          return result
        },
        log: recorded.log,
      }
      const { outcome, ...rest } = methodsOf(isolator.run(task, calls))
      return {
        ...rest,
        outcome,
        task,
        ...recorded,
        progress,
        enqueued,
        registered,
        followUps,
        steps,
        heartbeats: () => heartbeats,
      }
    },
    [Symbol.asyncDispose]: () => isolator.close(),
  }
}

/** Returns a run's methods as functions that can be destructured. */
function methodsOf(run: ReturnType<ReturnType<typeof openIsolator>['run']>) {
  return { outcome: run.outcome, signal: (reason: Error) => run.signal(reason), kill: () => run.kill() }
}

/** Returns what a task returned. Any other outcome fails the test with the outcome's own error. */
export async function outputOf<T>(run: {
  readonly outcome: ReturnType<ReturnType<typeof openIsolator>['run']>['outcome']
}) {
  const outcome = await run.outcome
  if (outcome.kind === 'returned') return outcome.output as T
  throw new Error(`the task ended as ${outcome.kind}`, { cause: 'error' in outcome ? outcome.error : outcome })
}

/** Returns whether a process is alive. A zombie, which has ended but has not been collected, is not alive. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(existsSync('/proc') ? readFileSync(`/proc/${pid}/status`, 'utf8') : '')
  } catch {
    return false
  }
}
