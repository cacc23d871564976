-- Remembers, for at least a day, which entries of outboxes have been delivered to this queue.
--
-- recall_forwarded(task)    returns the reply if the task's entry has been delivered
-- remember_forwarded(task)  remembers the task's entry
--
-- A forwarder adds a follow-up to its target and then deletes the entry, in two scripts, because the two queues may be on different
-- shards. If it dies in between, or a reply is lost, the entry is delivered again. The follow-up's id is derived from the entry, but the
-- task may have run and been removed by then, so the hash of the task is not enough.
--
-- A record must take little memory, because there is one for each follow-up of the last day. It is a number of 64 bits without a value, in
-- a set: Redis stores up to 512 numbers of a set in 8 bytes each, and more in about 60. Time is divided into periods of six hours, and the
-- records of a period are divided over 4,096 sets, each of which expires as a whole. A record is kept for 24 to 30 hours. The number and
-- the digits that select the set are parts of a digest of the entry, so two entries have the same record with a probability of 1 in 10^9
-- among ten million.
--
-- When a set has 512 records, so have almost all others of the period. Later records are therefore divided over 16 times as many sets. The
-- field `forwardedDigits` of the queue's totals has, for each period of the last day in which this has happened, and for each period after
-- such a one, the numbers of hexadecimal digits that have selected sets: ` 82900:34 82901:4`. A record is looked for in the set of each of
-- these numbers. A period begins with the last number of the one before, or with one digit less if the sets of that period have so few
-- records that fewer sets suffice. Every other period has 3 digits.
--
-- The task's field `forwarded` is the number and MAX_DIGITS hexadecimal digits, separated by a blank. `base` is the prefix of the keys
-- of the target queue.
--- @include time

local PERIOD_S, EARLIER_PERIODS = 21600, 4
local MIN_DIGITS, MAX_DIGITS = '3', '5'
-- Redis's default for `set-max-intset-entries`.
local FULL = 512
-- If a set has fewer records, a 16th of the sets would hold all records of the period with room to spare.
local SPARSE = 16

local function digits_in(noted, period)
  return string.match(noted, ' ' .. period .. ':(%d+)')
end

local function records_in(bucket, period, digits)
  return base .. 'forwarded:' .. period .. ':' .. string.sub(bucket, 1, digits)
end

local function read_periods(task)
  local number, bucket = string.match(task.forwarded, '^(%S+) (%S+)$')
  local noted = redis.call('HGET', base .. 'totals', 'forwardedDigits') or ''
  return number, bucket, noted, math.floor(millis() / 1000 / PERIOD_S)
end

local function recall_forwarded(task)
  local number, bucket, noted, now = read_periods(task)
  for period = now, now - EARLIER_PERIODS, -1 do
    for digits in string.gmatch(digits_in(noted, period) or MIN_DIGITS, '%d') do
      if redis.call('SISMEMBER', records_in(bucket, period, digits), number) == 1 then
        return ADDED
      end
    end
  end
  return nil
end

local function note_digits(noted, now, used)
  local others = ''
  for period = now - EARLIER_PERIODS, now - 1 do
    local digits = digits_in(noted, period)
    if digits then
      others = others .. ' ' .. period .. ':' .. digits
    end
  end
  redis.call('HSET', base .. 'totals', 'forwardedDigits', others .. ' ' .. now .. ':' .. used)
end

local function remember_forwarded(task)
  local number, bucket, noted, now = read_periods(task)
  local used, before = digits_in(noted, now), digits_in(noted, now - 1)
  if before and not used then
    used = string.sub(before, -1)
    if used ~= MIN_DIGITS and redis.call('SCARD', records_in(bucket, now - 1, used)) < SPARSE then
      used = used - 1
    end
    -- A period after one that needed no more digits is not noted.
    if before ~= MIN_DIGITS then
      note_digits(noted, now, used)
    end
  end
  used = used or MIN_DIGITS
  local digits = string.sub(used, -1)
  local records = records_in(bucket, now, digits)
  redis.call('SADD', records, number)
  local count = redis.call('SCARD', records)
  -- A new set has no expiry time yet.
  if count == 1 then
    redis.call('EXPIREAT', records, (now + EARLIER_PERIODS + 1) * PERIOD_S)
  end
  if count >= FULL and digits < MAX_DIGITS then
    note_digits(noted, now, used .. digits + 1)
  end
end
