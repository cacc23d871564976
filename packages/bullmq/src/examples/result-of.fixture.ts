// Waits for the result of a job. BullMQ's own `waitUntilFinished` may miss the end of a job that has just been added.
import { eventually } from '@bullpen/testkit'
import { type ConnectionOptions, Job, Queue } from 'bullmq'
import { onTestFinished } from 'vitest'

export function resultOf({ id = '', queueName }: Job, connection: ConnectionOptions): Promise<unknown> {
  const queue = new Queue(queueName, { connection })
  onTestFinished(() => queue.close())
  return eventually(async () => {
    const job = await Job.fromId(queue, id)
    return (await job?.isCompleted()) && job?.returnvalue
  })
}
