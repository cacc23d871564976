// Intake: whether a queue takes new tasks, kept in memory, so that a task costs no question of its own.
import { BullpenError, type Log } from '@bullpen/contract'
import type { QueueSettings } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { followWakes, queueOf } from '../fleet/notifications.ts'
import { readDrain } from '../fleet/queue-settings.ts'
import { fleetKeys, queueKeys } from '../keys.ts'

type Drain = QueueSettings['drain']

export interface Admission {
  /**
   * Undefined, or a promise to wait for: what is not known is asked. One round trip then, and none otherwise.
   *
   * @throws BullpenError `queue_draining`.
   */
  admit(queue: string): Promise<void> | undefined
  /** Asks anew, for what no message has told. One round trip. */
  refresh(): Promise<void>
  close(): void
}

export const OPEN_ADMISSION: Admission = { admit: () => undefined, refresh: async () => {}, close: () => {} }

interface IntakeOptions {
  readonly redis: Redis
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  readonly log: Log
}

export function openAdmission({ redis, redisUrl, namespace, queues, log }: IntakeOptions): Admission {
  /** What is not in it is not known. */
  const known = new Map<string, Drain>()
  /** How often something was told of a queue: an answer to an older question is not believed. */
  const changes = new Map<string, number>()
  const keys = fleetKeys(namespace)
  const wakes = followWakes(redisUrl, keys, log)

  const ask = async (names: readonly string[]): Promise<void> => {
    const asked = names.map((queue) => changes.get(queue))
    const pipeline = redis.pipeline()
    for (const queue of names) pipeline.hget(queueKeys(namespace, queue).switches, 'drain')
    const answers = (await pipeline.exec()) ?? []
    names.forEach((queue, i) => {
      const [error, answer] = answers[i] ?? [new Error('no answer')]
      if (error !== null) throw error
      if (changes.get(queue) === asked[i]) known.set(queue, readDrain(answer))
    })
  }

  const forget = (names: readonly string[]): void => {
    for (const queue of names) {
      known.delete(queue)
      changes.set(queue, (changes.get(queue) ?? 0) + 1)
    }
    // Where it fails, the next task asks, or the next refresh.
    ask(names).catch((err: unknown) => log.debug({ err }, 'whether the intake is open is not known'))
  }

  wakes.listen(keys.wakes, (message) => {
    const queue = message === undefined ? undefined : queueOf(message)
    if (message === undefined) forget(queues)
    else if (queue !== undefined && queues.includes(queue)) forget([queue])
  })

  return {
    admit(queue) {
      if (!known.has(queue)) return ask([queue]).then(() => refuse(queue, known.get(queue)))
      refuse(queue, known.get(queue))
      return undefined
    },
    refresh: () => ask(queues),
    close: () => wakes.close(),
  }
}

function refuse(queue: string, drain: Drain): void {
  if (drain === undefined) return
  const since = new Date(drain.since).toISOString()
  throw new BullpenError(
    'queue_draining',
    `the queue '${queue}' takes no tasks: its fleet drains since ${since} (${drain.mode}), by the command ${drain.command}`,
  )
}
