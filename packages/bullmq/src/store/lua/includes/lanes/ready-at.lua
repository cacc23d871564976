-- ready_at(base, id) returns since when a waiting task has been ready to start, in ms since 1970, or nil if the task's data is gone. `base`
-- is the prefix of the queue's keys. A task counts from the latest of these times:
--
-- - when it was enqueued, plus its delay. BullMQ keeps the delay in the job's options when the task has become ready;
-- - when its last attempt started, if it is waiting again because it was requeued or its worker was lost;
-- - when its last request for a retry was made, if it was dead.
local function ready_at(base, id)
  local fields = redis.call('HMGET', base .. id, 'timestamp', 'opts', 'processedOn', 'retries')
  local enqueued_at, options, started_at, retries = unpack(fields)
  if not enqueued_at then
    return nil
  end
  local ready = tonumber(started_at or enqueued_at)
  if not started_at and string.find(options or '', '"delay"', 1, true) then
    -- The options of plain BullMQ may contain a second delay, that of the backoff.
    local has_read, read = pcall(cjson.decode, options)
    ready = ready + (has_read and tonumber(read.delay) or 0)
  end
  if retries then
    for _, retry in ipairs(cjson.decode(retries)) do
      if not retry.copy then
        ready = math.max(ready, retry.at)
      end
    end
  end
  return ready
end
