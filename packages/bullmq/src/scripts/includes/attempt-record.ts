// Defines Lua functions that append an attempt record to the stacks that BullMQ stores with a job.
import { MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import { DECODE_JSON } from '../../store/scripts.ts'

/**
 * - `read_stacks(job)`: returns the stacks of a job, and when its newest record ended (ms since 1970, 0 if there is none). `job` is
 *   the job's key.
 * - `append_stack(job, stacks, stack)`: stores the job's stacks and one more. Drops the oldest stacks beyond the limit.
 */
export const ATTEMPT_STACKS = `${DECODE_JSON}
local function read_stacks(job)
  local stored = redis.call('HGET', job, 'stacktrace')
  local stacks = stored and decode_json(stored) or {}
  local newest = stacks[#stacks]
  return stacks, type(newest) == 'string' and tonumber(string.match(newest, '^[^\\n]*"endedAt":(%d+)')) or 0
end
local function append_stack(job, stacks, stack)
  while #stacks >= ${MAX_ATTEMPT_RECORDS} do table.remove(stacks, 1) end
  stacks[#stacks + 1] = stack
  redis.call('HSET', job, 'stacktrace', cjson.encode(stacks))
end
`

/**
 * - `end_record(job, at)`: appends the record of an attempt whose process was lost. The process that finds the lost attempt
 *   writes the record, because the lost process cannot. `at` is in ms since 1970.
 */
export const END_RECORD = `${ATTEMPT_STACKS}
local function end_record(job, at)
  local starts, attempts, begun, worker = unpack(redis.call('HMGET', job, 'ats', 'atm', 'processedOn', 'pb'))
  append_stack(job, (read_stacks(job)), string.format(
    '{"fencingToken":%s,"attempt":%d,"counted":false,"state":"RECOVER_ERR","reason":"process_lost",'
      .. '"message":"the worker was lost","worker":%s,"startedAt":%s,"endedAt":%s}\\nRECOVER_ERR (process_lost): the worker was lost',
    starts or '0', tonumber(attempts or '0') + 1, cjson.encode(worker or 'unknown'), begun or at, at))
end
`
