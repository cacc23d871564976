// Lua functions that append an attempt record to the stacks that BullMQ stores with a job.
import { MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'

/**
 * - `append_stack(job, stack)`: `job` is the job's key. Drops the oldest stacks beyond the limit.
 * - `end_record(job, at)`: appends the record of an attempt whose process was lost. The process that finds it writes the record,
 *   because the lost one cannot. `at` is in ms since 1970.
 */
export const END_RECORD = `
local function append_stack(job, stack)
  local stored = redis.call('HGET', job, 'stacktrace')
  local stacks = stored and cjson.decode(stored) or {}
  while #stacks >= ${MAX_ATTEMPT_RECORDS} do table.remove(stacks, 1) end
  stacks[#stacks + 1] = stack
  redis.call('HSET', job, 'stacktrace', cjson.encode(stacks))
end
local function end_record(job, at)
  local starts, attempts, begun, worker = unpack(redis.call('HMGET', job, 'ats', 'atm', 'processedOn', 'pb'))
  append_stack(job, string.format(
    '{"fencingToken":%s,"attempt":%d,"counted":false,"state":"RECOVER_ERR","reason":"process_lost",'
      .. '"message":"the worker was lost","worker":%s,"startedAt":%s,"endedAt":%s}\\nRECOVER_ERR (process_lost): the worker was lost',
    starts or '0', tonumber(attempts or '0') + 1, cjson.encode(worker or 'unknown'), begun or at, at))
end
`
