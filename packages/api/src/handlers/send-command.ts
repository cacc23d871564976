// POST /v1/commands: gives a command to the fleet, waits for the answers, and writes the audit line.
import type { Catalogue, CommandView, Log } from '@bullpen/contract'
import { type CommandSpec, commandRequestSchema, type commandWaitSchema } from '@bullpen/contract/internal'
import { type Command, type CommandRecord, outcomeOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { noQueue } from '../http/queue-not-found.ts'
import type { Call } from '../http/route.ts'
import { untilEither } from '../http/wait.ts'
import { commandView } from '../views/command-view.ts'

const ID_BYTES = 12

export function sendCommand(context: ApiContext) {
  const { catalogue, broker, fleet, closing, log, randomBytes } = context
  return async ({
    query,
    body,
    request,
    reply,
  }: Call<unknown, z.output<typeof commandWaitSchema>>): Promise<CommandView> => {
    // The validator has let it through, and left it as it was sent.
    const { id = Buffer.from(randomBytes(ID_BYTES)).toString('hex'), by, ...spec } = commandRequestSchema.parse(body)
    const { queue } = spec
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw noQueue(queue, catalogue.queues)
    const command = { id, spec, by: author(by, request.keyPrint) }
    let record = await fleet.send(command)
    try {
      if (endsWaiting(spec, catalogue)) {
        // Given again, it covers the same tasks, and none once the queue has been resumed.
        const { drain } = await fleet.switches(spec.queue)
        const wanted = { queue: spec.queue, before: record.at, reason: 'queue_shutdown', by: command.by } as const
        if (drain?.command === id) await broker.cancelMany(wanted)
      }
      if (outcomeOf(record.answers) === 'pending' && query.wait > 0) {
        record =
          (await untilEither(query.wait * 1_000, closing, reply.raw, (signal) => fleet.answered(id, signal))) ?? record
      }
    } finally {
      // It has been given, whether or not its answers can be read.
      audit(log, command, record, request.id)
    }
    return commandView(record)
  }
}

/** A drain of a queue's whole fleet, where the queue says so. A light one works all that waits. */
function endsWaiting(spec: CommandSpec, catalogue: Catalogue): spec is CommandSpec & { readonly queue: string } {
  if (spec.action !== 'drain' || spec.worker !== undefined || spec.queue === undefined) return false
  return spec.mode !== 'light' && catalogue.onShutdown(spec.queue) === 'cancel'
}

/** What the caller says can't be checked; the key has been. */
function author(said: string | undefined, keyPrint: string | undefined): string {
  const key = `key ${keyPrint ?? 'unknown'}`
  return said === undefined ? key : `${said} (${key})`
}

function audit(log: Log, { id, spec, by }: Omit<Command, 'at'>, { answers }: CommandRecord, requestId: string): void {
  log.info({ command: id, spec, by, outcome: outcomeOf(answers), requestId }, 'command to the fleet')
}
