// bullpen fleet: shows queues, workers and pools. With --slots, also shows every slot.
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { fleetLines } from '../../output/fleet/fleet-text.ts'
import type { CommandContext } from '../command-context.ts'

export async function fleet({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const filter = values.queue ? { queue: values.queue } : {}
  const client = connect()
  const view = await client.fleet(filter)
  const slots = values.slots ? await client.slots(filter) : undefined
  await out.answer(view, (layout) => fleetLines(view, slots, layout))
  // The slots come from a second API response. In text form, the lines above already contain both responses.
  if (out.json && slots !== undefined) await out.answer({ slots }, () => [])
  return EXIT.success
}
