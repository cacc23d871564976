// Reads a pipeline run.
import { RUN_KEYS } from '../includes/run-steps.ts'
import { defineScript } from '../script.ts'

export interface StoredRun {
  readonly fields: readonly string[]
  /** The settings and templates as JSON. */
  readonly definition: string
  /** How many items wait for each stage, and at last, how many outputs wait for the rest of a batch of results. */
  readonly waiting: readonly number[]
}

/**
 * - KEYS: those of a run ({@link RUN_KEYS}).
 *
 * Returns a {@link StoredRun}, or undefined if there is no such run.
 */
export const readRunScript = defineScript({
  name: 'read-run',
  kind: 'reads',
  keys: RUN_KEYS,
  args: [],
  lua: `
local fields = redis.call('HGETALL', meta)
if #fields == 0 then return false end
local waiting = {}
for stage = 1, redis.call('HGET', meta, 'stages') + 1 do
  waiting[stage] = redis.call('LLEN', base .. 'waiting:' .. stage)
end
return { fields, redis.call('GET', definition), waiting }
`,
  answer(reply): StoredRun | undefined {
    if (reply === null) return undefined
    const [fields, definition, waiting] = reply as [string[], string, number[]]
    return { fields, definition, waiting }
  },
})
