// Deletes the keys and entries that have no owner.
import { checking, stateOfEach } from '../includes/subject-state.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the key of the first subject.
 * - ARGV: the subjects, as `encodeSubject` encodes them.
 *
 * Returns the state of each subject before the script, like `check-orphans`, and deletes each subject whose state is `no_owner`.
 */
export const deleteOrphans = defineScript({
  name: 'delete-orphans',
  kind: 'frees',
  keys: ['first'],
  args: [],
  lua: checking(`    if not is_entry then
      redis.call('DEL', key)
      for _, each in ipairs(with) do redis.call('DEL', each) end
    elseif kind == 'hash' then redis.call('HDEL', key, entry)
    elseif kind == 'zset' then redis.call('ZREM', key, entry)
    elseif kind == 'set' then redis.call('SREM', key, entry)
    else redis.call('LREM', key, 0, entry)
    end`),
  answer: stateOfEach,
})
