// The fleet on Redis: the registry of workers, and the commands that steer them.
import { BullpenError, type Log } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { Command, CommandRecord, Fleet, QueueSettings } from '@bullpen/engine/internal'
import type { ChainableCommander } from 'ioredis'
import { producerConnection, withCommandTimeout } from '../connection.ts'
import { fleetKeys, type QueueKeys, queueKeys } from '../keys.ts'
import { concerned, keepAnswer, keepCommand, readCommands } from './commands.ts'
import { followWakes, toProcess, toQueue } from './notifications.ts'
import {
  askSwitches,
  type KeptCommand,
  readSwitches,
  SWITCH_COMMANDS,
  setSwitches,
  switchedQueue,
} from './queue-settings.ts'
import { askBeat, leaveFleet, readBeat, readProcesses } from './registry.ts'
import { countRemaining } from './remaining.ts'

/** Who waits for answers also looks by itself this often, in ms: a silent worker tells nobody. */
const RECHECK_MS = 1_000

export interface FleetOptions {
  readonly redisUrl: string
  readonly namespace: string
  /** Those whose switches it may set and tell; a worker listens for these. */
  readonly queues: readonly string[]
  readonly log: Log
}

/**
 * Opens without waiting for Redis: until it is there, every call rejects with `redis_unavailable`. One connection for
 * commands, and one more for messages from the first `listen` or `answered` on.
 */
export function openFleet({ redisUrl, namespace, queues, log }: FleetOptions): Fleet {
  const redis = producerConnection(redisUrl, log)
  const keys = fleetKeys(namespace)
  const wakes = followWakes(redisUrl, keys, log)

  function keysOf(queue: string): QueueKeys {
    if (queues.includes(queue)) return queueKeys(namespace, queue)
    throw new BullpenError('queue_not_found', `the fleet knows no queue '${queue}'; known are ${queues.join(', ')}`)
  }

  /** One round trip, for all of them. */
  async function readAll(names: readonly string[], first?: (pipeline: ChainableCommander) => ChainableCommander) {
    const pipeline = redis.pipeline()
    first?.(pipeline)
    for (const queue of names) askSwitches(pipeline, keysOf(queue))
    const answers = ((await pipeline.exec()) ?? []).map(([error, answer]) => {
      if (error !== null) throw error
      return answer
    })
    const head = first === undefined ? undefined : answers.shift()
    const switches = new Map<string, QueueSettings>()
    names.forEach((queue, i) => {
      switches.set(queue, readSwitches(answers.slice(i * SWITCH_COMMANDS, (i + 1) * SWITCH_COMMANDS)))
    })
    return { head, switches }
  }

  /** From here on the switch is set, whoever goes away. */
  async function carryOut(command: KeptCommand): Promise<void> {
    const { id, spec } = command
    const queue = switchedQueue(spec)
    if (queue !== undefined) await setSwitches(redis, queueKeys(namespace, queue), command)
    const told = redis.pipeline()
    if (queue !== undefined) told.zrem(keys.unset, id)
    const { worker } = spec.action === 'limit' ? { worker: undefined } : spec
    const message = worker === undefined ? toQueue(spec.queue ?? '') : toProcess(worker)
    await told.publish(keys.wakes, message).exec()
  }

  async function send(asked: Omit<Command, 'at'>): Promise<CommandRecord> {
    const { spec } = asked
    if (spec.queue !== undefined) keysOf(spec.queue)
    const [known] = await readCommands(redis, keys, { id: asked.id })
    // One that was sent before is still for those that it was for then.
    const workers = known ? [] : concerned(asked, await readProcesses(redis, keys, '', log))
    await carryOut(await keepCommand(redis, keys, asked, workers))
    const [record] = await readCommands(redis, keys, { id: asked.id })
    if (record === undefined) throw new BullpenError('internal_error', `the command '${asked.id}' was not kept`)
    return bare(record)
  }

  const find = async (id: string): Promise<CommandRecord | undefined> => {
    const [record] = await readCommands(redis, keys, { id })
    return record && bare(record)
  }

  return {
    beat: (status) =>
      withCommandTimeout(
        (async () => {
          const names = [...new Set(status.pools.map(({ queue }) => queue))]
          const { head, switches } = await readAll(names, (pipeline) => askBeat(pipeline, keys, status))
          const { commands, unset } = readBeat(head)
          if (unset.length === 0) return { commands, switches }
          // Whoever sent these went away between two steps.
          for (const id of unset) {
            const [command] = await readCommands(redis, keys, { id })
            if (command !== undefined) await carryOut(command)
          }
          return { commands, switches: (await readAll(names)).switches }
        })(),
      ),

    leave: (worker) => withCommandTimeout(leaveFleet(redis, keys, worker)),

    answer: (command, answer) => withCommandTimeout(keepAnswer(redis, keys, command, answer)),

    listen(worker, wake) {
      const mine = new Set([toProcess(worker), ...queues.map(toQueue)])
      return wakes.listen(keys.wakes, (message) => {
        if (message === undefined || mine.has(message)) wake()
      })
    },

    workers: () => withCommandTimeout(readProcesses(redis, keys, 'slots', log)),

    switches: (queue) =>
      withCommandTimeout(readAll([queue]).then(({ switches }) => switches.get(queue) as QueueSettings)),

    remaining: (queue) => withCommandTimeout((async () => countRemaining(redis, keysOf(queue)))()),

    send: (command) => withCommandTimeout(send(command)),

    command: (id) => withCommandTimeout(find(id)),

    async answered(id, signal) {
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      signal.addEventListener('abort', wake)
      const recheck = setInterval(wake, RECHECK_MS)
      const stop = wakes.listen(keys.answers, (message) => {
        if (message === undefined || message === id) wake()
      })
      try {
        for (;;) {
          // Before the look, so that what happens during it is not missed.
          changed = Promise.withResolvers()
          const record = await withCommandTimeout(find(id))
          const isOver = record?.answers.every(({ outcome }) => outcome !== 'pending') ?? true
          if (isOver || signal.aborted) return record
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        clearInterval(recheck)
        stop()
      }
    },

    commands: (limit) =>
      withCommandTimeout(readCommands(redis, keys, { newest: limit }).then((records) => records.map(bare))),

    async close() {
      wakes.close()
      redis.disconnect()
    },
  }
}

function bare({ id, spec, by, at, answers }: CommandRecord & { readonly spec: CommandSpec }): CommandRecord {
  return { id, spec, by, at, answers }
}
