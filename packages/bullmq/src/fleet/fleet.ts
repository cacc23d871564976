// Implements the fleet on Redis: the registry of workers, the commands that control them, and their queues' settings.
//
// A command takes the following path. `send` stores the command together with its recipients (commands.ts): the worker that it
// names, or every live worker with a pool on its queue. Two commands with the same id are the same command. If their contents
// differ, the second one is refused, as is a command for a worker that is unknown or silent. `send` then applies the command to
// its queue's settings (queue-settings.ts). One script marks the command as applied, increments the revision of the settings, and
// publishes a notification. A notified worker sends a heartbeat and receives its commands and the revision in reply
// (registry.ts). The worker reads the settings if the revision has changed, and also once a minute. It executes the commands and
// stores its response, which wakes the sender. Only a worker's first response counts, and a worker that falls silent counts as
// `gone`. If the sender dies before the settings are applied, any worker's next heartbeat applies them. If the queue's definition says
// that a drain cancels the waiting tasks, that is stored with the command, and the leader does it (../cancel/drained-queue.ts).
import { BullpenError, type Log, type OnShutdown } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { CommandRecord, Fleet, QueueSettings } from '@bullpen/engine/internal'
import { producerConnection, redisErrors } from '../connection.ts'
import { rateCommandIn, storeEnqueueRate } from '../enqueue-rates/commanded-rates.ts'
import { fleetKeys, type QueueKeys, queueKeys } from '../keys.ts'
import { wakeLeader } from '../leader/leader.ts'
import { countRemaining } from '../queries/counts.ts'
import { answersOf } from '../queries/read-together.ts'
import type { ConnectionWatch } from '../redis/connection-watch.ts'
import { createSchemaGuard } from '../schema.ts'
import { runScript } from '../scripts/script.ts'
import { announceCommandScript } from '../store/scripts.ts'
import { type NewCommand, readCommand, readCommands, recipientsOf, storeCommand, storeResponse } from './commands.ts'
import { readLimitSettings } from './limit-settings.ts'
import { FLEET_MESSAGE, openNotifications, queueMessage, workerMessage } from './notifications.ts'
import {
  addSettingsReads,
  applySettings,
  cancelsWaiting,
  changesSettings,
  decodeSettings,
  isOfQueueOnly,
  type StoredCommand,
  targetQueue,
} from './queue-settings.ts'
import { decodeLogLevel, leaveFleet, readWorkers, storeHeartbeat } from './registry.ts'

/**
 * How often a command is read again while a caller waits for its responses, in ms. Messages are not enough, because a worker that
 * falls silent does not publish one.
 */
const RECHECK_MS = 1_000

/** How often a worker reads its queues' settings even if no change was announced, in ms. */
const READ_SETTINGS_MS = 60_000

export interface FleetOptions {
  readonly redisUrl: string
  readonly namespace: string
  /** The queues whose settings this fleet may read and change. */
  readonly queues: readonly string[]
  /** All of the catalogue's queues, which are checked for data that another version wrote. Defaults to `queues`. */
  readonly catalogueQueues?: readonly string[]
  /** What a queue's definition says about a drain of the whole queue. A process that sends commands must set it. Defaults to 'keep'. */
  readonly onShutdownOf?: (queue: string) => OnShutdown
  /** Watches the connection for the process's metrics. By default, nothing is measured. */
  readonly watch?: ConnectionWatch | undefined
  /** How long a command waits for its reply, in ms. Defaults to 800. Tests of something else set it, so that a busy machine fails none. */
  readonly commandTimeoutMs?: number
  readonly log: Log
}

/**
 * Opens the fleet, without waiting for Redis. Until Redis is reachable, every call rejects with `redis_unavailable`. The fleet
 * uses one connection for commands, and opens a second one for notifications when `listen` or `awaitResponses` is first called.
 *
 * @throws BullpenError `incompatible_schema`, from every call, if an incompatible version of Bullpen wrote the namespace.
 */
export function openFleet(options: FleetOptions): Fleet {
  const { redisUrl, namespace, queues, catalogueQueues = queues, onShutdownOf = () => 'keep', log } = options
  const redis = producerConnection(redisUrl, log, options.watch, options.commandTimeoutMs)
  const withRedisErrors = redisErrors(redisUrl)
  const schema = createSchemaGuard(redis, namespace, catalogueQueues)
  const keys = fleetKeys(namespace)
  const notifications = openNotifications(redisUrl, keys, log)

  const call = <T>(run: () => Promise<T>): Promise<T> =>
    withRedisErrors((schema.check() ?? Promise.resolve()).then(run))

  function keysOf(queue: string): QueueKeys {
    if (queues.includes(queue)) return queueKeys(namespace, queue)
    throw new BullpenError('queue_not_found', `unknown queue '${queue}'; the queues are ${queues.join(', ')}`)
  }

  /**
   * Reads the settings of several queues. Takes one round trip. Each queue has its own pipeline, because a cluster may keep the
   * queues on different nodes.
   */
  async function readSettings(names: readonly string[]): Promise<ReadonlyMap<string, QueueSettings>> {
    const settings = names.map(async (queue) => {
      const pipeline = redis.pipeline()
      addSettingsReads(pipeline, keysOf(queue))
      return [queue, decodeSettings(answersOf(await pipeline.exec()))] as const
    })
    return new Map(await Promise.all(settings))
  }

  /** The settings that heartbeats have returned, with the revision and the time of the last read. */
  let known:
    | { readonly revision: string; readonly readAt: number; readonly settings: ReadonlyMap<string, QueueSettings> }
    | undefined

  async function applyAndNotify(command: StoredCommand): Promise<void> {
    const { id, spec } = command
    const queue = targetQueue(spec)
    const rate = rateCommandIn(spec)
    if (queue !== undefined) await applySettings(redis, queueKeys(namespace, queue), command)
    if (rate !== undefined) await storeEnqueueRate(redis, keys, rate, command.sequence)
    const worker = isOfQueueOnly(spec) ? undefined : spec.worker
    const message = worker === undefined ? fleetMessage(spec.queue) : workerMessage(worker)
    const hasChanged = changesSettings(spec) ? '1' : ''
    await runScript(redis, announceCommandScript, keys, { id, hasChanged, channel: keys.notifications, message })
    // If this message is lost, the leader notices the drain in its next round.
    if (command.cancels && queue !== undefined) wakeLeader(redis, namespace, queue).catch(() => {})
  }

  async function send(command: NewCommand): Promise<CommandRecord> {
    const { id, spec } = command
    if (spec.queue !== undefined) keysOf(spec.queue)
    const known = await readCommand(redis, keys, id)
    // A command that is sent again keeps its original recipients.
    const workers = known ? [] : recipientsOf(command, await readWorkers(redis, keys, '', log))
    const cancels = cancelsWaiting(spec, onShutdownOf)
    await applyAndNotify(await storeCommand(redis, keys, { ...command, cancels }, workers))
    const record = await readCommand(redis, keys, id)
    if (record === undefined) throw new BullpenError('internal_error', `command '${id}' was stored but can't be found`)
    return toRecord(record)
  }

  const find = async (id: string): Promise<CommandRecord | undefined> => {
    const record = await readCommand(redis, keys, id)
    return record && toRecord(record)
  }

  return {
    heartbeat: (status) =>
      call(async () => {
        const names = [...new Set(status.pools.map(({ queue }) => queue))]
        const { commands, unapplied, revision, logLevel } = await storeHeartbeat(redis, keys, status)
        for (const id of unapplied) {
          const command = await readCommand(redis, keys, id)
          if (command !== undefined) await applyAndNotify(command)
        }
        const isKnown = known !== undefined && names.every((name) => known?.settings.has(name))
        const isRecent = performance.now() - (known?.readAt ?? 0) < READ_SETTINGS_MS
        if (!isKnown || !isRecent || known?.revision !== revision || unapplied.length > 0) {
          // The settings are read last, so that they include the commands' changes.
          known = { revision, readAt: performance.now(), settings: await readSettings(names) }
        }
        return { commands, queueSettings: known.settings, logLevel }
      }),

    leave: (worker) => call(() => leaveFleet(redis, keys, worker)),

    respond: (command, response) => call(() => storeResponse(redis, keys, command, response)),

    listen(worker, wake) {
      const relevant = new Set([FLEET_MESSAGE, workerMessage(worker), ...queues.map(queueMessage)])
      return notifications.listen(keys.notifications, (message) => {
        if (message === undefined || relevant.has(message)) wake()
      })
    },

    workers: () => call(() => readWorkers(redis, keys, 'slots', log)),

    queueSettings: (queue) =>
      call(async () => {
        const settings = await readSettings([queue])
        return settings.get(queue) as QueueSettings
      }),

    limitSettings: (queue, apiKeyNames) => call(async () => readLimitSettings(redis, keysOf(queue), apiKeyNames)),

    logLevel: () => call(async () => decodeLogLevel(await redis.get(keys.logLevel))),

    remaining: (queue) => call(async () => countRemaining(redis, keysOf(queue))),

    send: (command) => call(() => send(command)),

    command: (id) => call(() => find(id)),

    async awaitResponses(id, signal) {
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      signal.addEventListener('abort', wake)
      const recheck = setInterval(wake, RECHECK_MS)
      const stopListening = notifications.listen(keys.responses, (message) => {
        if (message === undefined || message === id) wake()
      })
      try {
        for (;;) {
          // Created before the read, so that a response during the read is not missed.
          changed = Promise.withResolvers()
          const record = await call(() => find(id))
          const haveAllResponded = record?.responses.every(({ outcome }) => outcome !== 'pending') ?? true
          if (haveAllResponded || signal.aborted) return record
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        clearInterval(recheck)
        stopListening()
      }
    },

    commands: (limit) =>
      call(async () => {
        const records = await readCommands(redis, keys, limit)
        return records.map(toRecord)
      }),

    async close() {
      notifications.close()
      redis.disconnect()
    },
  }
}

/** Returns the message for all workers of a queue, or of the namespace if the command names no queue. */
function fleetMessage(queue: string | undefined): string {
  return queue === undefined ? FLEET_MESSAGE : queueMessage(queue)
}

function toRecord({ id, spec, by, at, responses }: CommandRecord & { readonly spec: CommandSpec }): CommandRecord {
  return { id, spec, by, at, responses }
}
