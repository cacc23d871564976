// Waits for the result of a job. BullMQ's own `waitUntilFinished` may miss the end of a job that has just been added.
import { eventually } from '@bullpen/testkit'
import { Job, Queue, type QueueOptions } from 'bullmq'
import { onTestFinished } from 'vitest'

export function resultOf({ id = '', queueName }: Job, options: QueueOptions): Promise<unknown> {
  const queue = new Queue(queueName, options)
  onTestFinished(() => queue.close())
  return eventually(async () => {
    const job = await Job.fromId(queue, id)
    return (await job?.isCompleted()) && job?.returnvalue
  })
}
