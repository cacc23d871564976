// Stores schedules in Redis, each under the hash tag of its task's queue, so that one script can enqueue a tick's task and move the
// schedule past the tick, even in a Redis Cluster.
import type { PayloadCodec } from '@bullpen/engine'
import {
  envelopeText,
  FORGET_EDITION_MS,
  followUpLines,
  KEEP_EDITIONS_MS,
  type ScheduleStore,
  type ScheduleWrite,
  type StoredSchedule,
} from '@bullpen/engine/internal'
import { queueKeys, scheduleEditionsKey } from '../keys.ts'
import { registeredQueues } from '../leader/queue-registry.ts'
import type { RedisAccess } from '../schema.ts'
import { pairsOf } from '../scripts/pairs.ts'
import { runScript } from '../scripts/script.ts'
import { NO_CONDITIONS, newTaskArguments } from '../store/new-task.ts'
import {
  declareSchedulesScript,
  readSchedulesScript,
  runScheduleScript,
  writeScheduleScript,
} from '../store/scripts.ts'
import { lastStatuses } from './run-statuses.ts'
import { encodeRecord, parseStored } from './stored-record.ts'
import { readTroubleCounts } from './trouble-watch.ts'

export interface ScheduleStoreOptions extends RedisAccess {
  /** The queues of this process's catalogue, in case Redis has lost the registry of the namespace's queues. */
  readonly queues: readonly string[]
  readonly codec: PayloadCodec | undefined
}

export function createScheduleStore(options: ScheduleStoreOptions): ScheduleStore {
  const { redis, namespace, queues, codec, call } = options
  const editions = scheduleEditionsKey(namespace)
  const read = async (queue: string, within: number | '') => {
    const keys = queueKeys(namespace, queue)
    const [now, texts] = await call(() => runScript(redis, readSchedulesScript, keys, { within }))
    const found = texts.flatMap((text) => {
      const record = text === null ? undefined : parseStored(text, codec)
      return text === null || record === undefined ? [] : [{ token: text.slice(0, text.indexOf(' ')), record }]
    })
    const records = found.map(({ record }) => record)
    const statuses = await call(() => lastStatuses(redis, keys, records))
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

  const write = (change: ScheduleWrite): ReturnType<ScheduleStore['write']> => {
    const { queue, name, expected = '', token, record, wakeAt = '', add, notBefore = '' } = change
    const keys = queueKeys(namespace, queue)
    const args = { name, expected, token, record: encodeRecord(record, codec), wakeAt, notBefore }
    if (add === undefined) return call(() => runScript(redis, writeScheduleScript, keys, args))
    const { base } = keys
    // The task of a tick is not subject to the queue's limits.
    const stored = { data: envelopeText(add, codec), followUps: followUpLines(add.followUps, codec) }
    const task = newTaskArguments(add, stored, NO_CONDITIONS)
    return call(() => runScript(redis, runScheduleScript, keys, { ...args, base }, task))
  }

  return {
    async now(queue) {
      const [now] = await call(() => runScript(redis, readSchedulesScript, queueKeys(namespace, queue), { within: 0 }))
      return now
    },
    async all() {
      const registered = await call(() => registeredQueues(redis, namespace))
      const names = new Set([...queues, ...registered.map(({ name }) => name)])
      const found = [...names].map((queue) => read(queue, ''))
      return (await Promise.all(found)).flatMap(({ schedules }) => schedules)
    },
    async due(queue, withinMs) {
      const { now, schedules } = await read(queue, withinMs)
      const [unreadable] = schedules.flatMap(({ record: { name, unreadableInput } }) =>
        unreadableInput === undefined
          ? []
          : [new Error(`the input of schedule '${name}' cannot be decoded: ${unreadableInput.reason}`)],
      )
      return {
        now,
        schedules: schedules.filter(({ record }) => record.unreadableInput === undefined),
        ...(unreadable !== undefined && { unreadable }),
      }
    },
    write,
    async declare(own) {
      const args = { forgetMs: FORGET_EDITION_MS, keepMs: KEEP_EDITIONS_MS }
      const pairs = own.flatMap(({ name, digest }) => [name, digest])
      const flat = await call(() => runScript(redis, declareSchedulesScript, { editions }, args, pairs))
      return new Map(pairsOf(flat))
    },
    async stored({ name, digest }) {
      await call(() => redis.hset(editions, name, digest))
    },
    troubles: (queue) => call(() => readTroubleCounts(redis, queueKeys(namespace, queue))),
  }
}
