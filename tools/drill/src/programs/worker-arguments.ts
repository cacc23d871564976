// Passes the arguments of a drill's worker to its handlers, which also run in threads and child processes.
import type { WorkerConfig } from '@bullpen/config'

/** The only argument of the program, which is passed as JSON. */
export interface WorkerArguments {
  readonly name: string
  readonly ledger: string
  /** The file for the metrics that the worker publishes after its last task. */
  readonly metrics: string
  readonly config: WorkerConfig
}

/** The arguments of the worker. A thread or child process inherits the environment of the worker, but not its arguments. */
export const ARGUMENTS_VARIABLE = 'BULLPEN_DRILL_ARGUMENTS'
/** The process id of the worker. */
export const WORKER_PID_VARIABLE = 'BULLPEN_DRILL_WORKER_PID'

export function workerArguments(): WorkerArguments {
  return JSON.parse(process.env[ARGUMENTS_VARIABLE] ?? '') as WorkerArguments
}

/** Returns whether this is the worker's own process, and not a child process of it. */
export function isWorkerProcess(): boolean {
  return process.env[WORKER_PID_VARIABLE] === `${process.pid}`
}
