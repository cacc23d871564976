// bullpen dead: searches, counts, retries and deletes dead tasks, and shows and stops the requests that change them.
import type { Client } from '@bullpen/client'
import { DEAD_FILTER_OPTIONS, deadFilter } from '../../arguments/dead-filter.ts'
import { readInput } from '../../arguments/json-input.ts'
import { parseChoice, withoutUndefined } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { plain } from '../../output/format.ts'
import { countLines, deadLine } from '../../output/tasks/dead-text.ts'
import type { CommandContext } from '../command-context.ts'
import { printTasks } from '../list.ts'
import { changeByFilter } from './change-matching.ts'
import { requests, stop } from './requests.ts'

/** The options that apply only to a retry or a delete by filter. */
const FILTER_OPTIONS = ['queue', ...DEAD_FILTER_OPTIONS, 'rate', 'dry-run', 'yes', 'wait'] as const

const ACTIONS = { counts, list, retry, delete: remove, requests, stop } as const

export async function dead(context: CommandContext): Promise<ExitCode> {
  const [word = '', ...positionals] = context.positionals
  const action = parseChoice('the first argument', word, Object.keys(ACTIONS) as (keyof typeof ACTIONS)[])
  return await ACTIONS[action]({ ...context, positionals })
}

async function list(context: CommandContext): Promise<ExitCode> {
  const { positionals, values, connect } = context
  if (positionals.length > 0) throw new UsageError('bullpen dead list does not accept an ID; use bullpen show ID')
  const filter = deadFilter(values)
  return await printTasks(context, {
    tasks: (pageSize) => connect().deadTasks({ ...filter, pageSize }),
    line: deadLine,
    none: `no dead tasks in ${plain(filter.queue)} match`,
  })
}

async function counts({ positionals, values, connect, out }: CommandContext): Promise<ExitCode> {
  if (positionals.length > 0) throw new UsageError('bullpen dead counts does not accept an argument; use --queue QUEUE')
  const { queue } = values
  const fingerprints = await connect().countDead(withoutUndefined({ queue }))
  await out.answer({ fingerprints }, (layout) => countLines(fingerprints, layout))
  if (fingerprints.length === 0) out.remark('no dead tasks')
  return EXIT.success
}

async function retry(context: CommandContext): Promise<ExitCode> {
  return selectsByFilter(context) ? await changeByFilter(context, 'retry') : await retryByIds(context)
}

async function remove(context: CommandContext): Promise<ExitCode> {
  return selectsByFilter(context) ? await changeByFilter(context, 'delete') : await deleteByIds(context)
}

/** @throws UsageError if both IDs and a filter are given. */
function selectsByFilter({ positionals, values }: CommandContext): boolean {
  const given = FILTER_OPTIONS.filter((name) => values[name] !== undefined).map((name) => `--${name}`)
  if (positionals.length > 0 && given.length > 0) throw new UsageError(`IDs and ${given.join(', ')} cannot be combined`)
  return given.length > 0
}

async function retryByIds(context: CommandContext): Promise<ExitCode> {
  const { positionals, values, stdin, by, out } = context
  const [first] = positionals
  if (first === undefined) throw new UsageError('missing argument; expected bullpen dead retry ID… or --queue QUEUE')
  if (values.input !== undefined && positionals.length > 1) throw new UsageError('--input requires a single ID')
  const input = values.input === undefined ? undefined : await readInput('--input', values.input, stdin)
  const options = withoutUndefined({
    by,
    input,
    queue: values['to-queue'],
    afterCompensation: values['after-compensation'] || undefined,
  })
  return await forEachId(context, async (client, id) => {
    const retried = await client.retryTask(id, options)
    await out.answer(retried, () => [
      retried.retryOf === undefined
        ? `${id}  retried, status ${retried.status}`
        : `${id}  enqueued as ${retried.id}, status ${retried.status}`,
    ])
  })
}

async function deleteByIds(context: CommandContext): Promise<ExitCode> {
  const { positionals, values, by, out } = context
  if (positionals.length === 0)
    throw new UsageError('missing argument; expected bullpen dead delete ID… or --queue QUEUE')
  if (values.input !== undefined) throw new UsageError("'bullpen dead delete' does not accept --input")
  if (values['to-queue'] !== undefined) throw new UsageError("'bullpen dead delete' does not accept --to-queue")
  if (values['after-compensation']) throw new UsageError("'bullpen dead delete' does not accept --after-compensation")
  return await forEachId(context, async (client, id) => {
    const deleted = await client.deleteTask(id, withoutUndefined({ by }))
    await out.answer(deleted, () => [`${id}  deleted`])
  })
}

/** Acts on each id, even if the API has rejected an earlier one. Returns the highest exit code. */
async function forEachId(
  { positionals, connect, reportError }: CommandContext,
  act: (client: Client, id: string) => Promise<void>,
): Promise<ExitCode> {
  const client = connect()
  let highest: ExitCode = EXIT.success
  for (const id of positionals) {
    const code = await act(client, id).then(() => EXIT.success, reportError)
    if (code > highest) highest = code
    if (code === EXIT.unreachable) break
  }
  return highest
}
