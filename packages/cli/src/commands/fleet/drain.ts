// bullpen drain: drains pools. With --wait, waits until they have ended. With --dry-run, forecasts the effect without draining.
import type { Client } from '@bullpen/client'
import { type DrainMode, type Duration, milliseconds } from '@bullpen/contract'
import { DRAIN_MODES } from '@bullpen/contract/internal'
import { parseChoice, parseDuration, withoutUndefined } from '../../arguments/option-values.ts'
import { parseTarget, resolveWorker, type Target } from '../../arguments/target.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { WHILE_WAITING } from '../../connection.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { targetText } from '../../output/fleet/command-text.ts'
import { forecastLines } from '../../output/fleet/forecast-text.ts'
import type { Output } from '../../output/output.ts'
import type { CommandContext } from '../command-context.ts'
import { MAX_WAIT } from '../wait-for-task.ts'
import { forecastDrain } from './drain-forecast.ts'
import { exitCodeOf, sendCommand } from './fleet-control.ts'
import { waitForPools } from './wait-for-pools.ts'

export async function drain(context: CommandContext): Promise<ExitCode> {
  const { values, out } = context
  const given = parseTarget(values)
  const mode = parseChoice('--mode', values.mode, DRAIN_MODES) ?? 'soft_timeout'
  const timeout = parseDuration('--timeout', values.timeout)
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  if (timeout !== undefined && mode !== 'soft_timeout') throw new UsageError('--timeout requires --mode soft_timeout')
  if (values['dry-run'] && wait !== undefined) throw new UsageError('--dry-run and --wait cannot be combined')
  const client = context.connect()
  const target = await resolveWorker(client, given)
  if (values['dry-run']) return await dryRun(out, client, target, { mode, timeout })
  const startedAt = performance.now()
  const order = withoutUndefined({ action: 'drain', ...target, mode, timeout })
  const command = await sendCommand(context, client, order)
  if (wait === undefined || command.outcome === 'refused') return exitCodeOf(command)
  const workers = command.responses.map(({ worker }) => worker)
  return await waitForPools(out, context.connect(WHILE_WAITING), {
    target,
    workers,
    waitUntil: startedAt + milliseconds(wait),
  })
}

interface Plan {
  readonly mode: DrainMode
  readonly timeout: Duration | undefined
}

async function dryRun(out: Output, client: Client, target: Target, { mode, timeout }: Plan): Promise<ExitCode> {
  const fleet = await client.fleet(withoutUndefined({ queue: target.queue }))
  const slots = await client.slots(target)
  const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout)
  const workers = forecastDrain(fleet, slots, target, { mode, timeoutMs })
  const answer = { dryRun: { ...target, mode, workers } }
  await out.answer(answer, (layout) => forecastLines(workers, targetText(target), layout))
  return workers.some(({ maySignal, mayFail }) => maySignal + mayFail > 0) ? EXIT.incomplete : EXIT.success
}
