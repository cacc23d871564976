// bullpen runs: lists, shows, starts, awaits, cancels and deletes the runs of pipelines, and prints their errors.
import { ProblemError } from '@bullpen/client'
import { milliseconds } from '@bullpen/contract'
import { PAGINATION } from '@bullpen/contract/internal'
import { readInput, readInputFile } from '../../arguments/json-input.ts'
import { parseCount, parseDuration, parseDurationOrZero, withoutUndefined } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { WHILE_WAITING } from '../../connection.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { plain } from '../../output/format.ts'
import type { Output } from '../../output/output.ts'
import { runErrorLine, runLines, runListLines } from '../../output/tasks/run-text.ts'
import { type Action, runAction } from '../actions.ts'
import type { CommandContext } from '../command-context.ts'
import { MAX_WAIT } from '../wait-for-task.ts'
import { waitForRun } from './wait-for-run.ts'

const ACTIONS = {
  list: { options: ['limit'], usage: '', run: list },
  show: { options: [], usage: 'ID', run: show },
  start: {
    options: ['input-file', 'id', 'total-timeout', 'keep', 'wait', 'by'],
    usage: 'PIPELINE [INPUT | -]',
    run: start,
  },
  wait: { options: ['timeout'], usage: 'ID', run: wait },
  errors: { options: ['limit'], usage: 'ID', run: errors },
  cancel: { options: ['wait', 'by'], usage: 'ID', run: cancel },
  delete: { options: ['by'], usage: 'ID', run: remove },
} as const satisfies Readonly<Record<string, Action>>

/** The place of a field of the input, as errors name it. */
const INPUT_FIELD = /^\/input\/([^/]+)$/

const LONGEST_RUN = '30d'

export async function runs(context: CommandContext): Promise<ExitCode> {
  return await runAction('runs', ACTIONS, context)
}

async function list({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const limit = parseCount('--limit', values.limit, PAGINATION.max)
  const found = await connect().listRuns(withoutUndefined({ limit }))
  await out.answer({ runs: found }, (layout) => runListLines(found, layout))
  if (found.length === 0) out.remark('there are no unfinished runs')
  return EXIT.success
}

async function show({ connect, out }: CommandContext, id: string): Promise<ExitCode> {
  const found = await connect().run(id).describe()
  await out.answer(found, (layout) => runLines(found, layout))
  return EXIT.success
}

async function start(context: CommandContext, pipeline: string, text: string | undefined): Promise<ExitCode> {
  const { values, connect, by, stdin, out } = context
  const { id, 'input-file': file } = values
  const totalTimeout = parseDuration('--total-timeout', values['total-timeout'], LONGEST_RUN)
  const keep = parseDurationOrZero('--keep', values.keep, LONGEST_RUN)
  const waitFor = parseDuration('--wait', values.wait, MAX_WAIT)
  if (file !== undefined && text !== undefined) throw new UsageError('INPUT and --input-file cannot be combined')
  const input = file === undefined ? await readInput('INPUT', text, stdin) : await readInputFile(file, stdin)
  const client = connect()
  const settings = withoutUndefined({ id, totalTimeout, keep, by })
  const run = await client.startPipelineNamed(pipeline, input, settings).catch((error: unknown) => {
    if (text === undefined && file === undefined) remarkOnInput(out, pipeline, error)
    throw error
  })
  if (waitFor !== undefined) {
    // The id is printed before the wait, so that the user has it even if the wait is interrupted.
    await out.answer({ id: run.id }, () => [`${plain(run.id)}  started`])
    return await waitForRun(out, connect(WHILE_WAITING), run.id, {
      timeoutMs: milliseconds(waitFor),
      expected: 'completed',
    })
  }
  const found = await run.describe()
  await out.answer(found, (layout) => runLines(found, layout))
  return EXIT.success
}

/** Shows where the input is passed if the error says that the default input does not match the schema. */
function remarkOnInput(out: Output, pipeline: string, error: unknown): void {
  if (!(error instanceof ProblemError) || error.code !== 'invalid_input') return
  const names = error.errors.flatMap((each) => ('pointer' in each && INPUT_FIELD.exec(each.pointer)?.[1]) || [])
  const example = [...new Set(names)].map((name) => `${JSON.stringify(name)}:…`).join()
  out.remark(
    `no INPUT was given, so it is {}; expected JSON: ${plain(`bullpen runs start ${pipeline} '{${example || '…'}}'`)}`,
  )
}

async function wait({ values, connect, out }: CommandContext, id: string): Promise<ExitCode> {
  const timeout = parseDuration('--timeout', values.timeout, MAX_WAIT)
  const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout)
  return await waitForRun(out, connect(WHILE_WAITING), id, { timeoutMs, expected: 'completed' })
}

async function errors({ values, connect, out }: CommandContext, id: string): Promise<ExitCode> {
  let left = parseCount('--limit', values.limit) ?? Number.POSITIVE_INFINITY
  let found = 0
  for await (const error of connect().run(id).errors()) {
    if (left-- <= 0) break
    found++
    if (!(await out.answer(error, (layout) => [runErrorLine(error, layout)]))) break
  }
  if (found === 0) out.remark('the run has collected no errors')
  return EXIT.success
}

async function cancel({ values, connect, by, out }: CommandContext, id: string): Promise<ExitCode> {
  const waitFor = parseDuration('--wait', values.wait, MAX_WAIT)
  const run = connect().run(id)
  const found = await run.cancel(withoutUndefined({ by }))
  if (waitFor !== undefined) {
    return await waitForRun(out, connect(WHILE_WAITING), run.id, {
      timeoutMs: milliseconds(waitFor),
      expected: 'any result',
    })
  }
  await out.answer(found, (layout) => runLines(found, layout))
  return EXIT.success
}

async function remove({ connect, by, out }: CommandContext, id: string): Promise<ExitCode> {
  await connect().run(id).delete(withoutUndefined({ by }))
  await out.answer({ id }, () => [`${plain(id)}  deleted`])
  return EXIT.success
}
