// bullpen fleet, queues, limits and audit: show the fleet, its queues, the limits of a queue, and the commands that were sent.
import { formatDuration } from '@bullpen/contract'
import { KEY_ORDERS, MAX_WAIT_S, PAGINATION } from '@bullpen/contract/internal'
import {
  parseChoice,
  parseCount,
  parseDuration,
  requireValue,
  withoutUndefined,
} from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { auditLines, commandLines } from '../../output/fleet/command-text.ts'
import { fleetLines } from '../../output/fleet/fleet-text.ts'
import { limitsLines } from '../../output/fleet/limits-text.ts'
import { queueLines } from '../../output/fleet/queue-text.ts'
import { count, plain } from '../../output/format.ts'
import type { CommandContext } from '../command-context.ts'
import { exitCodeOf } from './fleet-control.ts'

export async function fleet({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const filter = values.queue ? { queue: values.queue } : {}
  const client = connect()
  const view = await client.fleet(filter)
  const slots = values.slots ? await client.slots(filter) : undefined
  await out.answer(view, (layout) => fleetLines(view, slots, layout))
  // The slots come from a second API response. In text form, the lines above already contain both responses.
  if (out.json && slots !== undefined) await out.answer({ slots }, () => [])
  return EXIT.success
}

export async function queues({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const page = await connect().queues(values.queue ? { queue: values.queue } : {})
  await out.answer(page, (layout) => queueLines(page, layout))
  return EXIT.success
}

export async function limits({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const queue = requireValue('--queue QUEUE', values.queue)
  const { sort, limit, 'concurrency-key': concurrencyKey } = values
  if (concurrencyKey !== undefined && (sort ?? limit) !== undefined) {
    throw new UsageError('--concurrency-key selects a single key; omit --sort and --limit')
  }
  const options = withoutUndefined({
    concurrencyKey: concurrencyKey === undefined ? undefined : requireValue('--concurrency-key KEY', concurrencyKey),
    sort: parseChoice('--sort', sort, KEY_ORDERS),
    limit: parseCount('--limit', limit, PAGINATION.max),
  })
  const view = await connect().limits(queue, options)
  await out.answer(view, (layout) => limitsLines(view, layout))
  const { items, next, exact } = view.keys
  if (next !== undefined) {
    const advice =
      options.limit === PAGINATION.max
        ? 'so use --concurrency-key, or the cursor of GET /v1/queues/{queue}/limits'
        : 'so use a higher --limit or --concurrency-key'
    out.remark(`stopped after ${count(items.length, 'key')}; there are more, ${advice}`)
  }
  if (!exact) out.remark('the queue has too many keys or active tasks to examine all of them; some keys may be missing')
  return EXIT.success
}

export async function audit({ positionals: [id], values, connect, out }: CommandContext): Promise<ExitCode> {
  const wait = parseDuration('--wait', values.wait, formatDuration(MAX_WAIT_S * 1_000))
  const limit = parseCount('--limit', values.limit, PAGINATION.max)
  if (id === undefined && wait !== undefined) throw new UsageError('--wait requires the ID of a command')
  if (id !== undefined && limit !== undefined) throw new UsageError('--limit cannot be combined with an ID')
  const client = connect()
  if (id === undefined) {
    const commands = await client.commands(withoutUndefined({ limit }))
    await out.answer({ commands }, (layout) => auditLines(commands, layout))
    if (commands.length === 0) out.remark('no commands have been sent')
    return EXIT.success
  }
  const command = await client.commandById(id, withoutUndefined({ wait }))
  await out.answer(command, (layout) => [`by ${plain(command.by)}, ${command.at}`, ...commandLines(command, layout)])
  return wait === undefined ? EXIT.success : exitCodeOf(command)
}
