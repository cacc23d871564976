// Reads which tasks a pipeline run awaits, a sample at a time.
import { OUTBOX_SPAN, type OutboxSpan, outboxSpan } from '../includes/outbox-span.ts'
import { defineScript } from '../script.ts'

export interface SampledTasks {
  readonly incarnation: string
  /** The outbox of the run. */
  readonly outbox: OutboxSpan
  /** The names of those of the given tasks that the run still awaits. */
  readonly awaited: readonly string[]
  /** The names of the next tasks that the run awaits. */
  readonly sample: readonly string[]
  /** Where the sample after that begins: '0' after the last one. */
  readonly cursor: string
}

/**
 * - KEYS: the run's hash, its tasks, its outbox.
 * - ARGV: where the sample begins, about how many tasks it contains; then the names of tasks.
 *
 * All values are as of the same moment. Returns undefined if there is no such run.
 */
export const sampleRunTasksScript = defineScript({
  name: 'sample-run-tasks',
  kind: 'reads',
  keys: ['meta', 'tasks', 'outbox'],
  args: ['cursor', 'count'],
  lua: `${OUTBOX_SPAN}
local incarnation = redis.call('HGET', meta, 'incarnation')
if not incarnation then return false end
local awaited = {}
for i = 3, #ARGV do
  if redis.call('SISMEMBER', tasks, ARGV[i]) == 1 then awaited[#awaited + 1] = ARGV[i] end
end
local sample = redis.call('SSCAN', tasks, cursor, 'COUNT', count)
return { incarnation, outbox_span(outbox), awaited, sample[2], sample[1] }
`,
  answer(reply): SampledTasks | undefined {
    if (reply === null) return undefined
    const [incarnation, span, awaited, sample, cursor] = reply as [string, unknown, string[], string[], string]
    return { incarnation, outbox: outboxSpan(span), awaited, sample, cursor }
  },
})
