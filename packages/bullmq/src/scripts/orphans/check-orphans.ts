// Checks whether keys and entries have an owner.
import { checking, stateOfEach } from '../includes/subject-state.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the key of the first subject.
 * - ARGV: the subjects, as `encodeSubject` encodes them.
 *
 * Returns the state of each subject. Takes Redis about 1 µs for each condition, and much longer for a condition of the kind
 * `listed`.
 */
export const checkOrphans = defineScript({
  name: 'check-orphans',
  kind: 'reads',
  keys: ['first'],
  args: [],
  lua: checking(),
  answer: stateOfEach,
})
