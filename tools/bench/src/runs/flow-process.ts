// Runs a flow of plain BullMQ over three queues, with one worker for each of them in this process, for the benchmark `runs`.
//
// A flow has a parent, whose children are the last stages of all items. A stage's child is the stage before it, so that BullMQ runs the
// stages of an item one after another and passes the results on.
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq'
import { reportDone } from './report-done.ts'
import { addOne, QUEUES, type RunLoad, SLOTS, sumOf } from './workload.ts'

const load = JSON.parse(process.argv[2] ?? '') as RunLoad
const { redisUrl, namespace: prefix, items, size } = load
const connection = { url: redisUrl, maxRetriesPerRequest: null }
const END = 'bench-end'
const opts = { removeOnComplete: true }

let sum = 0
const workers = QUEUES.map(
  (queue, n) =>
    new Worker<readonly number[]>(
      queue,
      async (job) => {
        const [before] = n === 0 ? [job.data] : Object.values(await job.getChildrenValues<readonly number[]>())
        const added = (before ?? []).map(addOne)
        if (n === QUEUES.length - 1) sum += sumOf(added)
        return added
      },
      { connection, prefix, concurrency: SLOTS },
    ),
)
const end = new Worker(END, async () => {}, { connection, prefix })
const endQueue = new Queue(END, { connection, prefix })
const events = new QueueEvents(END, { connection, prefix })
const producer = new FlowProducer({ connection, prefix })
await Promise.all([...workers, end, endQueue, events, producer].map((each) => each.waitUntilReady()))

type Flow = Parameters<FlowProducer['add']>[0]

/** Returns the jobs of one item, or of one batch, of which the last stage is the parent. */
function jobsFor(numbers: readonly number[]): Flow {
  return QUEUES.reduce<Flow | undefined>(
    (child, queueName, n) => ({
      name: 'add',
      queueName,
      data: n === 0 ? numbers : [],
      opts,
      ...(child === undefined ? {} : { children: [child] }),
    }),
    undefined,
  ) as Flow
}

await reportDone(load, async () => {
  const children: Flow[] = []
  for (let from = 0; from < items; from += size) {
    children.push(jobsFor(Array.from({ length: Math.min(size, items - from) }, (_, i) => from + i)))
  }
  const { job } = await producer.add({ name: 'end', queueName: END, opts: { removeOnComplete: false }, children })
  await job.waitUntilFinished(events)
  return sum
})
process.exit(0)
