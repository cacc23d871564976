// The settings of a queue that apply to its whole fleet: pause, drain, global concurrency and rate limit. The pause and the
// limits are stored in BullMQ's own fields in `meta`, so that BullMQ's fetch scripts apply them.
import { milliseconds } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { QueueSettings } from '@bullpen/engine/internal'
import type { ChainableCommander, Redis } from 'ioredis'
import { DELAYED_SCORE_STEP } from '../internals/places.ts'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import type { QueueKeys } from '../keys.ts'

/** How many commands {@link addSettingsReads} adds. */
export const SETTINGS_READS = 2

/**
 * KEYS: settings, meta, marker, wait, prioritized, delayed, events, limiter. ARGV: the command's sequence number, the mark of a
 * throttle, the step of a delayed score, and then the names and values of the settings, where '' removes a setting. Returns
 * nothing.
 *
 * An older command never overwrites a newer one, whichever is applied first. Pause and resume have the same effect as BullMQ's
 * own. A change that may let tasks start adds BullMQ's wake marker, because workers that were refused a task are waiting for it.
 */
const SET = `
local sequence, mark, score_step = ARGV[1], ARGV[2], tonumber(ARGV[3])
local lifted = false
local function isNewest(name)
  if tonumber(redis.call('HGET', KEYS[1], 'sequence:' .. name) or '0') >= tonumber(sequence) then return false end
  redis.call('HSET', KEYS[1], 'sequence:' .. name, sequence)
  return true
end
local set = {}
function set.paused(value)
  if value == '' then
    lifted = true
    if redis.call('HDEL', KEYS[2], 'paused') == 1 then redis.call('XADD', KEYS[7], '*', 'event', 'resumed') end
  else
    redis.call('HSET', KEYS[2], 'paused', 1)
    redis.call('DEL', KEYS[3])
    redis.call('XADD', KEYS[7], '*', 'event', 'paused')
  end
end
function set.drain(value)
  if value == '' then redis.call('HDEL', KEYS[1], 'drain') else redis.call('HSET', KEYS[1], 'drain', value) end
end
function set.concurrency(value)
  lifted = true
  if value == '' then redis.call('HDEL', KEYS[2], 'concurrency') else redis.call('HSET', KEYS[2], 'concurrency', value) end
end
function set.rate(value)
  lifted = true
  if value ~= '' then
    local max, duration = string.match(value, '^(%d+)/(%d+)$')
    redis.call('HSET', KEYS[2], 'max', max, 'duration', duration)
  elseif redis.call('GET', KEYS[8]) == mark then
    redis.call('HSET', KEYS[2], 'max', mark, 'duration', 1)
  else
    redis.call('HDEL', KEYS[2], 'max', 'duration')
  end
end
for i = 4, #ARGV, 2 do
  if isNewest(ARGV[i]) then set[ARGV[i]](ARGV[i + 1]) end
end
if lifted and redis.call('HEXISTS', KEYS[2], 'paused') == 0 then
  if redis.call('LLEN', KEYS[4]) + redis.call('ZCARD', KEYS[5]) > 0 then
    redis.call('ZADD', KEYS[3], 0, '0')
  else
    local due = redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')
    if due[2] then redis.call('ZADD', KEYS[3], tonumber(due[2]) / score_step, '1') end
  end
end
`

export interface StoredCommand {
  readonly id: string
  readonly spec: CommandSpec
  /** The command's position in the order of all commands. */
  readonly sequence: string
  /** The time in milliseconds since 1970 by Redis's clock. */
  readonly at: number
}

/** Returns the queue whose settings a command changes, or undefined if it changes none. */
export function targetQueue(spec: CommandSpec): string | undefined {
  if (spec.action === 'limit') return spec.queue
  const ofFleet = spec.action === 'pause' || spec.action === 'resume' || spec.action === 'drain'
  return ofFleet && spec.worker === undefined ? spec.queue : undefined
}

/** Applies a command to the settings of its queue. Atomic and idempotent. Takes one round trip. */
export async function applySettings(redis: Redis, keys: QueueKeys, command: StoredCommand): Promise<void> {
  const { settings, meta, marker, wait, prioritized, delayed, events, limiter } = keys
  const names = [settings, meta, marker, wait, prioritized, delayed, events, limiter]
  const args = [command.sequence, THROTTLE_MARK, DELAYED_SCORE_STEP, ...settingsOf(command)]
  await redis.eval(SET, names.length, ...names, ...args)
}

/** Returns the names and values of the settings that a command changes. */
function settingsOf({ id, spec, at }: StoredCommand): string[] {
  switch (spec.action) {
    case 'pause':
      return ['paused', '1']
    case 'resume':
      return ['paused', '', 'drain', '']
    case 'drain': {
      const { mode, timeout } = spec
      const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout)
      return ['drain', JSON.stringify({ mode, timeoutMs, since: at, command: id })]
    }
    case 'limit': {
      const { concurrency, rate } = spec
      const settings: string[] = []
      if (concurrency !== undefined) settings.push('concurrency', concurrency === 'none' ? '' : `${concurrency}`)
      if (rate !== undefined) settings.push('rate', rate === 'none' ? '' : `${rate.max}/${milliseconds(rate.per)}`)
      return settings
    }
    default:
      return []
  }
}

/** Adds the reads of one queue's settings to a pipeline. */
export function addSettingsReads(pipeline: ChainableCommander, keys: QueueKeys): void {
  pipeline.hmget(keys.meta, 'paused', 'concurrency', 'max', 'duration').hget(keys.settings, 'drain')
}

/** Decodes the answers to {@link addSettingsReads}. */
export function decodeSettings([meta, drain]: readonly unknown[]): QueueSettings {
  const [paused, concurrency, max, duration] = meta as (string | null)[]
  const hasRate = max != null && max !== THROTTLE_MARK
  return {
    paused: paused != null,
    drain: decodeDrain(drain),
    concurrency: concurrency == null ? undefined : Number(concurrency),
    rate: hasRate ? { max: Number(max), perMs: Number(duration) } : undefined,
  }
}

/** Decodes the stored drain. */
export function decodeDrain(stored: unknown): QueueSettings['drain'] {
  if (typeof stored !== 'string') return undefined
  const drain = JSON.parse(stored) as NonNullable<QueueSettings['drain']>
  // JSON omits undefined fields.
  return { ...drain, timeoutMs: drain.timeoutMs }
}
