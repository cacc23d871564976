// Defines the steps of an enqueue with a unique key: they find the task that has the key, resolve the conflict, and give the key
// to the new task.
//
// Each key is stored as an entry that names a task (../store/lua/includes/key-owner.lua). Only when another task wants the key does
// the step check whether the named task still has it. Tasks that start or end therefore do not have to update any keys.
//
// In two cases, a waiting task no longer has its key although it has not been ended yet: if a cancel by filter covers the task,
// and if the task's queue timeout has passed. Such a task will not start, and a task that is enqueued after a cancellation must
// not be lost with the cancelled task. (Until all workers know of the cancellation, which its caller waits for, a worker may
// still start the covered task.)
import type { EnqueueAction, Enqueued, OnConflict, TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { nameOfKey, uniqueKeyTaken } from '@bullpen/engine/internal'
import { DELAYED_SCORE_STEP, PLACES, TAKE_OUT } from '../internals/status/places.ts'
import { KEY_OWNER, MATCHING_RULE } from '../store/scripts.ts'
import { RECORD_OTHER } from './idempotency-steps.ts'

const CONFLICT_CODES = { keep: 'k', replace: 'r', extend: 'x', error: 'e' } as const satisfies Record<
  OnConflict,
  string
>

/** The sets that are named after their tasks' status. */
const NAMED_SETS = Object.entries(PLACES).flatMap(([name, { type, status }]) =>
  type === 'sorted set' && name === status ? [name] : [],
)

/**
 * The first step, which runs only if no task has the new task's id. `unique` is '' or the result of {@link encodeUnique}. If
 * another task has the key and is not replaced, the script returns this step's reply without adding a task. The reply is a list:
 * `existing`, `extended` or `taken`, the other task's id, and its status ('' if it has been deleted). Otherwise, the step sets
 * `replaced` to the task to delete, `key` to the key's name, and `span` to the time until which the new task has the key.
 */
export const RESOLVE_CONFLICT = `
local replaced, key, span
if unique ~= '' then
${KEY_OWNER}${MATCHING_RULE}
  local on_conflict, starts_at, max_delay
  span, on_conflict, starts_at, max_delay, key = string.match(unique, '^(%S+) (%a) (%d+) (%d+) (.*)$')
  local seconds, micros = unpack(call('TIME'))
  local now = seconds * 1000 + math.floor(micros / 1000)
  if tonumber(span) then span = string.format('%.0f', now + span) end
  local entry = call('HGET', base .. 'unique-keys', key)
  local other = entry and key_owner(base, entry, now)
  local other_span = other and string.match(entry, '^%S+ (%S+)')

  local function is_running(id) return call('EXISTS', base .. id .. ':lock') == 1 end
  local function status_of(id)
    if call('EXISTS', base .. id) == 0 then return '' end
    for _, set in ipairs({ '${NAMED_SETS.join("', '")}' }) do
      if call('ZSCORE', base .. set, id) then return set end
    end
    return is_running(id) and 'active' or 'waiting'
  end
  local function starts_of(id) return tonumber(call('HGET', base .. id, 'ats') or '0') end
  -- The status with which a task will end without starting, or nil if the task may start.
  local function certain_end(id)
    if is_running(id) then return nil end
    local expires_at = tonumber(call('ZSCORE', base .. 'expiries', id) or now + 1)
    if expires_at <= now and starts_of(id) == 0 then return 'expired' end
    local rules = {}
    for i, text in ipairs(call('HVALS', base .. 'cancel-rules')) do rules[i] = cjson.decode(text) end
    return #rules > 0 and matching_rule(base, rules, id) and 'cancelled' or nil
  end
  local function postpone(id)
    local score, enqueued, opts = call('ZSCORE', base .. 'delayed', id), unpack(call('HMGET', base .. id, 'timestamp', 'opts'))
    local moved, delay = starts_at - math.floor(score / ${DELAYED_SCORE_STEP}), starts_at - enqueued
    if moved <= 0 or max_delay ~= '0' and delay >= tonumber(max_delay) then return false end
    watch('ZADD', base .. 'delayed', starts_at * ${DELAYED_SCORE_STEP}, id)
    -- BullMQ adds the same event if the delay of a job changes.
    call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', starts_at)
    -- Workers use the options to compute when a task became ready.
    local options = cjson.decode(opts)
    options.delay = delay
    call('HSET', base .. id, 'delay', delay, 'opts', cjson.encode(options))
    call('ZADD', base .. 'expiries', 'XX', 'INCR', moved, id)
    if tonumber(other_span) and tonumber(span) then
      call('HSET', base .. 'unique-keys', key, (string.gsub(entry, ' %S+', ' ' .. span, 1)))
    end
    return true
  end

  local ending = other and certain_end(other)
  if ending and not tonumber(other_span) then other = nil end
  if other then
    if on_conflict == '${CONFLICT_CODES.error}' then return { 'taken', other, '' } end
    local status, action = status_of(other), 'existing'
    -- A task that a cancel by filter covers is shown as cancelled everywhere.
    if ending == 'cancelled' and (status == 'waiting' or status == 'scheduled' or status == 'retrying') then status = ending end
    if status ~= '' and not ending and starts_of(other) == 0 then
      if on_conflict == '${CONFLICT_CODES.replace}' and (status == 'waiting' or status == 'scheduled') then
        replaced = other
      elseif on_conflict == '${CONFLICT_CODES.extend}' and status == 'scheduled' and postpone(other) then
        action = 'extended'
      end
    end
    if not replaced then
${RECORD_OTHER}
      return { action, other, status }
    end
  end
end`

/**
 * The step that deletes the replaced task. It runs directly before the add, when nothing can prevent the new task from being
 * stored.
 */
export const DELETE_REPLACED = `
if replaced then
  local function delete(id)
    local function call(command, ...)
      if command == 'ZREM' then return watch('ZREM', ...) end
      return redis.call(command, ...)
    end
${TAKE_OUT}
    local place, job = take_out(id), base .. id
    watch('DEL', job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful')
    call('ZREM', base .. 'expiries', id)
    call('XADD', base .. 'events', '*', 'event', 'removed', 'jobId', id, 'prev', place or 'unknown')
  end
  delete(replaced)
end`

/** The step after the add. By then, the task `id` is stored. The task's field `replaced` says that it replaced another task. */
export const TAKE_KEY = `
if key then
  call('HSET', base .. 'unique-keys', key, id .. ' ' .. span)
  if replaced then call('HSET', base .. id, 'replaced', 1) end
end`

/**
 * Lua lines for a call that was sent again although its first run stored the task `id`. The lines set `has_replaced` to whether
 * that task replaced another one.
 */
export const RECALL_REPLACED = `
local has_replaced = unique ~= '' and call('HEXISTS', base .. id, 'replaced') == 1`

/** Encodes the steps' argument. */
export function encodeUnique(task: NewTask): string {
  const { unique, enqueuedAt, delayMs = 0 } = task
  if (unique === undefined) return ''
  const { until, onConflict, maxDelayMs = 0 } = unique
  const span = typeof until === 'number' ? until : SPAN_CODES[until]
  return `${span} ${CONFLICT_CODES[onConflict]} ${enqueuedAt + delayMs} ${maxDelayMs} ${nameOfKey(task.task, unique)}`
}

const SPAN_CODES = { started: 's', finished: 'f' } as const

/** The reply of {@link RESOLVE_CONFLICT}. */
export type ConflictReply = readonly [outcome: 'existing' | 'extended' | 'taken', id: TaskId, status: TaskStatus | '']

/** Decodes the reply. @throws BullpenError `unique_key_taken`. */
export function decodeConflict(task: NewTask, [outcome, id, status]: ConflictReply): Enqueued {
  if (outcome === 'taken') throw uniqueKeyTaken(task, id)
  return { id, action: outcome satisfies EnqueueAction, status: status === '' ? undefined : status }
}
