// bullpen queues: shows each queue's tasks, rates, limits and slots, and the kinds of error of its dead tasks.
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { queueLines } from '../output/fleet/queue-text.ts'
import type { CommandContext } from './command-context.ts'

export async function queues({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const page = await connect().queues(values.queue ? { queue: values.queue } : {})
  await out.answer(page, (layout) => queueLines(page, layout))
  return EXIT.success
}
