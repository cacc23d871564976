// bullpen limits: shows the limits of a queue that are in force, and its concurrency keys with what keeps each from starting tasks.
import { KEY_ORDERS, PAGINATION } from '@bullpen/contract/internal'
import { parseChoice, parseCount, requireValue } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { limitsLines } from '../../output/fleet/limits-text.ts'
import { count } from '../../output/format.ts'
import type { CommandContext } from '../command-context.ts'

export async function limits({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const queue = requireValue('--queue QUEUE', values.queue)
  const { sort, limit, 'concurrency-key': concurrencyKey } = values
  if (concurrencyKey !== undefined && (sort ?? limit) !== undefined) {
    throw new UsageError('--concurrency-key selects a single key; omit --sort and --limit')
  }
  const options = {
    ...(concurrencyKey !== undefined && { concurrencyKey: requireValue('--concurrency-key KEY', concurrencyKey) }),
    ...(sort !== undefined && { sort: parseChoice('--sort', sort, KEY_ORDERS) }),
    ...(limit !== undefined && { limit: parseCount('--limit', limit, PAGINATION.max) }),
  }
  const view = await connect().limits(queue, options)
  await out.answer(view, (layout) => limitsLines(view, layout))
  const { items, next, exact } = view.keys
  if (next !== undefined) {
    const isLongest = limit !== undefined && parseCount('--limit', limit, PAGINATION.max) === PAGINATION.max
    const advice = isLongest
      ? 'so use --concurrency-key, or the cursor of GET /v1/queues/{queue}/limits'
      : 'so use a higher --limit or --concurrency-key'
    out.remark(`stopped after ${count(items.length, 'key')}; there are more, ${advice}`)
  }
  if (!exact) out.remark('the queue has too many keys or active tasks to examine all of them; some keys may be missing')
  return EXIT.success
}
