// Starts a pipeline run.
import { decodeRunChange, RUN_KEYS, RUN_STEPS, type RunChange } from '../includes/run-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: those of a run ({@link RUN_KEYS}).
 * - ARGV: the run's id, the prefix of the channels, the settings and templates as JSON, the total timeout (ms), for how long after its
 *   timeout an unfinished run is kept (ms); then the further fields of the run's hash, each with its value.
 *
 * If the run exists, the script changes nothing.
 */
export const startRunScript = defineScript({
  name: 'start-run',
  kind: 'adds',
  keys: RUN_KEYS,
  args: ['id', 'channels', 'settings', 'totalMs', 'spareMs'],
  lua: `${RUN_STEPS}
local now = millis()
if run.state then return reply(now) end
for i = 6, #ARGV, 2 do set(ARGV[i], ARGV[i + 1]) end
stages = number('stages')
set('state', 'running')
set('createdAt', now)
set('timeoutAt', now + totalMs)
set('expiresAt', now + totalMs + spareMs)
set('source', 'active')
for _, name in ipairs({ 'fencingToken', 'emitted', 'results', 'resultBytes', 'errorCount' }) do set(name, 0) end
set('segment', 1)
set('reduce', run.reduceQueue and 'pending' or 'none')
write('SET', definition, settings)
start(0, 1, '')
touched[meta] = true
return reply(now)
`,
  answer: (reply): RunChange => decodeRunChange(reply, () => undefined),
})
