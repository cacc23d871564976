// Records the ends of a pipeline run's tasks, and starts what may start now.
import { decodeRunChange, RUN_KEYS, RUN_STEPS, type RunChange } from '../includes/run-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: those of a run ({@link RUN_KEYS}).
 * - ARGV: the run's id, the prefix of the channels, the run's incarnation; then, for each task, its stage, its position, the letter of its
 *   end and its value, which is '' if it has none.
 *
 * Only the first end of each task counts, so that the script can be repeated. Takes constant time for each task. Returns undefined if
 * there is no such run.
 */
export const endRunTasksScript = defineScript({
  name: 'end-run-tasks',
  kind: 'frees',
  keys: RUN_KEYS,
  args: ['id', 'channels', 'incarnation'],
  lua: `${RUN_STEPS}
if run.incarnation ~= incarnation then return false end
local now = millis()
for i = 4, #ARGV, 4 do end_task(tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], now) end
return reply(now)
`,
  answer: (reply): RunChange | undefined => (reply === null ? undefined : decodeRunChange(reply, () => undefined)),
})
