// Runs one of the producers that the benchmark `enqueue` compares without HTTP: Bullpen's broker, or a BullMQ queue.
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { createRandomPool } from '@bullpen/engine/node'
import { Queue } from 'bullmq'
import { createMeter } from '../measuring/meter.ts'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { untilReachable } from '../measuring/reachable.ts'
import { catalogue, INPUT, SIZE_LIMIT, welcome } from './workload.ts'

export interface ProducerOptions {
  readonly producer: ProducerName
  readonly redisUrl: string
  readonly namespace: string
  /** How many calls are made at once. */
  readonly inFlight: number
}

/** How long a call waits for Redis, in ms. The peer waits forever, and a machine that is busy with other work ends no benchmark. */
const PATIENT_MS = 60_000

/** The producers. Each one connects, and returns the function that enqueues a task. */
const PRODUCERS = {
  async bullpen({ redisUrl, namespace }: ProducerOptions): Promise<() => Promise<unknown>> {
    // The peer doesn't load Bullpen's broker.
    const [{ openBroker }, { newTask }] = await Promise.all([
      import('@bullpen/bullmq'),
      import('@bullpen/engine/internal'),
    ])
    const log = { debug() {}, info() {}, warn() {}, error: console.error }
    const limits = { sizeLimit: SIZE_LIMIT, commandTimeoutMs: PATIENT_MS }
    const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, ...limits, log })
    await untilReachable(broker)
    const random = createRandomPool()
    return () => {
      const enqueuedAt = Date.now()
      const id = createTaskId(welcome.queue, enqueuedAt, random(ID_RANDOM_BYTES))
      return broker.enqueue(newTask(welcome, INPUT, {}, { id, enqueuedAt, caller: 'only', correlationId: undefined }))
    }
  },

  async bullmq({ redisUrl, namespace }: ProducerOptions): Promise<() => Promise<unknown>> {
    const queue = new Queue(welcome.queue, { connection: { url: redisUrl }, prefix: `{${namespace}}` })
    await queue.waitUntilReady()
    return () => queue.add(welcome.name, INPUT, { sizeLimit: SIZE_LIMIT })
  },
} as const satisfies Record<string, (options: ProducerOptions) => Promise<() => Promise<unknown>>>
export type ProducerName = keyof typeof PRODUCERS

const options = partOptions<ProducerOptions>()
const enqueue = await PRODUCERS[options.producer](options)
const meter = createMeter()

async function enqueueForever(): Promise<void> {
  for (;;) {
    const calledAt = performance.now()
    await enqueue()
    meter.count(calledAt, 1)
  }
}

for (let i = 0; i < options.inFlight; i++) void enqueueForever()
reportReady(true, {
  cpu: ownCpu,
  begin() {
    meter.begin()
    return true
  },
  end: meter.end,
})
