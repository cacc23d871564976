// bullpen fleet: the queues, the workers with their pools, and their slots when asked for.
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { fleetLines } from '../output/fleet-text.ts'
import type { CommandContext } from './command-context.ts'

export async function fleet({ values, client: connect, out }: CommandContext): Promise<ExitCode> {
  const which = values.queue ? { queue: values.queue } : {}
  const client = connect()
  const view = await client.fleet(which)
  const slots = values.slots ? await client.slots(which) : undefined
  await out.answer(view, (look) => fleetLines(view, slots, look))
  // The API's second answer; for people both are one text.
  if (out.json && slots !== undefined) await out.answer({ slots }, () => [])
  return EXIT.done
}
