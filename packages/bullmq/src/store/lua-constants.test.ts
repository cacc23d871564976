// The values that TypeScript and Lua both know are the same.
import { globSync, readFileSync } from 'node:fs'
import { ATTEMPT_STATE_LABELS } from '@bullpen/contract'
import { FOLLOW_UP_LETTERS, MAX_LOG_EVENTS, NEXT_LETTER } from '@bullpen/contract/internal'
import {
  BUCKETS,
  BUDGET_WINDOW_S,
  COMPENSATION_SLOTS,
  GAP,
  HANDLER_SLOT,
  MAX_ATTEMPT_RECORDS,
  MAX_RELEASED,
  MAX_RETRY_RECORDS,
  MOVED_UP,
  OPEN_JITTER,
  REPEATS_WITHIN_MS,
  TASK_OVERHEAD_BYTES,
} from '@bullpen/engine/internal'
import { MetricsTime } from 'bullmq'
import { expect, it } from 'vitest'
import { RECORD_CODES } from '../admission/idempotency-records.ts'
import { CANCEL_REPLY_KEPT_MS } from '../cancel/by-id.ts'
import { END_LETTERS } from '../groups/end-letters.ts'
import { DELAYED_SCORE_STEP } from '../internals/status/places.ts'
import { PARTS } from '../internals/status/status-index.ts'
import { CAPACITY_SETTING, KEY_LIMIT_SETTING } from '../internals/turns/key-limits.ts'
import { CLOSED_BY_OUTBOX, MAX_OUTBOX_BYTES, MAX_OUTBOX_ENTRIES } from '../outbox/outbox-bounds.ts'
import { REPLY_KEPT_MS } from '../scripts/run-until-answered.ts'
import { ENDS_PER_REMOVAL } from './moves.ts'

const lua = (table: Readonly<Record<string, string>>): string =>
  `{ ${Object.entries(table)
    .map(([name, value]) => `${name} = '${value}'`)
    .join(', ')} }`

const CONSTANTS: Readonly<Record<string, readonly string[]>> = {
  'new-task': [`TASK_OVERHEAD_BYTES = ${TASK_OVERHEAD_BYTES}`],
  'task-charge': [`TASK_OVERHEAD_BYTES = ${TASK_OVERHEAD_BYTES}`],
  'attempt-records': [`MAX_ATTEMPT_RECORDS = ${MAX_ATTEMPT_RECORDS}`],
  'failed-set': [`FAILED_PARTS = { '${PARTS.failed.join("', '")}' }`],
  'rare-ends': [`REMOVED_PER_END = ${2 * ENDS_PER_REMOVAL}`],
  'delayed-set': [`DELAYED_STEP = 0x${DELAYED_SCORE_STEP.toString(16)}`],
  'rare-functions': [`* 0x${DELAYED_SCORE_STEP.toString(16)} - 1`],
  'retry-dead': [`MAX_RETRY_RECORDS = ${MAX_RETRY_RECORDS}`],
  'task-events': [`MAX_LOG_EVENTS = ${MAX_LOG_EVENTS}`],
  breaker: [`BUCKETS, OPEN_JITTER, ROUNDING = ${BUCKETS}, ${OPEN_JITTER},`],
  'retry-budget': [`BUDGET_WINDOW_S, MAX_RELEASED = ${BUDGET_WINDOW_S}, ${MAX_RELEASED}`],
  'held-retries': [`GAP, MOVED_UP = ${GAP}, ${MOVED_UP}`],
  'bullmq-metrics': [`MAX_MINUTES = ${MetricsTime.ONE_MONTH}`],
  'end-without-run': [
    `OUTCOMES = ${lua({ cancelled: ATTEMPT_STATE_LABELS.TERMINATED_STOP_SIGNAL, expired: ATTEMPT_STATE_LABELS.TERMINATED_TIMEOUT })}`,
  ],
  'stored-reply': [`REPLY_KEPT_MS = ${REPLY_KEPT_MS}`],
  'cancel/cancel-task': [`CANCEL_REPLY_KEPT_MS = ${CANCEL_REPLY_KEPT_MS}`],
  'removed-tasks': [`REPEATS_WITHIN_MS = ${REPEATS_WITHIN_MS}`],
  idempotency: [`ACTION_CODES = ${lua(RECORD_CODES.actions)}`, `STATUS_CODES = ${lua(RECORD_CODES.statuses)}`],
  'derive-limits': [`KEY_LIMIT, CAPACITY = '${KEY_LIMIT_SETTING}', '${CAPACITY_SETTING}'`],
  outbox: [
    `MAX_OUTBOX_ENTRIES, MAX_OUTBOX_BYTES = ${MAX_OUTBOX_ENTRIES}, ${MAX_OUTBOX_BYTES}`,
    `CLOSED_BY_OUTBOX = '${CLOSED_BY_OUTBOX}'`,
    `END_LETTERS = ${lua(END_LETTERS)}`,
    `NEXT, HANDLER_SLOT, OWN_COMPENSATION_SLOT = '${NEXT_LETTER}', '${HANDLER_SLOT}', '${COMPENSATION_SLOTS.own}'`,
    `letter == '${FOLLOW_UP_LETTERS.success}'`,
    `letter == '${FOLLOW_UP_LETTERS.end}'`,
    `letter == '${FOLLOW_UP_LETTERS.failure}'`,
  ],
}

it.each(Object.entries(CONSTANTS))('those of %s.lua', (file, constants) => {
  // The file is an include, or a script beside its feature.
  const path = file.includes('/') ? `../${file}.lua` : `lua/includes/**/${file}.lua`
  const [found = expect.fail(`there is no ${file}.lua`)] = globSync(path, { cwd: import.meta.dirname })
  const text = readFileSync(new URL(found, import.meta.url), 'utf8')
  const oneLine = text.replaceAll(/\s*\n\s*/g, ' ').replaceAll(', }', ' }')
  for (const constant of constants) expect(oneLine).toContain(constant)
})
