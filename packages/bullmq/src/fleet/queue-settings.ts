// Stores the queue settings that apply to a queue's whole fleet: pause, drain, global concurrency, rate limit, circuit breakers, and the
// limits for unfinished tasks and API keys. The pause, the concurrency and the rate are stored in BullMQ's own fields in `meta`, so that
// BullMQ's fetch scripts apply them.
import {
  type ApiKeyLimits,
  type EnqueueRate,
  milliseconds,
  type OnShutdown,
  type QueueLimits,
  type StartRate,
} from '@bullpen/contract'
import { bytes, type CommandSpec } from '@bullpen/contract/internal'
import { definitionLimiter, permitsLimiter, type QueueSettings } from '@bullpen/engine/internal'
import type { ChainableCommander } from 'ioredis'
import { addBreakerReads, BREAKER_READS, breakerSettings, decodeBreakers } from '../breakers/stored-breaker.ts'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import {
  addKeyLimitReads,
  capacitySetting,
  decodeKeyLimits,
  KEY_LIMIT_READS,
  keyLimitSettings,
} from '../internals/turns/key-limits.ts'
import { addLimiterReads, decodeLimiters } from '../internals/turns/limiters/limiter-reads.ts'
import type { QueueKeys } from '../keys.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-bounds.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { applySettingsScript } from '../store/scripts.ts'

export interface StoredCommand {
  readonly id: string
  readonly spec: CommandSpec
  /** Who sent the command. */
  readonly by: string
  /** Whether the command also cancels the waiting tasks of its queue ({@link cancelsWaiting}). */
  readonly cancels?: boolean
  /** The command's position in the order of all commands. */
  readonly sequence: string
  /** The time in milliseconds since 1970 by Redis's clock. */
  readonly at: number
}

/** Returns whether a command only changes settings. No worker has to carry it out. */
export function isOfQueueOnly(spec: CommandSpec): spec is Extract<CommandSpec, { action: 'limit' | 'breaker' }> {
  return spec.action === 'limit' || spec.action === 'breaker'
}

/** Returns the queue whose settings a command changes, or undefined if the command does not change any settings. */
export function targetQueue(spec: CommandSpec): string | undefined {
  if (isOfQueueOnly(spec)) return spec.queue
  const ofFleet = spec.action === 'pause' || spec.action === 'resume' || spec.action === 'drain'
  return ofFleet && spec.worker === undefined ? spec.queue : undefined
}

/**
 * Returns whether a command also cancels the waiting tasks of its queue: if it drains the whole queue, the queue is defined with
 * `onShutdown: 'cancel'`, and the mode is not `light`. A light drain finishes the waiting tasks instead.
 */
export function cancelsWaiting(spec: CommandSpec, onShutdownOf: (queue: string) => OnShutdown): boolean {
  if (spec.action !== 'drain' || spec.mode === 'light') return false
  const queue = targetQueue(spec)
  return queue !== undefined && onShutdownOf(queue) === 'cancel'
}

/** Returns whether a command changes the settings of its queue or of an API key. */
export function changesSettings(spec: CommandSpec): boolean {
  return spec.action === 'limit' || targetQueue(spec) !== undefined
}

/**
 * Applies a command to its queue's settings. A command never overwrites a newer one, whichever is applied first. The call is
 * atomic and idempotent, and takes one round trip.
 */
export async function applySettings(redis: Commander, keys: QueueKeys, command: StoredCommand): Promise<void> {
  const args = { base: keys.base, sequence: command.sequence, mark: THROTTLE_MARK }
  await runScript(redis, applySettingsScript, keys, args, settingsOf(command))
}

/** Returns the names and values of the settings that a command changes. */
function settingsOf({ id, spec, by, at, cancels }: StoredCommand): string[] {
  switch (spec.action) {
    case 'pause':
      return ['paused', '1']
    case 'resume':
      return ['paused', '', 'drain', '']
    case 'drain': {
      const { mode, timeout } = spec
      const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout)
      return [
        'drain',
        JSON.stringify({ mode, timeoutMs, since: at, command: id, cancelledBy: cancels ? by : undefined }),
      ]
    }
    case 'limit': {
      const { concurrency, rate, maxTasks, maxBytes, maxAge, apiKeyName, enqueueRate, maxUnfinishedTasks } = spec
      if (spec.concurrencyKey !== undefined) {
        return keyLimitSettings({ concurrency, rate: rate && startRate(rate) }, spec.concurrencyKey)
      }
      if (spec.task !== undefined) {
        return concurrency === undefined ? [] : capacitySetting(definitionLimiter(spec.task), concurrency)
      }
      const { concurrencyPerKey, ratePerKey, permits = {} } = spec
      const settings = keyLimitSettings({ concurrency: concurrencyPerKey, rate: ratePerKey && startRate(ratePerKey) })
      settings.push(...Object.entries(permits).flatMap(([name, count]) => capacitySetting(permitsLimiter(name), count)))
      if (concurrency !== undefined) settings.push('concurrency', concurrency === 'none' ? '' : `${concurrency}`)
      if (rate !== undefined) settings.push('rate', encodeRate(rate))
      if (maxTasks !== undefined) settings.push('maxTasks', maxTasks === 'none' ? '' : `${maxTasks}`)
      if (maxBytes !== undefined) settings.push('maxBytes', maxBytes === 'none' ? '' : `${byteCount(maxBytes)}`)
      if (maxAge !== undefined) settings.push('maxAgeMs', maxAge === 'none' ? '' : `${milliseconds(maxAge)}`)
      if (enqueueRate !== undefined) settings.push(`enqueueRate:${apiKeyName}`, encodeRate(enqueueRate))
      if (maxUnfinishedTasks !== undefined) {
        settings.push(`maxUnfinishedTasks:${apiKeyName}`, maxUnfinishedTasks === 'none' ? '' : `${maxUnfinishedTasks}`)
      }
      return settings
    }
    case 'breaker':
      return breakerSettings(spec, by)
    default:
      return []
  }
}

type StartRateSpec = Exclude<Extract<CommandSpec, { action: 'limit' }>['ratePerKey'], undefined>

function startRate(rate: StartRateSpec): StartRate | 'none' {
  return rate === 'none' ? rate : { max: rate.max, perMs: milliseconds(rate.per), burst: rate.burst ?? 1 }
}

function byteCount(given: string | number): number {
  return typeof given === 'number' ? given : bytes(given, 'maxBytes')
}

/** The settings' fields that limit the waiting tasks. */
export const LIMIT_FIELDS = ['maxTasks', 'maxBytes', 'maxAgeMs'] as const satisfies readonly (keyof QueueLimits)[]

/** Decodes the values of {@link LIMIT_FIELDS}. Returns only the limits that a command has set. */
export function decodeLimits(stored: readonly (string | null | undefined)[]): QueueLimits {
  return Object.fromEntries(
    LIMIT_FIELDS.flatMap((field, i) => {
      const value = stored[i]
      return value == null ? [] : [[field, Number(value)]]
    }),
  )
}

/** Encodes a rate as it is stored. '' removes a setting. */
export function encodeRate(rate: 'none' | { readonly max: number; readonly per: string }): string {
  return rate === 'none' ? '' : `${rate.max}/${milliseconds(rate.per)}`
}

/** Decodes a stored rate. */
export function decodeRate(stored: string): EnqueueRate | undefined {
  const [, max, perMs] = /^(\d+)\/(\d+)$/.exec(stored) ?? []
  return perMs === undefined ? undefined : { max: Number(max), perMs: Number(perMs) }
}

/**
 * Decodes, from all of a queue's settings, the limits that commands have set for API keys, by the key's name. The name of such a
 * setting consists of the limit's name, a colon and the key's name.
 */
export function decodeApiKeyLimits(settings: Readonly<Record<string, string>>): ReadonlyMap<string, ApiKeyLimits> {
  const limits = new Map<string, ApiKeyLimits>()
  for (const [setting, stored] of Object.entries(settings)) {
    const [limit = '', apiKeyName = ''] = setting.split(':', 2)
    if (limit === 'enqueueRate') limits.set(apiKeyName, { ...limits.get(apiKeyName), enqueueRate: decodeRate(stored) })
    if (limit === 'maxUnfinishedTasks') {
      limits.set(apiKeyName, { ...limits.get(apiKeyName), maxUnfinishedTasks: Number(stored) })
    }
  }
  return limits
}

/** Adds the commands that read one queue's settings to a pipeline. */
export function addSettingsReads(pipeline: ChainableCommander, keys: QueueKeys): void {
  pipeline.hmget(keys.meta, 'paused', 'concurrency', 'max', 'duration').hmget(keys.settings, 'drain', ...LIMIT_FIELDS)
  addKeyLimitReads(pipeline, keys)
  addLimiterReads(pipeline, keys)
  addBreakerReads(pipeline, keys)
}

/** Decodes the replies to {@link addSettingsReads}. */
export function decodeSettings([meta, settings, ...limits]: readonly unknown[]): QueueSettings {
  const [paused, concurrency, max, duration] = meta as (string | null)[]
  const [drain, ...defined] = settings as (string | null)[]
  const { maxTasks, maxBytes, maxAgeMs } = decodeLimits(defined)
  const hasRate = max != null && max !== THROTTLE_MARK
  return {
    paused: paused != null && paused !== CLOSED_BY_OUTBOX,
    outboxFull: paused === CLOSED_BY_OUTBOX,
    drain: decodeDrain(drain),
    concurrency: concurrency == null ? undefined : Number(concurrency),
    rate: hasRate ? { max: Number(max), perMs: Number(duration) } : undefined,
    perConcurrencyKey: decodeKeyLimits(limits.slice(0, KEY_LIMIT_READS)),
    limiters: decodeLimiters(limits.slice(KEY_LIMIT_READS)),
    breakers: decodeBreakers(limits.slice(-BREAKER_READS)),
    maxTasks,
    maxBytes,
    maxAgeMs,
  }
}

/** Decodes the stored drain. */
export function decodeDrain(stored: unknown): QueueSettings['drain'] {
  if (typeof stored !== 'string') return undefined
  // JSON omits undefined fields. The leader reads who cancels the waiting tasks (../cancel/drained-queue.ts).
  const { mode, timeoutMs, since, command } = JSON.parse(stored) as NonNullable<QueueSettings['drain']>
  return { mode, timeoutMs, since, command }
}
