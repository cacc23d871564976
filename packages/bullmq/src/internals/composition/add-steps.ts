// Defines the steps around BullMQ's scripts that add a job.
import { API_KEY_LIMITS, CHARGE_API_KEY } from '../../admission/api-key-steps.ts'
import { REMEMBER, REPLAY } from '../../admission/idempotency-steps.ts'
import { CHARGE_BYTES, CHECK_BYTES, LIMIT, REFUND_BYTES } from '../../admission/limit-steps.ts'
import { DELETE_REPLACED, RECALL_REPLACED, RESOLVE_CONFLICT, TAKE_KEY } from '../../admission/unique-steps.ts'
import { RESERVED_IDS } from '../../keys.ts'
import { REMEMBER_FORWARDED, recallForwarded } from '../../outbox/forwarded-steps.ts'
import { REFUSE_CANCELLED_GROUP, STORE_FOLLOW_UPS } from '../../outbox/outbox-steps.ts'
import { addEvent, EVENTS_FIELD } from '../../scripts/includes/add-events.ts'
import { RECALL_REMOVED } from '../../scripts/includes/ended-tasks/removed-tasks.ts'
import { type Steps, SUCCEEDED } from './steps.ts'

/** The bits of the number that a broker receives if its task is stored. If no bit is set, another call has stored the task. */
export const ADDED = { byThisCall: 1, inPlaceOfAnother: 2 } as const

/** Refuses a job that a team's own Queue adds under a reserved id. */
const REFUSE_RESERVED = `
if id == '' then
  local own = cmsgpack.unpack(ARGV[1])[2]
  if own ~= '' and string.find('${RESERVED_IDS}', ' ' .. own .. ' ', 1, true) then
    return redis.error_reply("ERR the job id '" .. own .. "' is the name of one of the queue's keys; use another id")
  end
end`

/**
 * Returns the steps before an add. `mayExist` is a Lua condition: whether an earlier run may have stored the task `id`. `checkBytes` is
 * the last step that may refuse the task, because it may already charge for it.
 */
function stepsBeforeAdd(mayExist: string, checkBytes: string): string {
  return `${REFUSE_RESERVED}${recallForwarded(ADDED.byThisCall)}${REPLAY}
if id ~= '' and (${mayExist}) and call('EXISTS', base .. id) == 1 then
  ${RECALL_REPLACED}
  local is_own = caller ~= '' and call('HGET', base .. id, 'caller') == caller
  return (is_own and ${ADDED.byThisCall} or 0) + (has_replaced and ${ADDED.inPlaceOfAnother} or 0)
end${REFUSE_CANCELLED_GROUP}
if id ~= '' and (may_be_resent or unique ~= '' or group ~= '') then${RECALL_REMOVED}
  if was_removed then
    return (caller ~= '' and ${ADDED.byThisCall} or 0) + (has_replaced and ${ADDED.inPlaceOfAnother} or 0)
  end
end
${RESOLVE_CONFLICT}
${LIMIT}
${API_KEY_LIMITS}
${checkBytes}
${DELETE_REPLACED}`
}

/** How BullMQ's adds count the jobs. The number is needed only as the id of a job that has none. */
export const COUNT_JOB = /(?<=\blocal jobCounter = )rcall\("INCR", (?:idKey|KEYS\[4\])\)/

/** How BullMQ's adds read how many events the queue keeps, and how those of them that may wake a worker read whether it is paused. */
export const READ_MAX_EVENTS = 'local maxEvents = rcall("HGET", metaKey, "opts.maxLenEvents")'
export const READ_PAUSED = 'rcall("HMGET", queueMetaKey, "paused", "concurrency")'
export const NEEDS_PAUSED = 'isQueuePausedOrMaxed(metaKey, activeKey)'

/**
 * Returns an add's text, which does not count the task `id`, and reads the settings of its queue with one command in place of two. Each
 * command takes Redis 0.5 µs.
 */
function withFewerCommands(text: string): string {
  const uncounted = text.replace(COUNT_JOB, "id == '' and $&")
  if (!text.includes(NEEDS_PAUSED)) return uncounted
  const once = uncounted
    .replace(
      READ_MAX_EVENTS,
      `settings, settings_key = rcall("HMGET", metaKey, "paused", "concurrency", "opts.maxLenEvents"), metaKey
  local maxEvents = settings[3]`,
    )
    .replace(READ_PAUSED, `queueMetaKey == settings_key and settings or ${READ_PAUSED}`)
  return `local settings, settings_key\n${once}`
}

/** How BullMQ's adds read their arguments and write a job's options, and how they look for a job to deduplicate. */
export const UNPACK_ARGUMENTS = 'local args = cmsgpack.unpack(ARGV[1])'
export const UNPACK_OPTIONS = 'local opts = cmsgpack.unpack(ARGV[3])'
export const ENCODE_OPTIONS = 'local jsonOpts = cjson.encode(opts)'
export const DEDUPLICATE = 'local deduplicationJobId = '

/**
 * Returns an add's text, to which a broker gives the name of the task `id` and the JSON of its options, as they are stored, in place of
 * BullMQ's two packed arguments (./add-arguments.ts).
 */
function withOwnArguments(text: string): string {
  return text
    .replace(
      UNPACK_ARGUMENTS,
      `local args = id ~= '' and { base, id, ARGV[1], enqueuedAt } or cmsgpack.unpack(ARGV[1])`,
    )
    .replace(
      UNPACK_OPTIONS,
      `local opts = id ~= '' and { delay = tonumber(taskDelay), priority = tonumber(taskPriority) } or cmsgpack.unpack(ARGV[3])`,
    )
    .replace(ENCODE_OPTIONS, `local jsonOpts = id ~= '' and ARGV[3] or cjson.encode(opts)`)
    .replace(DEDUPLICATE, `${DEDUPLICATE}opts['de'] and `)
}

/** How BullMQ's adds look for a job with the same id. */
export const LOOK_UP = 'rcall("EXISTS", jobIdKey)'

/** Returns an add's text, which no longer looks for the task `id`, because the steps before the add know that there is none. */
function withoutLookUp(text: string): string {
  return text.replace(LOOK_UP, `(id ~= '' and 0 or ${LOOK_UP})`)
}

/**
 * The steps around all four BullMQ scripts that add a job. `before` is the only place that decides whether the task is added: it
 * may return without running BullMQ's script, in which case no task has been added. A broker usually receives a number: the bits
 * of {@link ADDED}, which are the same if the call is sent again. A number takes Redis 0.6 µs less than a list. The broker
 * receives a string if an earlier call has used the same idempotency key, and a list if another task has the unique key, if the
 * queue is full, or if there is no memory for the idempotency key. A Queue's own `add` does not set `id`, and receives BullMQ's
 * return value, which is the job's id.
 *
 * A call that is sent again stores nothing if its first run has stored the task, even if the task was deleted in the meantime. To
 * save time, the script looks for deleted tasks only if the call may be a repeat (`may_be_resent`), if the task has a unique key,
 * because the second run could then delete the task that has replaced it, or if the task belongs to a group or a pipeline run, because
 * another process may have delivered the same entry of the outbox.
 *
 * The limits are checked last, so that a repeated call receives the same reply even if the queue is full by now.
 */
export const ADD = {
  /**
   * `id`: the id of a task that a broker enqueues. `enqueuedAt`: when (ms since 1970). `taskDelay`: its delay in ms, if it has
   * one. `taskPriority`: its priority, unless it is 0. `expiresAt`: when the task expires if it has not been started (ms since
   * 1970). `tags`: a JSON array. `caller`: distinguishes this call from others with the same id. `idempotency`: see
   * ../../admission/idempotency-steps.ts. `unique`: see ../../admission/unique-steps.ts. `limits`: see
   * ../../admission/limit-steps.ts. `apiKey`: see ../../admission/api-key-steps.ts. `events`: how many events the queue's
   * stream keeps, a line break, and the event that the task was enqueued. `followUps` and `group`: see
   * ../../outbox/outbox-steps.ts. `forwarded`: see ../../outbox/forwarded-steps.ts. `lane`: see ../turns/lanes.ts. The
   * arguments that most tasks need come first.
   */
  extra: [
    'id',
    'enqueuedAt',
    'limits',
    'caller',
    'events',
    'idempotency',
    'apiKey',
    'taskDelay',
    'taskPriority',
    'expiresAt',
    'tags',
    'unique',
    'followUps',
    'forwarded',
    'group',
    'lane',
  ],
  own: 3,
  adapt: (text) => withOwnArguments(withFewerCommands(text)),
  // Every call of a script that adds several tasks may be a repeat. The task of an earlier call with an idempotency key has a record.
  before: stepsBeforeAdd(`idempotency == '' or may_be_resent or caller ~= ''`, CHECK_BYTES),
  after: `
if index.added then
  if expiresAt ~= '' then call('ZADD', base .. 'expiries', expiresAt, answer) end
  if tags ~= '' then call('HSET', base .. answer, 'tags', tags) end
  if caller ~= '' then call('HSET', base .. answer, 'caller', caller) end
  if events ~= '' then
    local count, event = string.match(events, '^(%d+)\\n(.*)$')
    call('HSET', base .. answer, '${EVENTS_FIELD}', count)
    ${addEvent('count', 'answer', 'event')}
  end
  ${TAKE_KEY}
  ${CHARGE_API_KEY}
  ${STORE_FOLLOW_UPS}
  ${REMEMBER}
  ${REMEMBER_FORWARDED}
end
if id ~= '' and (${SUCCEEDED}) then
  return replaced and ${ADDED.byThisCall + ADDED.inPlaceOfAnother} or ${ADDED.byThisCall}
end`,
} as const satisfies Steps

/**
 * The steps of BullMQ's own scripts, each of which adds a single job. No tasks are added before it. The argument after the extra
 * ones marks a call that may have been sent before (../../redis/script-calls.ts). Without this mark, no task has the id of a caller
 * `only`. Most adds therefore do not look for such a task, which would take Redis 0.4 µs.
 */
export const ADD_ONE: Steps = {
  ...ADD,
  adapt: (text) => withoutLookUp(ADD.adapt(text)),
  before: `local pending_tasks, may_be_resent = 0, ARGV[${ADD.own + ADD.extra.length + 2}]${stepsBeforeAdd(`may_be_resent or caller ~= '' or unique ~= ''`, CHARGE_BYTES)}`,
  after: `${REFUND_BYTES}${ADD.after}`,
}
