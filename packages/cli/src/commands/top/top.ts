// bullpen top: shows queues, workers, running tasks and errors, on a screen that it refreshes, or as lines.
import { setTimeout as sleep } from 'node:timers/promises'
import { ProblemError } from '@bullpen/client'
import { milliseconds } from '@bullpen/contract'
import { parseDurationWithin } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import type { Output } from '../../output/output.ts'
import { frameLines } from '../../output/top/frame.ts'
import { isTemporary } from '../../temporary-error.ts'
import type { CommandContext } from '../command-context.ts'
import { showLive } from './live.ts'
import { type Snapshot, takeSnapshot } from './snapshot.ts'

const INTERVALS = { min: '200ms', max: '1h' } as const
const DEFAULT_INTERVAL = '2s'
/** The fleet is read again anyway, and a failure should be visible at once. */
const RETRY_FOR = '200ms'

export async function top(context: CommandContext): Promise<ExitCode> {
  const { values, out, connect, openScreen } = context
  if (values.once && values.interval !== undefined) throw new UsageError('--once and --interval cannot be combined')
  const interval = parseDurationWithin('--interval', values.interval, INTERVALS) ?? DEFAULT_INTERVAL
  const client = connect(values.once ? {} : { retryFor: RETRY_FOR })
  const filter = values.queue ? { queue: values.queue } : {}
  const options = {
    read: (signal?: AbortSignal) => takeSnapshot(client, { ...filter, ...(signal && { signal }) }),
    intervalMs: milliseconds(interval),
  }
  if (values.once) await print(out, await options.read())
  else if (openScreen === undefined || out.json) await printForever(context, options)
  else {
    using screen = openScreen()
    await showLive(screen, options)
  }
  return EXIT.success
}

interface PrintOptions {
  readonly read: () => Promise<Snapshot>
  readonly intervalMs: number
}

/** Prints a snapshot at each interval, until the reader has closed the pipe. @throws errors that are not temporary. */
async function printForever({ out, reportError }: CommandContext, { read, intervalMs }: PrintOptions): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    const startedAt = performance.now()
    try {
      const isRead = await print(out, await read(), isFirst ? [] : [''])
      if (!isRead) return
    } catch (error) {
      if (!(error instanceof ProblemError && isTemporary(error))) throw error
      reportError(error)
    }
    await sleep(Math.max(0, startedAt + intervalMs - performance.now()))
  }
}

/** Prints everything, however much it is. Resolves to false if the reader has closed the pipe. */
function print(out: Output, snapshot: Snapshot, before: readonly string[] = []): Promise<boolean> {
  return out.answer(snapshot, ({ columns = Number.POSITIVE_INFINITY, paint }) => [
    ...before,
    ...frameLines({ snapshot }, { columns, rows: Number.POSITIVE_INFINITY, paint }),
  ])
}
