// Returns which of the given tasks do not exist in their queue.
import { OUTBOX_SPAN, type OutboxSpan, outboxSpan } from '../includes/outbox-span.ts'
import { defineScript } from '../script.ts'

export interface FoundMissing {
  /** The outbox of the queue. */
  readonly outbox: OutboxSpan
  readonly missing: ReadonlySet<string>
}

/**
 * - KEYS: the run's outbox.
 * - ARGV: the prefix of the queue's keys; then the ids of the tasks.
 *
 * All values are as of the same moment.
 */
export const findMissingTasksScript = defineScript({
  name: 'find-missing-tasks',
  kind: 'reads',
  keys: ['outbox'],
  args: ['base'],
  lua: `${OUTBOX_SPAN}
local missing = {}
for i = 2, #ARGV do
  if redis.call('EXISTS', base .. ARGV[i]) == 0 then missing[#missing + 1] = ARGV[i] end
end
return { outbox_span(outbox), missing }
`,
  answer(reply): FoundMissing {
    const [span, missing] = reply as [unknown, string[]]
    return { outbox: outboxSpan(span), missing: new Set(missing) }
  },
})
