// bullpen drain: ends pools, and waits for it when told to; or tells beforehand what that would interrupt.
import type { Client } from '@bullpen/client'
import { type CommandView, type Duration, milliseconds } from '@bullpen/contract'
import { DRAIN_MODES } from '@bullpen/contract/internal'
import { durationIn, oneOf } from '../arguments/option-values.ts'
import { resolved, type Target, targetIn } from '../arguments/target.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { targetText } from '../output/command-text.ts'
import { forecastLines } from '../output/forecast-text.ts'
import type { CommandContext } from './command-context.ts'
import { forecast } from './drain-forecast.ts'
import { exitCodeOf, given } from './fleet-control.ts'
import { LONGEST_WAIT } from './until-ended.ts'
import { untilPoolsEnded } from './until-pools-ended.ts'

export async function drain(desk: CommandContext): Promise<ExitCode> {
  const { values } = desk
  const target = targetIn(values)
  const mode = values.mode === undefined ? 'soft_timeout' : oneOf('--mode', values.mode, DRAIN_MODES)
  const timeout = durationIn('--timeout', values.timeout)
  const wait = durationIn('--wait', values.wait, LONGEST_WAIT)
  if (timeout !== undefined && mode !== 'soft_timeout') throw new UsageError('--timeout is for the mode soft_timeout')
  if (values['dry-run'] && wait !== undefined) throw new UsageError('--dry-run and --wait contradict each other')
  const client = desk.client()
  const whole = await resolved(client, target)
  if (values['dry-run']) return await dryRun(desk, client, whole, { mode, timeout })
  const began = performance.now()
  const command = await given(desk, client, {
    action: 'drain',
    ...whole,
    mode,
    ...(timeout === undefined ? {} : { timeout }),
  })
  if (wait === undefined || command.outcome === 'refused') return exitCodeOf(command)
  return await untilPoolsEnded(desk.out, client, whole, processesIn(command), began + milliseconds(wait))
}

async function dryRun(
  { out }: CommandContext,
  client: Client,
  target: Target,
  { mode, timeout }: { readonly mode: (typeof DRAIN_MODES)[number]; readonly timeout: Duration | undefined },
): Promise<ExitCode> {
  const fleet = await client.fleet(target.queue === undefined ? {} : { queue: target.queue })
  const slots = await client.slots(target)
  const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout)
  const workers = forecast(fleet, slots, target, { mode, timeoutMs })
  const answer = { dryRun: { ...target, mode, workers } }
  await out.answer(answer, (look) => forecastLines(workers, targetText(target), look))
  return workers.some(({ maySignal, mayFail }) => maySignal + mayFail > 0) ? EXIT.otherwise : EXIT.done
}

function processesIn({ answers }: CommandView): readonly string[] {
  return answers.map(({ worker }) => worker)
}
