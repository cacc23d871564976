// What the commands that change all matching tasks of a queue share: they show how many tasks match, ask, and wait until it is done.
import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { CommandContext } from './command-context.ts'

const POLL_MS = 500

interface FilteredChange<P> {
  readonly verb: 'cancel' | 'retry' | 'delete'
  readonly preview: () => Promise<P>
  /** Describes the matching tasks. */
  readonly describe: (preview: P) => string
}

/** @throws UsageError unless the user can be asked, or has given --yes or --dry-run. */
export function requireConsent(command: string, { values, isInteractive, out }: CommandContext): void {
  if (values['dry-run'] || values.yes || (isInteractive && !out.json)) return
  throw new UsageError(
    `${command} --queue asks for confirmation, which requires a terminal; add --yes to confirm, or --dry-run to count the tasks`,
  )
}

/** Shows how many tasks match, and asks whether to change them. Returns undefined if they are to be changed, and else the exit code. */
export async function confirmChange<P extends { readonly matching: number; readonly exact: boolean }>(
  { values, out, confirm }: CommandContext,
  { verb, preview, describe }: FilteredChange<P>,
): Promise<ExitCode | undefined> {
  if (values.yes && !values['dry-run']) return undefined
  const found = await preview()
  if (values['dry-run']) {
    await out.answer(found, () => [`would ${verb} ${describe(found)}`])
    return EXIT.success
  }
  if (found.exact && found.matching === 0) {
    out.remark(`nothing to ${verb}: ${describe(found)}`)
    return EXIT.success
  }
  if (await confirm(`${verb.replace(/^./, (letter) => letter.toUpperCase())} ${describe(found)}?`)) return undefined
  out.remark(`nothing was ${verb === 'cancel' ? 'cancelled' : 'changed'}`)
  return EXIT.incomplete
}

/** Reads a request until it is over or the time is up. `until` is in ms on the monotonic clock. `onWait` is called before each pause. */
export async function pollUntil<T>(
  read: () => Promise<T>,
  { isOver, until, onWait }: { isOver: (found: T) => boolean; until: number; onWait?: (found: T) => void },
): Promise<T> {
  for (;;) {
    const found = await read()
    const remainingMs = until - performance.now()
    if (isOver(found) || remainingMs <= 0) return found
    onWait?.(found)
    await sleep(Math.min(POLL_MS, remainingMs))
  }
}
