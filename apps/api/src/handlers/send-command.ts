// POST /v1/commands: gives a command to the fleet, waits for the answers, and writes the audit line.
import { type CommandView, commandRequestSchema, type commandWaitSchema, type Log } from '@bullpen/contract'
import { type Command, type CommandRecord, outcomeOf } from '@bullpen/engine'
import type { z } from 'zod'
import { commandView } from '../command-view.ts'
import type { ApiContext } from '../context.ts'
import { noQueue } from '../no-queue.ts'
import type { Call } from '../route.ts'
import { untilEither } from '../wait.ts'

const ID_BYTES = 12

export function sendCommand(context: ApiContext) {
  const { catalogue, fleet, closing, log, randomBytes } = context
  return async ({
    query,
    body,
    request,
    reply,
  }: Call<unknown, z.output<typeof commandWaitSchema>>): Promise<CommandView> => {
    // The validator has let it through, and left it as it was sent.
    const { id = Buffer.from(randomBytes(ID_BYTES)).toString('hex'), by, ...order } = commandRequestSchema.parse(body)
    const { queue } = order
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw noQueue(queue, catalogue.queues)
    const command = { id, order, by: author(by, request.keyPrint) }
    let record = await fleet.send(command)
    try {
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

/** What the caller says can't be checked; the key has been. */
function author(said: string | undefined, keyPrint: string | undefined): string {
  const key = `key ${keyPrint ?? 'unknown'}`
  return said === undefined ? key : `${said} (${key})`
}

function audit(log: Log, { id, order, by }: Omit<Command, 'at'>, { answers }: CommandRecord, requestId: string): void {
  log.info({ command: id, order, by, outcome: outcomeOf(answers), requestId }, 'command to the fleet')
}
