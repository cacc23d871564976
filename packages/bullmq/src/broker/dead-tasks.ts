// Retries and deletes dead tasks for a broker.
import { BullpenError } from '@bullpen/contract'
import { envelopeSchema } from '@bullpen/contract/internal'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import { editedEnvelope, type InputEdit } from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'
import { deleteTask } from '../scripts/dead/delete-task.ts'
import { retryTask } from '../scripts/dead/retry-task.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import type { QueueTable } from './queue-handles.ts'

export interface DeadTasksOptions {
  readonly redis: Commander
  readonly queues: QueueTable
  /** Runs a command once the namespace is known to be compatible, and limits how long the caller waits for the reply. */
  readonly call: <T>(run: () => Promise<T>) => Promise<T>
  /** The maximum size of one task's stored data, in bytes. */
  readonly sizeLimit: number
  readonly codec: PayloadCodec | undefined
}

export function createDeadTasks(options: DeadTasksOptions): Pick<Broker, 'retry' | 'deleteDead'> {
  const { redis, queues, call, sizeLimit, codec } = options

  /**
   * Returns the string to store in place of the task's data, or undefined if the task does not exist.
   *
   * @throws BullpenError `payload_too_large`, or `unreadable_envelope` if the task was not enqueued by Bullpen.
   */
  async function editedData(job: string, edit: InputEdit): Promise<string | undefined> {
    const stored = await redis.hget(job, 'data')
    if (stored === null) return undefined
    const envelope = envelopeSchema.safeParse(parseJson(stored))
    if (!envelope.success) {
      throw new BullpenError(
        'unreadable_envelope',
        'the input of a task that Bullpen has not enqueued cannot be replaced; retry the task without a new input',
      )
    }
    const data = JSON.stringify(editedEnvelope(envelope.data, edit, codec))
    const bytes = Buffer.byteLength(data)
    if (bytes <= sizeLimit) return data
    throw new BullpenError(
      'payload_too_large',
      `the task would take ${bytes} bytes in Redis; the limit is ${sizeLimit} bytes`,
    )
  }

  return {
    async retry(id, { request, by, edit }) {
      const home = queues.ofTask(id)
      if (home === undefined) return 'not_found'
      const { base, dead, job } = home.keys
      return call(async () => {
        const data = edit === undefined ? '' : await editedData(job(id), edit)
        if (data === undefined) return 'not_found'
        return runScript(redis, retryTask, { job: job(id), dead }, { base, id, request, by, data })
      })
    },

    async deleteDead(id) {
      const home = queues.ofTask(id)
      if (home === undefined) return 'not_found'
      const { base, dead, job } = home.keys
      return call(() => runScript(redis, deleteTask, { job: job(id), dead }, { base, id }))
    },
  }
}
