// Reads the input of a task that its pipeline run keeps.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the run's hash, and the inputs that the run keeps.
 * - ARGV: the run's incarnation; the task, as the number of its stage and its position.
 *
 * Returns the input as text, or undefined if the run does not have it.
 */
export const readKeptInput = defineScript({
  name: 'read-kept-input',
  kind: 'reads',
  keys: ['meta', 'inputs'],
  args: ['incarnation', 'task'],
  lua: `return redis.call('HGET', meta, 'incarnation') == incarnation and redis.call('HGET', inputs, task)`,
  answer: (reply) => (reply as string | null) ?? undefined,
})
