// bullpen enqueue: hands a task over, and waits for its end when told to.

import { readInput } from '../arguments/json-input.ts'
import { durationIn, limitIn, metaIn } from '../arguments/option-values.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { acceptedLine } from '../output/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { LONGEST_WAIT, untilEnded } from './until-ended.ts'

export async function enqueue({ positionals, values, stdin, client: connect, out }: CommandContext): Promise<ExitCode> {
  const [task = '', text] = positionals
  const wait = durationIn('--wait', values.wait, LONGEST_WAIT)
  const options = given({
    meta: metaIn(values.meta),
    tags: values.tag,
    delay: durationIn('--delay', values.delay),
    timeout: limitIn('--timeout', values.timeout),
    heartbeatTimeout: limitIn('--heartbeat-timeout', values['heartbeat-timeout']),
    queueTimeout: limitIn('--queue-timeout', values['queue-timeout']),
    totalTimeout: limitIn('--total-timeout', values['total-timeout']),
  })
  const client = connect()
  const accepted = await client.enqueueNamed(task, await readInput(text, stdin), options)
  // Before the wait: whoever interrupts it has the id.
  await out.answer(accepted, (look) => [acceptedLine(accepted, look)])
  return wait === undefined ? EXIT.done : await untilEnded(client, accepted.id, wait, out)
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
}
