// Starts a drill's workers, kills them or tells them to shut down, and ensures that none are left afterwards.
import { fork } from 'node:child_process'
import { openSync } from 'node:fs'
import type { WorkerConfig } from '@bullpen/config'
import type { WorkerArguments } from '../programs/worker-arguments.ts'
import { ChildProcesses, type RunningProgram } from './child-process.ts'

export interface WorkerProcess extends RunningProgram {
  /** The address of the worker's probes and metrics. Plain BullMQ has none, and sends another message when it is ready. */
  readonly url: string
}

/** Which kind of worker runs: Bullpen's, or plain BullMQ's for comparison. */
export type System = 'bullpen' | 'bullmq'

export interface Machine {
  /** How far the worker's clock is ahead, in ms. The value is negative if the clock is behind. */
  readonly clockOffMs?: number
  /** How large the worker's heap may be, in MiB. Defaults to Node's own limit. */
  readonly heapMiB?: number
}

export interface Fleet {
  /** The workers that run and were not asked to shut down, oldest first. */
  readonly workers: readonly WorkerProcess[]
  /** Starts one more worker. Resolves when the worker is fetching tasks. */
  start(config?: WorkerConfig, machine?: Machine): Promise<WorkerProcess>
  /** Tells the remaining workers to shut down, and kills those that take longer than `killAfterMs`. */
  end(killAfterMs: number): Promise<void>
  /** Kills the remaining workers. */
  close(): Promise<void>
}

const SHIFTED_CLOCK = new URL('../programs/shifted-clock.ts', import.meta.url).href
const PROGRAMS: Readonly<Record<System | 'groupmq' | 'attached', string>> = {
  bullpen: '../programs/worker-main.ts',
  attached: '../programs/attached-main.ts',
  bullmq: '../programs/peer-main.ts',
  groupmq: '../programs/groupmq-main.ts',
}

/**
 * Opens a fleet without workers. `log` is the file for the workers' output. `metricsOf` returns the file for a worker's last
 * metrics.
 */
export function openFleet(options: {
  /** What the names of the workers begin with. Defaults to 'w'. */
  readonly names?: string
  readonly ledger: string
  readonly metricsOf: (worker: string) => string
  readonly log: string
  readonly system: keyof typeof PROGRAMS
  readonly config: WorkerConfig
}): Fleet {
  const { names = 'w', ledger, metricsOf, system, config } = options
  const log = openSync(options.log, 'a')
  const program = new URL(PROGRAMS[system], import.meta.url)
  const children = new ChildProcesses()
  const workers: WorkerProcess[] = []
  let started = 0

  const remove = (worker: WorkerProcess): void => {
    const at = workers.indexOf(worker)
    if (at >= 0) workers.splice(at, 1)
  }

  return {
    workers,
    async start(own = {}, { clockOffMs, heapMiB } = {}) {
      const name = `${names}${++started}`
      const workerArguments: WorkerArguments = { name, ledger, metrics: metricsOf(name), config: { ...config, ...own } }
      const child = fork(program, [JSON.stringify(workerArguments)], {
        stdio: ['ignore', log, log, 'ipc'],
        execArgv: [
          ...(clockOffMs === undefined ? [] : ['--import', SHIFTED_CLOCK]),
          ...(heapMiB === undefined ? [] : [`--max-old-space-size=${heapMiB}`]),
        ],
        env: { ...process.env, BULLPEN_DRILL_CLOCK_OFF_MS: String(clockOffMs ?? 0) },
      })
      const ready = new Promise<string>((resolve) => child.once('message', (url) => resolve(String(url))))
      const running = await children.add(`worker ${name}`, child, ready)
      const { pid, exited, pause, resume } = running
      const worker: WorkerProcess = {
        name,
        url: running.ready,
        pid,
        exited,
        pause,
        resume,
        kill() {
          remove(worker)
          return running.kill()
        },
        async end(killAfterMs) {
          remove(worker)
          return { ...(await running.end(killAfterMs)), worker: name }
        },
      }
      workers.push(worker)
      void exited.then(() => remove(worker))
      return worker
    },
    async end(killAfterMs) {
      await Promise.all(workers.slice().map((worker) => worker.end(killAfterMs)))
    },
    close: () => children.killAll(),
  }
}
