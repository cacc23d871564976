// Counts a task that a consumer ended because of a cancel rule.
import { defineScript } from '../script.ts'

/** KEYS: the rule's progress. Returns nothing. */
export const countEndedScript = defineScript({
  name: 'count-ended',
  kind: 'frees',
  keys: ['progress'],
  args: [],
  lua: `redis.call('HINCRBY', progress, 'ended', 1)`,
})
