// GET /v1/commands returns the audit log, newest command first.
import type { CommandPage } from '@bullpen/contract'
import type { commandsQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { commandView } from '../views/command-view.ts'

export function listCommands({ fleet }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof commandsQuerySchema>>): Promise<CommandPage> => {
    const commands = await fleet.commands(query.limit)
    return { commands: commands.map(commandView) }
  }
}
