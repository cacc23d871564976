// GET /v1/commands/{id} returns a command immediately or, with a wait, once every worker has responded.
import { BullpenError, type CommandView } from '@bullpen/contract'
import { COMMAND_ID, type commandQuerySchema } from '@bullpen/contract/internal'
import { outcomeOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { abortOnFirst } from '../http/abort-on-first.ts'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { commandView } from '../views/command-view.ts'
import type { ShowParams } from './show-task.ts'

export function showCommand({ fleet, closing }: ApiContext) {
  return async ({
    params: { id },
    query: { wait },
    reply,
  }: Call<ShowParams, z.output<typeof commandQuerySchema>>): Promise<CommandView> => {
    if (!COMMAND_ID.test(id)) throw noCommand(id)
    const found = await fleet.command(id)
    const record =
      found === undefined || wait === 0 || outcomeOf(found.responses) !== 'pending'
        ? found
        : await abortOnFirst(wait * 1_000, closing, reply.raw, (signal) => fleet.awaitResponses(id, signal))
    if (record === undefined) throw noCommand(id)
    return commandView(record)
  }
}

function noCommand(id: string): BullpenError {
  return new BullpenError(
    'command_not_found',
    `command ${JSON.stringify(id)} not found; the audit log keeps only the newest commands`,
  )
}
