// Defines the steps of an enqueue that is forwarded from an outbox: they remember, for at least a day, that it was stored.
//
// A forwarder adds a follow-up task to its target and then deletes the entry, in two scripts, because the two queues may be on
// different shards. If it dies in between, or a reply is lost, the entry is delivered again. The follow-up's id is derived from the
// entry, but the task may have run and been removed by then, so its job is not enough: the script that adds the task also stores a
// record of the entry. Records do not depend on the target's retention.
//
// A record must take little memory, because there is one for each follow-up of the last day. It is a number of 64 bits without a
// value, in a set: Redis stores up to 512 numbers of a set in 8 bytes each. Time is divided into periods of six hours, and the
// records of a period are divided over 4,096 sets, each of which expires as a whole. A record is kept for 24 to 30 hours. The number
// and the 12 bits that select the set are parts of a digest of the entry, so two entries have the same record with a probability
// of 1 in 10^9 among ten million.

const PERIOD_S = 21_600
/** The number of earlier periods in which a record may be. */
const EARLIER_PERIODS = 4

/**
 * The first step before the add. `forwarded` is '', or a record: a number and three hexadecimal digits, separated by a blank. If
 * the record is stored, the script returns at once, as if this call had stored the task. `addedByThisCall` is that reply. Otherwise,
 * the step defines `remember_forwarded()`, which stores the record.
 */
export const recallForwarded = (addedByThisCall: number): string => `
local remember_forwarded
if forwarded ~= '' then
  local number, bucket = string.match(forwarded, '^(%S+) (%S+)$')
  local period = math.floor(call('TIME')[1] / ${PERIOD_S})
  for earlier = 0, ${EARLIER_PERIODS} do
    if call('SISMEMBER', base .. 'forwarded:' .. period - earlier .. ':' .. bucket, number) == 1 then return ${addedByThisCall} end
  end
  remember_forwarded = function()
    local records = base .. 'forwarded:' .. period .. ':' .. bucket
    call('SADD', records, number)
    -- A new set has no expiry time yet.
    if call('SCARD', records) == 1 then call('EXPIREAT', records, (period + ${EARLIER_PERIODS + 1}) * ${PERIOD_S}) end
  end
end`

/** The step after the add. */
export const REMEMBER_FORWARDED = `if remember_forwarded then remember_forwarded() end`
