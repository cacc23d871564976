// POST /v1/commands sends a command to the fleet, waits for the workers' responses, and logs the command for auditing. GET /v1/commands
// returns the audit log, newest command first. GET /v1/commands/{id} returns one immediately or, with a wait, once every worker has
// responded.
import { BullpenError, type CommandPage, type CommandView, type Log } from '@bullpen/contract'
import {
  COMMAND_ID,
  type commandQuerySchema,
  commandRequestSchema,
  type commandsQuerySchema,
  type commandWaitSchema,
  optionalTime,
  timeText,
} from '@bullpen/contract/internal'
import { type Command, type CommandRecord, outcomeOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { requesterOf } from '../auth/requester.ts'
import { abortOnFirst } from '../http/abort-on-first.ts'
import type { ApiContext } from '../http/context.ts'
import type { IdCall, QueryCall } from '../http/routes/route.ts'
import { assertHasTarget } from './command-target.ts'

const ID_BYTES = 12

export async function sendCommand(
  context: ApiContext,
  { query, body, request, reply }: QueryCall<typeof commandWaitSchema>,
): Promise<CommandView> {
  const { fleet, closing, log, randomBytes } = context
  // The body is parsed again to apply the defaults, because the validated body is still as the caller sent it.
  const { id = Buffer.from(randomBytes(ID_BYTES)).toString('hex'), by, ...spec } = commandRequestSchema.parse(body)
  await assertHasTarget({ id, spec }, context)
  const command = { id, spec, by: requesterOf(request, by) }
  let record = await fleet.send(command)
  try {
    if (outcomeOf(record.responses) === 'pending' && query.wait > 0) {
      record =
        (await abortOnFirst(query.wait * 1_000, closing, reply.raw, (signal) => fleet.awaitResponses(id, signal))) ??
        record
    }
  } finally {
    // The command is stored even if the responses to it cannot be read.
    audit(log, command, record, request.id)
  }
  return commandView(record)
}

export async function listCommands(
  { fleet }: ApiContext,
  { query }: QueryCall<typeof commandsQuerySchema>,
): Promise<CommandPage> {
  return { commands: (await fleet.commands(query.limit)).map(commandView) }
}

export async function showCommand(
  { fleet, closing }: ApiContext,
  { params: { id }, query: { wait }, reply }: IdCall<z.output<typeof commandQuerySchema>>,
): Promise<CommandView> {
  if (!COMMAND_ID.test(id)) throw noCommand(id)
  const found = await fleet.command(id)
  const record =
    found === undefined || wait === 0 || outcomeOf(found.responses) !== 'pending'
      ? found
      : await abortOnFirst(wait * 1_000, closing, reply.raw, (signal) => fleet.awaitResponses(id, signal))
  if (record === undefined) throw noCommand(id)
  return commandView(record)
}

function audit(log: Log, { id, spec, by }: Omit<Command, 'at'>, { responses }: CommandRecord, requestId: string): void {
  log.info({ command: id, spec, by, outcome: outcomeOf(responses), requestId }, 'fleet command sent')
}

function commandView({ id, spec, by, at, responses }: CommandRecord): CommandView {
  return {
    ...{ id, spec, by },
    at: timeText(at),
    outcome: outcomeOf(responses),
    responses: responses.map(({ at: respondedAt, ...each }) => ({ ...each, ...optionalTime('at', respondedAt) })),
  }
}

function noCommand(id: string): BullpenError {
  return new BullpenError(
    'command_not_found',
    `command ${JSON.stringify(id)} not found; the audit log keeps only the newest commands`,
  )
}
