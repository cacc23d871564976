// bullpen enqueue: enqueues a task. With --wait, also waits for the task to end. With --bulk, enqueues many tasks.
import { parseEnqueueOptions } from '../arguments/enqueue-options.ts'
import { readInput } from '../arguments/json-input.ts'
import { parseDuration } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { WHILE_WAITING } from '../connection.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { acceptedLine } from '../output/tasks/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { commandOf } from './command-table.ts'
import { enqueueBulk } from './enqueue-bulk.ts'
import { MAX_WAIT, waitForTask } from './wait-for-task.ts'

export async function enqueue(context: CommandContext): Promise<ExitCode> {
  const { positionals, values, stdin, connect, out } = context
  if (values.bulk !== undefined) return await enqueueBulk(context)
  if (values['retry-for'] !== undefined) throw new UsageError('--retry-for requires --bulk')
  const [task, text] = positionals
  if (task === undefined)
    throw new UsageError(`missing argument; expected bullpen enqueue ${commandOf('enqueue').usage}`)
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  const idempotencyKey = values['idempotency-key']
  const options = { ...parseEnqueueOptions(values), ...(idempotencyKey !== undefined && { idempotencyKey }) }
  const client = connect()
  const input = await readInput('INPUT', text, stdin)
  const { whenFull } = options
  // The client returns a dropped task only if the call itself specifies `drop`. Otherwise, it throws an error.
  const accepted = await (whenFull === 'drop'
    ? client.enqueueNamed(task, input, { ...options, whenFull })
    : client.enqueueNamed(task, input, options))
  if (accepted.action === 'dropped') {
    await out.answer(accepted, () => ['dropped: the queue is full'])
    return EXIT.incomplete
  }
  // The id is printed before the wait, so that the user has it even if the wait is interrupted.
  await out.answer(accepted, (layout) => [acceptedLine(accepted, layout)])
  return wait === undefined ? EXIT.success : await waitForTask(connect(WHILE_WAITING), accepted.id, wait, out)
}
