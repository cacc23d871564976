// Stores schedules in Redis, each under the hash tag of its task's queue, so that one script can enqueue a tick's task and move the
// schedule past the tick, even in a Redis Cluster.
import type { TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask, PayloadCodec } from '@bullpen/engine'
import {
  decodePayload,
  encodePayload,
  type ScheduleRecord,
  type ScheduleStore,
  type ScheduleWrite,
  type StoredSchedule,
  storedEnvelope,
} from '@bullpen/engine/internal'
import type { Queue, RedisQueueBackend } from 'bullmq'
import { openQueue } from '../broker/queue-handles.ts'
import { parseJson } from '../codec.ts'
import { collectAdds } from '../internals/composition/add-all-jobs.ts'
import { queueKeys } from '../keys.ts'
import { registeredQueues } from '../leader/queue-registry.ts'
import { readTogether } from '../queries/read-together.ts'
import { addStateReads, decodeState, STATE_READS } from '../queries/task-state.ts'
import { readSchedulesScript, type StoredText } from '../scripts/schedules/read-schedules.ts'
import { runScheduleScript } from '../scripts/schedules/run-schedule.ts'
import { writeScheduleScript } from '../scripts/schedules/write-schedule.ts'
import { type Commander, runScript } from '../scripts/script.ts'

export interface ScheduleStoreOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The queues of this process's catalogue, in case Redis has lost the registry of the namespace's queues. */
  readonly queues: readonly string[]
  readonly now: () => number
  readonly codec: PayloadCodec | undefined
  /** Runs a command once the namespace is known to be compatible, and limits how long the caller waits for the reply. */
  readonly call: <T>(run: () => Promise<T>) => Promise<T>
}

export interface RedisScheduleStore extends ScheduleStore {
  close(): Promise<void>
}

export function openScheduleStore(options: ScheduleStoreOptions): RedisScheduleStore {
  const { redis, namespace, queues, codec, call } = options
  /** BullMQ's objects for the queues to which this process has added tasks. */
  const opened = new Map<string, Queue>()

  const backendOf = (name: string): RedisQueueBackend => {
    const queue = opened.get(name) ?? openQueue(name, options)
    opened.set(name, queue)
    return queue.getBackend()
  }

  const read = async (queue: string, within: number | '') => {
    const keys = queueKeys(namespace, queue)
    const { now, schedules: texts } = await call(() => runScript(redis, readSchedulesScript, keys, { within }))
    const found = texts.flatMap((text) => decodeStored(text, codec))
    const statuses = await statusesOf(
      queue,
      found.flatMap(({ record: { lastRun } }) => (lastRun === undefined ? [] : [lastRun.id])),
    )
    const schedules = found.map(
      ({ record, token }): StoredSchedule => ({
        record,
        token,
        now,
        lastStatus: statuses.get(record.lastRun?.id ?? ''),
      }),
    )
    return { now, schedules }
  }

  const statusesOf = async (queue: string, ids: readonly TaskId[]): Promise<ReadonlyMap<string, TaskStatus>> => {
    if (ids.length === 0) return new Map()
    const keys = queueKeys(namespace, queue)
    const answers = await call(() =>
      readTogether(redis, (reads) => {
        for (const id of ids) addStateReads(reads, keys, id)
      }),
    )
    const entries = ids.flatMap((id, i): (readonly [string, TaskStatus])[] => {
      const state = decodeState(id, queue, answers.slice(i * STATE_READS, (i + 1) * STATE_READS), () => undefined)
      return state === undefined ? [] : [[id, state.status]]
    })
    return new Map(entries)
  }

  const write = (change: ScheduleWrite): ReturnType<ScheduleStore['write']> => {
    const { queue, name, expected = '', token, record, wakeAt = '', add, notBefore = '' } = change
    const keys = queueKeys(namespace, queue)
    const args = { name, expected, token, record: encodeRecord(record, codec), wakeAt, notBefore }
    if (add === undefined) return call(() => runScript(redis, writeScheduleScript, keys, args))
    const { base, script, keys: bullmqKeys, args: more } = addOf(backendOf(queue), add, codec)
    const adding = { ...args, base, script, keys: JSON.stringify(bullmqKeys) }
    return call(() => runScript(redis, runScheduleScript, keys, adding, more))
  }

  return {
    now: async (queue) =>
      (await call(() => runScript(redis, readSchedulesScript, queueKeys(namespace, queue), { within: 0 }))).now,
    async all() {
      const registered = await call(() => registeredQueues(redis, namespace))
      const names = new Set([...queues, ...registered.map(({ name }) => name)])
      return (await Promise.all([...names].map((queue) => read(queue, '')))).flatMap(({ schedules }) => schedules)
    },
    due: (queue, withinMs) => read(queue, withinMs),
    write,
    async close() {
      await Promise.allSettled([...opened.values()].map((queue) => queue.close()))
    },
  }
}

/** Returns what BullMQ would send to add this task. A schedule's task is not subject to the queue's limits. */
function addOf(backend: RedisQueueBackend, task: NewTask, codec: PayloadCodec | undefined) {
  const data = JSON.stringify(storedEnvelope(task, codec))
  const admitted = { expectedStartAt: undefined, onNotStored: undefined, noRoom: undefined }
  const [add] = collectAdds(backend, { task, data, admitted })
  if (add === undefined) throw new Error('BullMQ has sent no script to add the task')
  return add
}

/** With a codec, the input is stored encoded, like that of a task. */
function encodeRecord(record: ScheduleRecord | undefined, codec: PayloadCodec | undefined): string {
  if (record === undefined) return ''
  if (codec === undefined) return JSON.stringify(record)
  const { input, ...template } = record.template
  return JSON.stringify({ ...record, template, encodedInput: encodePayload(input, codec) })
}

/** @throws Error if the input was encoded by a codec that this process does not have. */
function decodeStored(
  { token, record: text }: StoredText,
  codec: PayloadCodec | undefined,
): readonly { readonly token: string; readonly record: ScheduleRecord }[] {
  const parsed = parseJson(text)
  if (!isRecord(parsed)) return []
  const { encodedInput, ...record } = parsed
  if (encodedInput === undefined) return [{ token, record }]
  return [{ token, record: { ...record, template: { ...record.template, input: decodePayload(encodedInput, codec) } } }]
}

/** Only Bullpen writes these records, so their fields are not checked one by one. */
function isRecord(value: unknown): value is ScheduleRecord & { readonly encodedInput?: unknown } {
  return typeof value === 'object' && value !== null && 'cadence' in value && 'template' in value && 'cursor' in value
}
