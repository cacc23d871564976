-- Remembers what the calls with an idempotency key have done.
--
-- recall_call(task)                            returns the reply if an earlier call has used the key, or if there is no room for a
--                                              record of this one. Must be called before the others
-- remember_call(task)                          stores that this call has stored its task
-- remember_other(task, action, other, status)  stores that this call has found the task `other` with its unique key. `status` is '' if that
--                                              task has been deleted
--
-- A record must outlive its task and then expire without being deleted. If each record had its own Redis key, that key and its expiry
-- would take more memory than the record. Records are therefore fields of hashes, and each hash expires as a whole. Time is divided into
-- periods, each half as long as a record's lifetime. Each period has 4,096 hashes, so that every hash is small enough for Redis to free
-- quickly. A record is kept for its lifetime or up to a half longer. A look-up reads one field from each of three hashes. With shorter
-- periods, records would be kept for less time than necessary, but each look-up would take longer.
--
-- Measured: a record takes 92 bytes if its period has 30,000 records, and 83 bytes if its period has 100,000. In a period with few
-- records, each record has a hash to itself and takes 257 bytes. Freeing a hash of 500 records takes less than 0.2 ms.
--
-- The parts of the task's field `idempotency` stand at fixed positions: whether there is room for a record ('1' or '0'); the lifetime
-- in seconds, a colon, the bucket and a colon, which belong to a hash's key; the key; and the record of a call that creates a task.
-- That record is a digest of the request, what the call did, the status of the task, when it was expected to start (in seconds, base
-- 36, or zeros), and the end of the task's id.
local PERIODS = 2
-- A number is used again when the hashes with that number have expired: one period after a look-up last reads them.
local PERIOD_NUMBERS = '0123'
local LIFE_AT, LIFE_END, HASH_END, KEY_END = 2, 9, 13, 35
local REQUEST_LENGTH, START_AT, START_END = 11, 14, 20
local UNKNOWN_START = '0000000'
local ACTION_CODES = { created = 'c', existing = 'e', replaced = 'r', extended = 'x' }
local STATUS_CODES = {
  scheduled = 's',
  waiting = 'w',
  active = 'a',
  retrying = 'r',
  completed = 'c',
  dead = 'd',
  cancelled = 'n',
  expired = 'e',
}
local DELETED = '-'

local function recall_call(task)
  local field = task.idempotency
  local hash = base .. 'idempotency:' .. string.sub(field, LIFE_AT, HASH_END)
  local key, record = string.sub(field, HASH_END + 1, KEY_END), string.sub(field, KEY_END + 1)
  local life = tonumber(string.sub(field, LIFE_AT, LIFE_END))
  local length = math.ceil(life / PERIODS)
  local now = math.floor(redis.call('TIME')[1] / length)
  for period = now, now - PERIODS, -1 do
    local number = period % #PERIOD_NUMBERS + 1
    local records = hash .. string.sub(PERIOD_NUMBERS, number, number)
    local found = redis.call('HGET', records, key)
    if found then
      local is_same = string.sub(found, 1, REQUEST_LENGTH) == string.sub(record, 1, REQUEST_LENGTH)
      return is_same and string.sub(found, REQUEST_LENGTH + 1) or 'reused'
    end
    if period == now then
      task.records, task.record_key, task.record = records, key, record
      task.records_expire_at = (now + 1) * length + life
    end
  end
  return string.sub(field, 1, 1) == '0' and { 'no_room' } or nil
end

local function store_record(task, record)
  redis.call('HSET', task.records, task.record_key, record)
  -- A new hash has no expiry time yet.
  if redis.call('HLEN', task.records) == 1 then
    redis.call('EXPIREAT', task.records, task.records_expire_at)
  end
end

local function remember_call(task)
  local record = task.record
  if task.replaced then
    record = string.sub(record, 1, REQUEST_LENGTH) .. ACTION_CODES.replaced .. string.sub(record, REQUEST_LENGTH + 2)
  end
  store_record(task, record)
end

local function remember_other(task, action, other, status)
  local start = action == 'existing' and UNKNOWN_START or string.sub(task.record, START_AT, START_END)
  local code = ACTION_CODES[action] .. (STATUS_CODES[status] or DELETED)
  store_record(task, string.sub(task.record, 1, REQUEST_LENGTH) .. code .. start .. string.match(other, '[^-]+$'))
end
