// bullpen cancel: cancels tasks, one after the other, or all that a filter fits.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import { type Cancellation, type Cancelled, formatDuration, milliseconds } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import { durationIn, presentIn } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { cancellationLine, cancelledLine } from '../output/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { commandOf } from './command-table.ts'
import { LONGEST_WAIT } from './until-ended.ts'

export async function cancel(desk: CommandContext): Promise<ExitCode> {
  const { positionals, values } = desk
  const given = FILTER.filter((name) => values[name] !== undefined).map((name) => `--${name}`)
  if (positionals.length > 0 && given.length > 0) {
    throw new UsageError(`cancel takes IDs or ${given.join(', ')}, not both`)
  }
  if (given.length > 0) return await cancelWhere(desk)
  if (positionals.length === 0) throw new UsageError(`cancel needs ${commandOf('cancel').usage}`)
  return await cancelEach(desk)
}

const LOOK_EVERY_MS = 500

const FILTER = ['queue', 'task', 'tag', 'older-than'] as const

async function cancelWhere({ values, client: connect, out }: CommandContext): Promise<ExitCode> {
  const { task, tag: tags = [] } = values
  const queue = presentIn('--queue QUEUE', values.queue)
  const olderThan = durationIn('--older-than', values['older-than'])
  const [tag] = tags
  if (tags.length > 1) throw new UsageError('cancel takes one --tag')
  const wait = durationIn('--wait', values.wait, LONGEST_WAIT)
  const client = connect()
  const cancellation = await client.cancelMany({
    queue,
    ...(task !== undefined && { task }),
    ...(tag !== undefined && { tag }),
    ...(olderThan !== undefined && { olderThan }),
  })
  await out.answer(cancellation, () => [cancellationLine(cancellation)])
  if (wait === undefined) return EXIT.done
  const last = await untilDone(client, cancellation, performance.now() + milliseconds(wait))
  await out.answer(last, () => [cancellationLine(last)])
  return last.status === 'done' ? EXIT.done : EXIT.otherwise
}

/** As it stands when nothing is left that it covers, or when the time is up. `until`: on the monotonic clock, in ms. */
async function untilDone(client: Client, { id }: Cancellation, until: number): Promise<Cancellation> {
  for (;;) {
    const cancellation = await client.cancellation(id)
    const leftMs = until - performance.now()
    if (cancellation.status === 'done' || leftMs <= 0) return cancellation
    await sleep(Math.min(LOOK_EVERY_MS, leftMs))
  }
}

/** Goes on when the API refuses one of them. The exit code is the highest of all. */
async function cancelEach({ positionals, values, client: connect, out, tell }: CommandContext): Promise<ExitCode> {
  const wait = durationIn('--wait', values.wait, formatDuration(MAX_WAIT_S * 1_000))
  const client = connect()
  let worst: ExitCode = EXIT.done
  for (const id of positionals) {
    const code = await client.cancel(id, wait === undefined ? {} : { wait }).then(async (cancelled) => {
      await out.answer(cancelled, (look) => [cancelledLine(cancelled, look)])
      return exitCodeOf(cancelled, wait !== undefined)
    }, tell)
    if (code > worst) worst = code
    if (code === EXIT.unreachable) break
  }
  return worst
}

/** One that was cancelled before is cancelled. One that has been told counts unless its end was waited for. */
function exitCodeOf({ outcome, status }: Cancelled, waited: boolean): ExitCode {
  const cancelled = status === 'cancelled' || (outcome === 'cancelling' && !waited)
  return cancelled ? EXIT.done : EXIT.otherwise
}
