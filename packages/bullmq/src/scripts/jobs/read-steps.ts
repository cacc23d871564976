// Reads the results of a task's finished steps.
import { defineScript } from '../script.ts'

/** The prefix of a finished step's field in the job's hash. The field holds the step's result as JSON. */
export const STEP_FIELD = 'once:'

/**
 * - KEYS: the job.
 * - ARGV: the prefix of the steps' fields.
 *
 * Returns the result of each step, by the step's name.
 */
export const readSteps = defineScript({
  name: 'read-steps',
  kind: 'reads',
  keys: ['job'],
  args: ['prefix'],
  lua: `
local found = {}
for _, field in ipairs(redis.call('HKEYS', job)) do
  if string.sub(field, 1, #prefix) == prefix then
    found[#found + 1] = string.sub(field, #prefix + 1)
    found[#found + 1] = redis.call('HGET', job, field)
  end
end
return found
`,
  answer(reply): ReadonlyMap<string, string> {
    const found = reply as string[]
    return new Map(Array.from({ length: found.length / 2 }, (_, i) => [found[2 * i] ?? '', found[2 * i + 1] ?? '']))
  },
})
