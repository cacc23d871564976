// Runs the callers of the benchmark `http` in a process of their own. Each enqueues a task, waits for its result, and checks it.
import { createClient, http } from '@bullpen/client'
import { createMeter } from '../measuring/meter.ts'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { API_KEY, type CallersOptions, square } from './workload.ts'

/** A task that takes longer ends the benchmark with an error. */
const LONGEST = '30s'
/** The square of a larger number would not be exact. */
const NUMBERS = 1_000_000

const { url, callers } = partOptions<CallersOptions>()
const client = createClient({ transport: http(url, API_KEY) })
const meter = createMeter()
let last = 0

async function callForever(): Promise<void> {
  for (;;) {
    const n = last++ % NUMBERS
    const calledAt = performance.now()
    const task = await client.enqueue(square, { n })
    const { square: found } = await task.result({ timeout: LONGEST })
    if (found !== n * n) throw new Error(`the result of task ${task.id} is ${found}; expected ${n * n}`)
    meter.count(calledAt, 1)
  }
}

for (let i = 0; i < callers; i++) void callForever()
reportReady(true, {
  cpu: ownCpu,
  begin() {
    meter.begin()
    return true
  },
  end: meter.end,
})
