// Reads one page of the registered workers.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

interface WorkerPage {
  /** Where the next page begins; '0' after the last page. */
  readonly next: string
  /** The time by Redis's clock, in ms since 1970. */
  readonly now: number
  readonly workers: readonly {
    readonly id: string
    readonly seenAt: number
    readonly status: string
    /** '' unless slots were requested. */
    readonly slots: string
  }[]
}

/**
 * - KEYS: heartbeats.
 * - ARGV: the prefix of the fleet's keys, the silence after which a worker is forgotten (ms), 'slots' or '', the cursor of ZSCAN
 *   ('0' at first), and about how many workers to read.
 *
 * Returns the next cursor, the time, and the id, last heartbeat, status and slots of each worker. A worker that is registered
 * throughout the scan is on at least one page.
 */
export const readWorkerPage = defineScript({
  name: 'read-workers',
  kind: 'reads',
  keys: ['heartbeats'],
  args: ['base', 'silence', 'slots', 'cursor', 'count'],
  lua: `${TIME}
local now = millis()
local page = redis.call('ZSCAN', heartbeats, cursor, 'COUNT', count)
local found = { page[1], whole(now) }
for i = 1, #page[2], 2 do
  local id, seenAt = page[2][i], page[2][i + 1]
  if tonumber(seenAt) > now - tonumber(silence) then
    local worker = redis.call('HMGET', base .. 'worker:' .. id, 'status', slots)
    if worker[1] then
      for _, value in ipairs({ id, seenAt, worker[1], worker[2] or '' }) do found[#found + 1] = value end
    end
  end
end
return found
`,
  answer(reply): WorkerPage {
    const [next = '0', now, ...rows] = reply as string[]
    const workers = Array.from({ length: rows.length / 4 }, (_, i) => {
      const [id = '', seenAt, status = '', slots = ''] = rows.slice(4 * i, 4 * i + 4)
      return { id, seenAt: Number(seenAt), status, slots }
    })
    return { next, now: Number(now), workers }
  },
})
