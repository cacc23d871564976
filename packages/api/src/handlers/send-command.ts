// POST /v1/commands sends a command to the fleet, waits for the workers' responses, and logs the command for auditing.
import type { CommandView, Log } from '@bullpen/contract'
import { commandRequestSchema, type commandWaitSchema } from '@bullpen/contract/internal'
import { type Command, type CommandRecord, outcomeOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { requesterOf } from '../auth/requester.ts'
import { abortOnFirst } from '../http/abort-on-first.ts'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { commandView } from '../views/command-view.ts'
import { assertHasTarget } from './command-target.ts'

const ID_BYTES = 12

export function sendCommand(context: ApiContext) {
  const { fleet, closing, log, randomBytes } = context
  return async ({
    query,
    body,
    request,
    reply,
  }: Call<unknown, z.output<typeof commandWaitSchema>>): Promise<CommandView> => {
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
}

function audit(log: Log, { id, spec, by }: Omit<Command, 'at'>, { responses }: CommandRecord, requestId: string): void {
  log.info({ command: id, spec, by, outcome: outcomeOf(responses), requestId }, 'fleet command sent')
}
