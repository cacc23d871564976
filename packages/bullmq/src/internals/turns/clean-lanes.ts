// Lua that lets BullMQ's clean of waiting jobs also delete the tasks in lanes.

/** The last lines of BullMQ's script, which follow the clean of one list or set. */
const LAST = 'rcall("XADD", KEYS[2], "*", "event", "cleaned", "count", result[2])'

/**
 * Lua lines that continue the clean of `wait` or `prioritized` in each lane, with BullMQ's own functions, until the
 * script has deleted `limit` jobs. As in BullMQ, the oldest tasks of each list are cleaned first.
 */
const CLEAN_LANES = `
if ARGV[4] == 'wait' or ARGV[4] == 'prioritized' then
  for _, lane in ipairs(call('ZRANGE', base .. 'lanes', 0, -1)) do
    local left = limit - result[2]
    if limit > 0 and left <= 0 then break end
    local cleaned
    if ARGV[4] == 'wait' then
      cleaned = cleanList(turns().lane_list(base, lane), ARGV[1], limit > 0 and -left or 0, -1, ARGV[2], true, repeatKey)
    else
      local most = limit > 0 and left or 0
      cleaned = cleanSet(turns().lane_priorities(base, lane), ARGV[1], '+inf', ARGV[2], most, { 'timestamp' }, false, repeatKey)
    end
    if cleaned[2] > 0 then
      for _, id in ipairs(cleaned[1]) do table.insert(result[1], id) end
      result[2] = result[2] + cleaned[2]
      turns().note_left_lane(lane, cleaned[2])
    end
  end
end
`

/** Returns the text of BullMQ's script `cleanJobsInSet`, which then also cleans the lanes. */
export function withCleanLanes(text: string): string {
  return text.replace(LAST, () => `${CLEAN_LANES}${LAST}`)
}
