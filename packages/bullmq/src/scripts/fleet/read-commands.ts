// Reads one fleet command, or one page of the newest commands.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

export interface CommandPage {
  /** The time by Redis's clock, in ms since 1970. */
  readonly now: number
  /** The position of the last command that was examined; '' if there was none. */
  readonly last: string
  readonly commands: readonly {
    readonly id: string
    /** The fields of the stored command. */
    readonly fields: ReadonlyMap<string, string>
    /** The last heartbeat of each worker that has not responded, in ms since 1970; 0 if the worker was forgotten. */
    readonly seen: ReadonlyMap<string, string>
  }[]
}

/**
 * - KEYS: all commands, heartbeats.
 * - ARGV: the prefix of the fleet's keys, either an id or '', and for a page the position before which it begins ('+inf' at
 *   first) and how many commands to read.
 *
 * Returns the time, the position of the last command, and for each command its id, its fields, and the last heartbeat of each
 * worker whose response is pending.
 */
export const readCommandPage = defineScript({
  name: 'read-commands',
  kind: 'reads',
  keys: ['commands', 'heartbeats'],
  args: ['base', 'id', 'before', 'limit'],
  lua: `${TIME}
local ids = { id, '' }
if id == '' then ids = redis.call('ZREVRANGEBYSCORE', commands, before, '-inf', 'WITHSCORES', 'LIMIT', 0, limit) end
local found = { whole(millis()), ids[#ids] or '' }
for at = 1, #ids, 2 do
  local fields = redis.call('HGETALL', base .. 'command:' .. ids[at])
  if #fields > 0 then
    local seen = {}
    for i = 1, #fields, 2 do
      local worker = fields[i + 1] == 'pending' and string.match(fields[i], '^response:(.*)$')
      if worker then
        seen[#seen + 1] = worker
        seen[#seen + 1] = redis.call('ZSCORE', heartbeats, worker) or '0'
      end
    end
    found[#found + 1] = { ids[at], fields, seen }
  end
end
return found
`,
  answer(reply): CommandPage {
    const [now, last, ...found] = reply as [string, string, ...[string, string[], string[]][]]
    const commands = found.map(([id, fields, seen]) => ({ id, fields: pairs(fields), seen: pairs(seen) }))
    return { now: Number(now), last, commands }
  },
})

function pairs(flat: readonly string[]): Map<string, string> {
  return new Map(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']))
}
