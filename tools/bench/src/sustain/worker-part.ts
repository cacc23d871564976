// Runs a worker of the benchmark `sustain`, which serves all queues. Tasks of the flowing queues end at once. Tasks of a queue with a
// backlog take turns at a constant rate, as if they called a service that accepts exactly as many calls as there are new tasks.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { createLatencyHistogram } from '../measuring/latency-histogram.ts'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { catalogue, FLOWING, nowMs, TASKS, type WorkerOptions } from './workload.ts'

/** How many tasks of a flowing queue may run at once, and how many of a queue with a backlog. */
const SLOTS = { flowing: 10, backlog: 3 } as const

const { redisUrl, namespace, backlogRate } = partOptions<WorkerOptions>()
const waits = createLatencyHistogram()
let ended = 0

type Input = TaskContext<(typeof TASKS)[number]>['input']

function handleFlowing({ input: { at, n } }: { readonly input: Input }) {
  waits.count(nowMs() - at)
  ended++
  return { n }
}

/** Returns a handler whose calls end one after another, at equal intervals. */
function handleInTurn() {
  let nextAt = 0
  return async ({ input: { n } }: { readonly input: Input }) => {
    nextAt = Math.max(nextAt + 1_000 / backlogRate, performance.now())
    await sleep(Math.max(0, nextAt - performance.now()))
    ended++
    return { n }
  }
}

// The compiler cannot determine the names of the tasks.
const handlers = Object.fromEntries(
  TASKS.map((task, i) => [
    task.name,
    defineHandler(task, import.meta.url, i < FLOWING ? handleFlowing : handleInTurn()),
  ]),
)
const pools = Object.fromEntries(TASKS.map(({ queue }, i) => [queue, i < FLOWING ? SLOTS.flowing : SLOTS.backlog]))
// Long tasks would write two lines each.
const config = { redisUrl, namespace, pools, port: 0, logLevel: 'warn' } as const
const worker = createWorker({ catalogue, handlers, config })
await worker.start()
reportReady(true, {
  take() {
    const tasks = ended
    ended = 0
    return { tasks, failed: 0, cpu: ownCpu(), enqueue: [], wait: waits.take(), end: [] }
  },
})
