// Maintains the index of dead tasks by fingerprint, which identifies the kind of the error (engine, task/fingerprint.ts).
//
// The script that ends a task as dead also adds the task to the sorted set of its fingerprint, and stores the fingerprint, the state
// and the code in the task's field `fingerprint`. Every command that removes a task from the failed set or deletes it also removes
// it from that sorted set, because the status index watches these commands (./status-index.ts). Counting by fingerprint therefore
// reads the sizes of the sets. A completed task takes no part in this.
//
// A fingerprint is forgotten when its last task has left. A queue keeps at most 1,000 fingerprints apart. Tasks with any other kind
// of error then share the fingerprint `other`, but keep their own state and code.
import { MAX_FINGERPRINTS, OTHER_FINGERPRINT } from '@bullpen/engine/internal'

const OTHER = JSON.stringify({
  state: '',
  code: OTHER_FINGERPRINT,
  message: `errors after the first ${MAX_FINGERPRINTS} kinds`,
})

/**
 * Two Lua functions, which need the local variable `call`. `home` is the prefix of the queue's keys.
 *
 * - `enter_fingerprint(home, id, score, given)`: adds a dead task to the index. `given` is the result of `encodeKind`.
 * - `leave_fingerprint(home, id, stored)`: removes a task from the index. `stored` is the task's field `fingerprint`, if it has one.
 */
export const FINGERPRINTS = `
    local function enter_fingerprint(home, id, score, given)
      local fingerprint, rest, info = string.match(given, '^(%S+)([^\\n]*)\\n(.*)$')
      local infos = home .. 'fingerprints'
      if call('HEXISTS', infos, fingerprint) == 0 then
        if call('HLEN', infos) >= ${MAX_FINGERPRINTS} then
          fingerprint = '${OTHER_FINGERPRINT}'
          call('HSETNX', infos, fingerprint, '${OTHER}')
        else
          call('HSET', infos, fingerprint, info)
          call('RPUSH', home .. 'new-fingerprints', fingerprint)
          call('LTRIM', home .. 'new-fingerprints', -${MAX_FINGERPRINTS}, -1)
        end
      end
      call('HSET', home .. id, 'fingerprint', fingerprint .. rest)
      call('ZADD', home .. 'fingerprint:' .. fingerprint, score, id)
    end
    local function leave_fingerprint(home, id, stored)
      if not stored then return end
      local fingerprint = string.match(stored, '^%S+')
      local set = home .. 'fingerprint:' .. fingerprint
      if call('ZREM', set, id) == 1 and call('EXISTS', set) == 0 then call('HDEL', home .. 'fingerprints', fingerprint) end
    end`
