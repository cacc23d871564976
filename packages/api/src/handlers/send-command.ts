// POST /v1/commands sends a command to the fleet, waits for the workers' responses, and logs the command for auditing.
import type { Catalogue, CommandView, Log } from '@bullpen/contract'
import { type CommandSpec, commandRequestSchema, type commandWaitSchema } from '@bullpen/contract/internal'
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
  const { catalogue, broker, fleet, closing, log, randomBytes } = context
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
      if (cancelsWaiting(spec, catalogue)) {
        // A repeated command cancels the same tasks as the first one, and none at all once the queue has been resumed.
        const { drain } = await fleet.queueSettings(spec.queue)
        const filter = { queue: spec.queue, before: record.at, reason: 'queue_shutdown', by: command.by } as const
        if (drain?.command === id) await broker.cancelMany(filter)
      }
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

/**
 * Returns whether the command also cancels the queue's waiting tasks. This is the case if the command drains the whole queue, the
 * queue is defined with `onShutdown: 'cancel'`, and the mode is not `light`. A light drain finishes the waiting tasks instead.
 */
function cancelsWaiting(spec: CommandSpec, catalogue: Catalogue): spec is CommandSpec & { readonly queue: string } {
  if (spec.action !== 'drain' || spec.worker !== undefined || spec.queue === undefined) return false
  return spec.mode !== 'light' && catalogue.queue(spec.queue).onShutdown === 'cancel'
}

function audit(log: Log, { id, spec, by }: Omit<Command, 'at'>, { responses }: CommandRecord, requestId: string): void {
  log.info({ command: id, spec, by, outcome: outcomeOf(responses), requestId }, 'fleet command sent')
}
