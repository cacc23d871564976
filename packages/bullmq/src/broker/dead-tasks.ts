// Retries and deletes dead tasks for a broker: one by its id, or all those that match a filter.
import { randomBytes } from 'node:crypto'
import { BullpenError } from '@bullpen/contract'
import { createTaskId, envelopeSchema, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import { editedEnvelope, type InputEdit } from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'
import { wakeLeader } from '../leader/leader.ts'
import {
  countMatching,
  parseDeadRequest,
  readDeadProgress,
  readDeadRequests,
  stopRequest,
} from '../queries/dead-tasks.ts'
import { runScript } from '../scripts/script.ts'
import { deleteTaskScript, retryTaskScript, storeDeadRequestScript } from '../store/scripts.ts'
import { type QueueAccess, queueReader } from './queue-handles.ts'

export interface DeadTasksOptions extends QueueAccess {
  /** The maximum size of one task's stored data, in bytes. */
  readonly sizeLimit: number
  readonly codec: PayloadCodec | undefined
}

/** How many requests a queue may have. The leader reads all of them in every turn. */
const MAX_REQUESTS = 100

export function createDeadTasks(
  options: DeadTasksOptions,
): Pick<
  Broker,
  'retry' | 'deleteDead' | 'countMatchingDead' | 'changeDead' | 'deadProgress' | 'stopDead' | 'listDeadRequests'
> {
  const { redis, namespace, queues, call, sizeLimit, codec, now } = options

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
    async retry(id, { request, by, edit, copy = '', afterCompensation = false }) {
      const home = queues.ofTask(id)
      if (home === undefined) return 'not_found'
      const { base, dead, job } = home.keys
      return call(async () => {
        const data = edit === undefined ? '' : await editedData(job(id), edit)
        if (data === undefined) return 'not_found'
        return runScript(
          redis,
          retryTaskScript,
          { job: job(id), dead },
          { base, id, request, by, data, copy, afterCompensation: afterCompensation ? '1' : '' },
        )
      })
    },

    async deleteDead(id) {
      const home = queues.ofTask(id)
      if (home === undefined) return 'not_found'
      const { base, dead, job } = home.keys
      return call(() => runScript(redis, deleteTaskScript, { job: job(id), dead }, { base, id }))
    },

    async countMatchingDead(filter) {
      const { keys } = queues.of(filter.queue)
      return countMatching(redis, keys, filter, call)
    },

    async changeDead(change) {
      const { queue } = change.filter
      const { keys } = queues.of(queue)
      const id = createTaskId(queue, now(), randomBytes(ID_RANDOM_BYTES))
      const request = JSON.stringify({ id, ...change }).slice(0, -1)
      const names = { ...keys, progress: keys.deadProgress(id) }
      const args = { id, request, limit: MAX_REQUESTS }
      const text = await call(() => runScript(redis, storeDeadRequestScript, names, args))
      if (text === null) {
        throw new BullpenError(
          'too_many_dead_task_requests',
          `queue '${queue}' already has ${MAX_REQUESTS} unfinished requests to retry or delete dead tasks, which is the maximum; retry when one of them is done, or send one request with a broader filter instead of several`,
        )
      }
      // If this message is lost, the leader notices the request in its next round.
      wakeLeader(redis, namespace, queue).catch(() => {})
      return parseDeadRequest(text) ?? { ...change, id, at: now() }
    },

    async deadProgress(id) {
      const home = queues.ofTask(id)
      return home && call(() => readDeadProgress(redis, home.keys, id))
    },

    async stopDead(id, by) {
      const home = queues.ofTask(id)
      return home && call(() => stopRequest(redis, home.keys, { id, by }))
    },

    listDeadRequests: queueReader(options)((keys, limit: number) => readDeadRequests(redis, keys, limit)),
  }
}
