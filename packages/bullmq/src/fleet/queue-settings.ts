// The switches of a queue: what holds for its whole fleet. Pause and limits are BullMQ's own, so that its scripts obey them.
import { milliseconds } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { QueueSettings } from '@bullpen/engine/internal'
import type { ChainableCommander, Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'
import { THROTTLE_MARK } from '../maintenance/throttle.ts'

/** How many commands {@link askSwitches} adds. */
export const SWITCH_COMMANDS = 2

/**
 * KEYS: switches, meta, marker, wait, prioritized, delayed, events, limiter. ARGV: the command's place in the spec of all,
 * the mark of a hold, and then what to set, name and value one after the other; '' lifts. An older command never undoes a
 * newer one, whoever comes late. Pause and resume do what BullMQ's own do. What may let tasks start again wakes a slot:
 * those that were refused one wait for a marker.
 */
const SET = `
local sequence, mark = ARGV[1], ARGV[2]
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
for i = 3, #ARGV, 2 do
  if isNewest(ARGV[i]) then set[ARGV[i]](ARGV[i + 1]) end
end
if lifted and redis.call('HEXISTS', KEYS[2], 'paused') == 0 then
  if redis.call('LLEN', KEYS[4]) + redis.call('ZCARD', KEYS[5]) > 0 then
    redis.call('ZADD', KEYS[3], 0, '0')
  else
    local due = redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')
    if due[2] then redis.call('ZADD', KEYS[3], tonumber(due[2]) / 0x1000, '1') end
  end
end
`

export interface KeptCommand {
  readonly id: string
  readonly spec: CommandSpec
  readonly sequence: string
  /** Milliseconds since 1970 by Redis's clock. */
  readonly at: number
}

/** The queue whose switches an spec sets: of its whole fleet. Undefined: none. */
export function switchedQueue(spec: CommandSpec): string | undefined {
  if (spec.action === 'limit') return spec.queue
  const ofFleet = spec.action === 'pause' || spec.action === 'resume' || spec.action === 'drain'
  return ofFleet && spec.worker === undefined ? spec.queue : undefined
}

/** Atomic; twice is once. One round trip, and none for an spec that sets nothing. */
export async function setSwitches(redis: Redis, keys: QueueKeys, command: KeptCommand): Promise<void> {
  const { switches, meta, marker, wait, prioritized, delayed, events, limiter } = keys
  const names = [switches, meta, marker, wait, prioritized, delayed, events, limiter]
  await redis.eval(SET, names.length, ...names, command.sequence, THROTTLE_MARK, ...settingsOf(command))
}

/** Names and values. */
function settingsOf({ id, spec, at }: KeptCommand): string[] {
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

/** Adds the questions about one queue. */
export function askSwitches(pipeline: ChainableCommander, keys: QueueKeys): ChainableCommander {
  return pipeline.hmget(keys.meta, 'paused', 'concurrency', 'max', 'duration').hget(keys.switches, 'drain')
}

/** From the answers, in the spec of the questions. */
export function readSwitches([meta, drain]: readonly unknown[]): QueueSettings {
  const [paused, concurrency, max, duration] = meta as (string | null)[]
  const isLimited = max != null && max !== THROTTLE_MARK
  return {
    paused: paused != null,
    drain: readDrain(drain),
    concurrency: concurrency == null ? undefined : Number(concurrency),
    rate: isLimited ? { max: Number(max), perMs: Number(duration) } : undefined,
  }
}

/** From the field as it is stored. */
export function readDrain(stored: unknown): QueueSettings['drain'] {
  if (typeof stored !== 'string') return undefined
  const drain = JSON.parse(stored) as NonNullable<QueueSettings['drain']>
  // JSON has no undefined: what is absent is known to be so.
  return { ...drain, timeoutMs: drain.timeoutMs }
}
