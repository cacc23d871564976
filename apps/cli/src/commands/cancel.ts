// bullpen cancel: cancels tasks, one after the other.
import { type Cancelled, formatDuration, LONGEST_WAIT_S } from '@bullpen/contract'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { durationIn } from '../option-values.ts'
import { cancelledLine } from '../task-text.ts'
import type { Desk } from './desk.ts'

/** Goes on when the API refuses one of them. The exit code is the highest of all. */
export async function cancel({ positionals, values, client: connect, out, tell }: Desk): Promise<ExitCode> {
  const wait = durationIn('--wait', values.wait, formatDuration(LONGEST_WAIT_S * 1_000))
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
