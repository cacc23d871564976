// Decides whether a queue currently accepts tasks, and which limits apply to it. The queues' settings are kept in memory, so that
// an enqueue takes no extra round trip.
//
// A queue's settings are read again when the fleet announces a change. A check every 2 s detects changes whose announcement was
// missed. Only producers check admission. A worker's broker uses OPEN_ADMISSION, because the worker's handlers may enqueue child
// tasks during a drain.
import { type ApiKeyLimits, BullpenError, type Log, type QueueLimits } from '@bullpen/contract'
import type { QueueSettings } from '@bullpen/engine/internal'
import { openNotifications, queueOf } from '../fleet/notifications.ts'
import { decodeApiKeyLimits, decodeDrain, decodeLimits, LIMIT_FIELDS } from '../fleet/queue-settings.ts'
import { fleetKeys, queueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

/** The limits of almost every queue. An enqueue recognises them by comparing references. */
const NO_LIMITS: QueueLimits = Object.freeze({})

interface ProducerSettings {
  readonly drain: QueueSettings['drain']
  /** The limits that commands have set, except the limits of API keys. */
  readonly limits: QueueLimits
  /** The limits of API keys that commands have set, by the key's name. */
  readonly apiKeyLimits: ReadonlyMap<string, ApiKeyLimits>
}

export interface Admission {
  /**
   * Returns undefined if the queue is known to accept tasks. If its settings must be read first, returns a promise that resolves
   * once the queue is known to accept tasks. The read takes one round trip, and one more for each notification that arrives
   * during a read.
   *
   * @throws BullpenError `queue_draining` if the queue is draining. The promise rejects with the same error.
   */
  admit(queue: string): Promise<void> | undefined
  /**
   * Returns undefined if the settings of these queues are known. Otherwise returns a promise that resolves once they have been read, as
   * {@link admit} reads them, whether or not the queues accept tasks.
   */
  ensureKnown(queues: readonly string[]): Promise<unknown> | undefined
  /**
   * Returns the limits that apply to an API key's requests in a queue whose settings have been read: those of the queue's definition,
   * unless a command has set others.
   */
  limitsOf(queue: string, defined: QueueLimits | undefined, apiKeyName: string | undefined): QueueLimits | undefined
  close(): void
}

/** An admission that accepts every task. */
export const OPEN_ADMISSION: Admission = {
  admit: () => undefined,
  ensureKnown: () => undefined,
  limitsOf: (_queue, defined) => defined,
  close: () => {},
}

/** How often the settings are checked for changes in case a notification was lost, in ms. */
const CHECK_EVERY_MS = 2_000
/** How often all settings are read even if no change was noticed, in ms. */
const READ_ALL_MS = 60_000

export interface AdmissionOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /** Returns undefined if the namespace is known to be compatible, and otherwise a promise that rejects if it is not. */
  readonly checkSchema: () => Promise<void> | undefined
  readonly log: Log
}

/** Opens an admission check. Its timer does not keep the process alive. */
export function openAdmission(options: AdmissionOptions): Admission {
  const { redis, redisUrl, namespace, queues, checkSchema, log } = options
  /** The settings as they were last read. */
  const settings = new Map<string, ProducerSettings>()
  /** The queues whose settings have not changed since, as far as is known. Those of any other queue must be read. */
  const known = new Set<string>()
  /** Incremented with each notification about a queue, so that the result of an older read is discarded. */
  const revisions = new Map<string, number>()
  const keys = fleetKeys(namespace)
  /** The revision that the last refresh read, and the time of that refresh on the monotonic clock. */
  let readRevision: string | null | undefined
  let readAt = Number.NEGATIVE_INFINITY
  const notifications = openNotifications(redisUrl, keys, log)

  const read = async (names: readonly string[]): Promise<void> => {
    const revisionsBefore = names.map((queue) => revisions.get(queue))
    const answers = await Promise.all(names.map((queue) => redis.hgetall(queueKeys(namespace, queue).settings)))
    names.forEach((queue, i) => {
      if (revisions.get(queue) !== revisionsBefore[i]) return
      settings.set(queue, decode(answers[i] ?? {}))
      known.add(queue)
    })
  }

  /** Reads a queue's settings. If a notification arrives during the read, its result is discarded and the read is repeated. */
  const readUntilKnown = async (queue: string): Promise<void> => {
    while (!known.has(queue)) await read([queue])
  }

  /** Reads the settings again if they have changed. Takes one or two round trips. */
  const refresh = async (): Promise<void> => {
    await checkSchema()
    const revision = await redis.get(keys.settingsRevision)
    const isRecent = performance.now() - readAt < READ_ALL_MS
    if (revision === readRevision && isRecent && queues.every((each) => known.has(each))) return
    await read(queues)
    readRevision = revision
    readAt = performance.now()
  }
  const logFailure = (err: unknown): void => log.debug({ err }, 'queue settings could not be read')
  // Each refresh ends before the next one begins, because a producer's command waits at most 0.8 s for its reply.
  const timer = setInterval(() => refresh().catch(logFailure), CHECK_EVERY_MS).unref()

  const invalidate = (names: readonly string[]): void => {
    for (const queue of names) {
      known.delete(queue)
      revisions.set(queue, (revisions.get(queue) ?? 0) + 1)
    }
    // If this read fails, the next enqueue or refresh reads the settings.
    read(names).catch(logFailure)
  }

  notifications.listen(keys.notifications, (message) => {
    const queue = message === undefined ? undefined : queueOf(message)
    if (message === undefined) invalidate(queues)
    else if (queue !== undefined && queues.includes(queue)) invalidate([queue])
  })

  return {
    admit(queue) {
      if (!known.has(queue)) return readUntilKnown(queue).then(() => assertOpen(queue, settings.get(queue)?.drain))
      assertOpen(queue, settings.get(queue)?.drain)
      return undefined
    },
    ensureKnown(names) {
      const unknown = names.filter((queue) => !known.has(queue))
      return unknown.length === 0 ? undefined : Promise.all(unknown.map(readUntilKnown))
    },
    limitsOf(queue, defined, apiKeyName) {
      // The settings may have changed since they were read. Until they have been read, the limits stay as they were.
      const { limits, apiKeyLimits } = settings.get(queue) ?? NO_SETTINGS
      const ofKey = apiKeyLimits.size === 0 ? undefined : apiKeyLimits.get(apiKeyName ?? '')
      if (limits === NO_LIMITS && ofKey === undefined) return defined
      return {
        ...defined,
        ...limits,
        perApiKey: ofKey === undefined ? defined?.perApiKey : { ...defined?.perApiKey, ...ofKey },
      }
    },
    close() {
      clearInterval(timer)
      notifications.close()
    },
  }
}

const NO_SETTINGS: ProducerSettings = { drain: undefined, limits: NO_LIMITS, apiKeyLimits: new Map() }

function decode(stored: Readonly<Record<string, string>>): ProducerSettings {
  const limits = decodeLimits(LIMIT_FIELDS.map((field) => stored[field]))
  return {
    drain: decodeDrain(stored['drain']),
    limits: Object.keys(limits).length === 0 ? NO_LIMITS : limits,
    apiKeyLimits: decodeApiKeyLimits(stored),
  }
}

function assertOpen(queue: string, drain: QueueSettings['drain']): void {
  if (drain === undefined) return
  const since = new Date(drain.since).toISOString()
  throw new BullpenError(
    'queue_draining',
    `queue '${queue}' is not accepting tasks: command ${drain.command} started to drain the queue's fleet (${drain.mode}) at ${since}`,
  )
}
