// bullpen fleet: the queues, the processes with their pools, and their workers when asked for.
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { fleetLines } from '../output/fleet-text.ts'
import type { Desk } from './command-context.ts'

export async function fleet({ values, client: connect, out }: Desk): Promise<ExitCode> {
  const which = values.queue ? { queue: values.queue } : {}
  const client = connect()
  const view = await client.fleet(which)
  const workers = values.workers ? await client.workers(which) : undefined
  await out.answer(view, (look) => fleetLines(view, workers, look))
  // The API's second answer; for people both are one text.
  if (out.json && workers !== undefined) await out.answer({ workers }, () => [])
  return EXIT.done
}
