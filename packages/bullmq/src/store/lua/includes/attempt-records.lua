-- The records of a task's attempts that did not succeed, in BullMQ's field `stacktrace`: a JSON array of stacks, whose first lines are the
-- records (codec.ts). The newest ten are kept. `job` is the task's key.
--
-- read_stacks(job)                  returns the stacks, and when the newest recorded attempt ended: in ms since 1970, or 0 if there is none
-- append_stack(job, stacks, stack)  stores these stacks and one more
-- record_lost_attempt(job, at)      adds the record of an attempt whose process was lost. The process that finds the lost attempt writes
--                                   the record, because the lost process cannot. `at` is in ms since 1970
--- @include decode-json

local MAX_ATTEMPT_RECORDS = 10

local function read_stacks(job)
  local stored = redis.call('HGET', job, 'stacktrace')
  local stacks = stored and decode_json(stored) or {}
  local newest = stacks[#stacks]
  return stacks, type(newest) == 'string' and tonumber(string.match(newest, '^[^\n]*"endedAt":(%d+)')) or 0
end

local function append_stack(job, stacks, stack)
  while #stacks >= MAX_ATTEMPT_RECORDS do
    table.remove(stacks, 1)
  end
  stacks[#stacks + 1] = stack
  redis.call('HSET', job, 'stacktrace', cjson.encode(stacks))
end

local function record_lost_attempt(job, at)
  local starts, attempts, begun, worker = unpack(redis.call('HMGET', job, 'ats', 'atm', 'processedOn', 'pb'))
  local record = string.format(
    '{"fencingToken":%s,"attempt":%d,"counted":false,"state":"RECOVER_ERR","reason":"process_lost","message":"the worker was lost",'
      .. '"worker":%s,"startedAt":%s,"endedAt":%s}',
    starts or '0',
    tonumber(attempts or '0') + 1,
    cjson.encode(worker or 'unknown'),
    begun or at,
    at
  )
  append_stack(job, (read_stacks(job)), record .. '\nRECOVER_ERR (process_lost): the worker was lost')
end
