// Measures what tasks cost one process and Redis, in CPU time: to enqueue them, and to run them to completion.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startCpuTime } from './cpu-time.ts'
import { untilReachable } from './reachable.ts'

/** For enqueueing the tasks, for running them, and for both. */
export const COSTS = ['process, enqueue', 'process, run', 'process', 'redis, enqueue', 'redis, run', 'redis'] as const
export type Cost = (typeof COSTS)[number]

/** CPU time per task, in µs. */
export type TaskCosts = Readonly<Record<Cost, number>>

/** Counts the tasks that have not ended. */
export interface Countdown {
  /** Resolves when this many tasks have ended. */
  begin(tasks: number): Promise<void>
  /** A handler calls this when a task ends. */
  end(): void
}

/** What one process measures. The packages may be those of another checkout, so this module loads none of them. */
export interface MeasuredSide {
  readonly redis: Parameters<typeof startCpuTime>[0]
  readonly broker: {
    ping(): Promise<void>
    readonly boardQueues: readonly { obliterate(options: { force: boolean }): Promise<void> }[]
  }
  readonly tasks: number
  readonly countdown: Countdown
  /** Enqueues the n-th task. */
  enqueue(n: number): Promise<unknown>
  /** Creates a worker that runs all tasks, with this many slots. */
  createWorker(slots: number): { start(): Promise<unknown>; drain(): Promise<unknown> }
}

const IN_FLIGHT = 64
const SLOTS = 50

export function createCountdown(): Countdown {
  let left = 0
  let done = Promise.withResolvers<void>()
  return {
    begin(tasks) {
      left = tasks
      done = Promise.withResolvers()
      return done.promise
    },
    end() {
      left--
      if (left === 0) done.resolve()
    },
  }
}

/** Measures the tasks in this process, prints the costs as JSON, deletes the tasks and exits. */
export async function printTaskCosts(side: MeasuredSide): Promise<never> {
  const { broker } = side
  await untilReachable(broker)
  await measure(side) // Warms up, in the same process and with the same number of tasks.
  console.log(JSON.stringify(await measure(side)))
  await Promise.all(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
  process.exit(0)
}

async function measure(side: MeasuredSide): Promise<TaskCosts> {
  const { redis, tasks, countdown, createWorker } = side
  const enqueueing = await startCpuTime(redis)
  await enqueueAll(side)
  const enqueue = await enqueueing()
  const done = countdown.begin(tasks)
  const worker = createWorker(SLOTS)
  await worker.start()
  const running = await startCpuTime(redis)
  await done
  const run = await running()
  await worker.drain()
  return {
    'process, enqueue': enqueue.process / tasks,
    'process, run': run.process / tasks,
    process: (enqueue.process + run.process) / tasks,
    'redis, enqueue': enqueue.redis / tasks,
    'redis, run': run.redis / tasks,
    redis: (enqueue.redis + run.redis) / tasks,
  }
}

async function enqueueAll({ tasks, enqueue }: MeasuredSide): Promise<void> {
  let n = 0
  const enqueueNext = async (): Promise<void> => {
    while (n < tasks) await enqueue(n++)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, enqueueNext))
}

/** Runs a program that calls {@link printTaskCosts}, in a process of its own. */
export async function readTaskCosts(program: string, ...args: readonly string[]): Promise<TaskCosts> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args])
  return JSON.parse(stdout) as TaskCosts
}
