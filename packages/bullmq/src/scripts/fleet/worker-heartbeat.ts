// Stores a worker's status, and returns the commands that are addressed to the worker.
import type { CommandSpec } from '@bullpen/contract/internal'
import type { Command, LogLevelOverride } from '@bullpen/engine/internal'
import { FORGET_WORKER } from '../includes/forget-worker.ts'
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

export interface HeartbeatReply {
  /** The commands that the worker has not responded to, oldest first. */
  readonly commands: readonly Command[]
  /** The ids of up to ten commands whose queue settings may not have been applied. */
  readonly unapplied: readonly string[]
  /** Changes whenever any queue's settings change. */
  readonly revision: string
  readonly logLevel: LogLevelOverride | undefined
}

/** Decodes the stored log level of all processes. */
export function decodeLogLevel(stored: string | null): LogLevelOverride | undefined {
  return stored === null || stored === '' ? undefined : (JSON.parse(stored) as LogLevelOverride)
}

/**
 * - KEYS: heartbeats, the worker, its inbox, the unapplied commands, the revision of the queue settings, the log
 *   level of all processes.
 * - ARGV: the prefix of the fleet's keys, the worker's id, its status and slots as strings, the silence after which a worker is
 *   forgotten (ms), the maximum number of commands to return.
 *
 * Also forgets up to twenty silent workers.
 */
export const heartbeat = defineScript({
  name: 'worker-heartbeat',
  kind: 'frees',
  keys: ['heartbeats', 'worker', 'inbox', 'unapplied', 'settingsRevision', 'logLevel'],
  args: ['base', 'id', 'status', 'slots', 'silence', 'limit'],
  lua: `${TIME}${FORGET_WORKER}
local now = millis()
redis.call('HSET', worker, 'status', status, 'slots', slots)
redis.call('PEXPIRE', worker, silence)
redis.call('ZADD', heartbeats, whole(now), id)
local forgotten = whole(now - tonumber(silence))
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', heartbeats, '-inf', forgotten, 'LIMIT', 0, 20)) do
  if not forget_worker(base, silent, now) then break end
end
local commands = {}
for _, each in ipairs(redis.call('ZRANGE', inbox, 0, tonumber(limit) - 1)) do
  local command = redis.call('HMGET', base .. 'command:' .. each, 'spec', 'by', 'at')
  if command[1] then
    for _, value in ipairs({ each, command[1], command[2], command[3] }) do commands[#commands + 1] = value end
  else
    redis.call('ZREM', inbox, each)
  end
end
return { commands, redis.call('ZRANGE', unapplied, 0, 9), redis.call('GET', settingsRevision) or '', redis.call('GET', logLevel) or '' }
`,
  answer(reply): HeartbeatReply {
    const [rows, unapplied, revision, level] = reply as [string[], string[], string, string]
    const commands = Array.from({ length: rows.length / 4 }, (_, i) => {
      const [id = '', spec = '', by = '', at] = rows.slice(4 * i, 4 * i + 4)
      return { id, spec: JSON.parse(spec) as CommandSpec, by, at: Number(at) }
    })
    return { commands, unapplied, revision, logLevel: decodeLogLevel(level) }
  },
})
