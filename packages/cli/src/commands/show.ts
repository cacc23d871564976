// bullpen show: a task as it stands, or when it has ended.

import { durationIn } from '../arguments/option-values.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { taskLines } from '../output/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { LONGEST_WAIT, untilEnded } from './until-ended.ts'

export async function show({
  positionals: [id = ''],
  values,
  client: connect,
  out,
}: CommandContext): Promise<ExitCode> {
  const wait = durationIn('--wait', values.wait, LONGEST_WAIT)
  const client = connect()
  if (wait !== undefined) return await untilEnded(client, id, wait, out)
  const task = await client.task(undefined, id)
  await out.answer(task, (look) => taskLines(task, look))
  return EXIT.done
}
