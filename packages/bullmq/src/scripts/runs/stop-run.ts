// Cancels a pipeline run by request.
import { decodeRunChange, RUN_KEYS, RUN_STEPS, type RunChange } from '../includes/run-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: those of a run ({@link RUN_KEYS}).
 * - ARGV: the run's id, the prefix of the channels, who cancels the run.
 *
 * A run that is stopping or has ended stays as it is. Returns undefined if there is no such run.
 */
export const stopRunScript = defineScript({
  name: 'stop-run',
  kind: 'frees',
  keys: RUN_KEYS,
  args: ['id', 'channels', 'by'],
  lua: `${RUN_STEPS}
if not run.state then return false end
local now = millis()
stop('cancelled', by, now)
return reply(now)
`,
  answer: (reply): RunChange | undefined => (reply === null ? undefined : decodeRunChange(reply, () => undefined)),
})
