// Defines the steps of an enqueue that is forwarded from an outbox: they remember, for at least a day, that it was stored.
//
// A forwarder adds a follow-up task to its target and then deletes the entry, in two scripts, because the two queues may be on
// different shards. If it dies in between, or a reply is lost, the entry is delivered again. The follow-up's id is derived from the
// entry, but the task may have run and been removed by then, so its job is not enough: the script that adds the task also stores a
// record of the entry. Records do not depend on the target's retention.
//
// A record must take little memory, because there is one for each follow-up of the last day. It is a number of 64 bits without a
// value, in a set: Redis stores up to 512 numbers of a set in 8 bytes each, and more in about 60. Time is divided into periods of six
// hours, and the records of a period are divided over 4,096 sets, each of which expires as a whole. A record is kept for 24 to 30 hours.
// The number and the digits that select the set are parts of a digest of the entry, so two entries have the same record with a
// probability of 1 in 10^9 among ten million.
//
// When a set has 512 records, so have almost all others of the period. What follows is therefore divided over 16 times as many sets. The
// field `forwardedDigits` of the queue's totals has, for each period of the last day in which this has happened, and for each period
// after such a one, the numbers of hexadecimal digits that have selected sets: ` 82900:34 82901:4`. A record is looked for in the set of
// each of these numbers. A period begins with the last number of the one before, or with one digit less if the sets of that period have so
// few records that fewer sets suffice. Every other period has 3 digits.

const PERIOD_S = 21_600
/** The number of earlier periods in which a record may be. */
const EARLIER_PERIODS = 4
/** The least and the greatest number of digits that select a set. */
const MIN_DIGITS = 3
export const MAX_DIGITS = 5
/** How many numbers Redis stores compactly in a set: the default of its setting `set-max-intset-entries`. */
const FULL = 512
/** If a set has fewer records, a 16th of the sets would hold all records of the period with room to spare. */
const SPARSE = 16

/**
 * The first step before the add. `forwarded` is '', or a record: a number and {@link MAX_DIGITS} hexadecimal digits, separated by a
 * blank. If the record is stored, the script returns at once, as if this call had stored the task. `addedByThisCall` is that reply.
 * Otherwise, the step defines `remember_forwarded()`, which stores the record.
 */
export const recallForwarded = (addedByThisCall: number): string => `
local remember_forwarded
if forwarded ~= '' then
  local number, bucket = string.match(forwarded, '^(%S+) (%S+)$')
  local period = math.floor(call('TIME')[1] / ${PERIOD_S})
  local noted = call('HGET', base .. 'totals', 'forwardedDigits') or ''
  local function digits_in(period) return string.match(noted, ' ' .. period .. ':(%d+)') end
  local function records_in(period, digits) return base .. 'forwarded:' .. period .. ':' .. string.sub(bucket, 1, digits) end
  for earlier = 0, ${EARLIER_PERIODS} do
    local each = period - earlier
    for digits in string.gmatch(digits_in(each) or '${MIN_DIGITS}', '%d') do
      if call('SISMEMBER', records_in(each, digits), number) == 1 then return ${addedByThisCall} end
    end
  end
  local function note(used)
    local others = ''
    for earlier = ${EARLIER_PERIODS}, 1, -1 do
      local digits = digits_in(period - earlier)
      if digits then others = others .. ' ' .. period - earlier .. ':' .. digits end
    end
    call('HSET', base .. 'totals', 'forwardedDigits', others .. ' ' .. period .. ':' .. used)
  end
  remember_forwarded = function()
    local used, before = digits_in(period), digits_in(period - 1)
    if before and not used then
      used = string.sub(before, -1)
      if used ~= '${MIN_DIGITS}' and call('SCARD', records_in(period - 1, used)) < ${SPARSE} then used = used - 1 end
      -- A period after one that needed no more digits is not noted.
      if before ~= '${MIN_DIGITS}' then note(used) end
    end
    used = used or '${MIN_DIGITS}'
    local digits = string.sub(used, -1)
    local records = records_in(period, digits)
    call('SADD', records, number)
    local count = call('SCARD', records)
    -- A new set has no expiry time yet.
    if count == 1 then call('EXPIREAT', records, (period + ${EARLIER_PERIODS + 1}) * ${PERIOD_S}) end
    if count >= ${FULL} and digits < '${MAX_DIGITS}' then note(used .. digits + 1) end
  end
end`

/** The step after the add. */
export const REMEMBER_FORWARDED = `if remember_forwarded then remember_forwarded() end`
