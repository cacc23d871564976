// Enqueues tasks at a constant rate over all queues of the benchmark `sustain`, over Redis, and waits for the results of some of them.
//
// The load is open: each task has a time at which it should be enqueued, whatever became of the tasks before it, and its times are counted
// from then. If the producer or Redis is late, the figures show it.
import { redis } from '@bullpen/bullmq'
import { createClient, ProblemError, ResultTimeoutError } from '@bullpen/client'
import { createLatencyHistogram } from '../measuring/latency-histogram.ts'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { catalogue, FLOWING, nowMs, type ProducerOptions, QUEUES, TASKS, TEXT } from './workload.ts'

/** How often the producer enqueues what is due, in ms. */
const TICK_MS = 5
/** One task in this many of the flowing queues has a caller that waits for its result. */
const AWAITED = 50
const LONGEST = '60s'

const { redisUrl, namespace, rate } = partOptions<ProducerOptions>()
const client = createClient({ transport: redis(redisUrl, { catalogue, namespace }) })
const enqueueTimes = createLatencyHistogram()
const endTimes = createLatencyHistogram()
let stored = 0
let failed = 0

/** Enqueues a task, and waits for its result if it is one of those that are awaited. A wrong result ends the benchmark. */
async function enqueue(n: number, at: number): Promise<void> {
  const task = TASKS[n % QUEUES]
  if (task === undefined) throw new RangeError(`there is no queue ${n % QUEUES}`)
  const handle = await client.enqueue(task, { at, n, text: TEXT })
  enqueueTimes.count(nowMs() - at)
  stored++
  const isAwaited = n % QUEUES < FLOWING && Math.floor(n / QUEUES) % AWAITED === 0
  if (!isAwaited) return
  const result = await handle.result({ timeout: LONGEST })
  if (result.n !== n) throw new RangeError(`the result of task ${handle.id} is ${result.n}; expected ${n}`)
  endTimes.count(nowMs() - at)
}

/** A call may fail if Redis does not respond in time. Anything else would make the figures worthless. */
function countFailure(error: unknown): void {
  if (!(error instanceof ProblemError || error instanceof ResultTimeoutError)) throw error
  failed++
}

function produce(): void {
  const beganAt = nowMs()
  let next = 0
  setInterval(() => {
    const due = ((nowMs() - beganAt) / 1_000) * rate
    for (; next < due; next++) enqueue(next, beganAt + (next / rate) * 1_000).catch(countFailure)
  }, TICK_MS)
}

reportReady(true, {
  begin() {
    produce()
    return true
  },
  take() {
    const counts = { tasks: stored, failed, cpu: ownCpu() }
    stored = 0
    failed = 0
    return { ...counts, enqueue: enqueueTimes.take(), wait: [], end: endTimes.take() }
  },
})
