// bullpen dead requests: shows who retried or deleted dead tasks by filter, and how many. bullpen dead stop: stops such a request.
import { PAGINATION } from '@bullpen/contract/internal'
import { parseCount, withoutUndefined } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { deadRequestLine, deadRequestRows } from '../../output/tasks/dead-text.ts'
import type { CommandContext } from '../command-context.ts'

export async function requests({ positionals, values, connect, out }: CommandContext): Promise<ExitCode> {
  const [id, ...others] = positionals
  const { queue } = values
  const limit = parseCount('--limit', values.limit, PAGINATION.max)
  if (others.length > 0) throw new UsageError('bullpen dead requests accepts a single ID')
  if (id !== undefined && (queue !== undefined || limit !== undefined)) {
    throw new UsageError('an ID cannot be combined with --queue or --limit')
  }
  const client = connect()
  if (id !== undefined) {
    const request = await client.deadTaskRequest(id)
    await out.answer(request, (layout) => deadRequestRows([request], layout))
    return EXIT.success
  }
  const all = await client.deadTaskRequests(withoutUndefined({ queue, limit }))
  await out.answer({ requests: all }, (layout) => deadRequestRows(all, layout))
  if (all.length === 0) out.remark('no dead tasks have been retried or deleted by filter')
  return EXIT.success
}

export async function stop({ positionals, connect, out, by }: CommandContext): Promise<ExitCode> {
  const [id, ...others] = positionals
  if (id === undefined || others.length > 0) {
    throw new UsageError("bullpen dead stop requires a single ID of a request; 'bullpen dead requests' lists them")
  }
  const request = await connect().stopDeadRequest(id, withoutUndefined({ by }))
  await out.answer(request, () => [deadRequestLine(request)])
  if (request.status === 'stopped') return EXIT.success
  out.remark('the request was already done')
  return EXIT.incomplete
}
