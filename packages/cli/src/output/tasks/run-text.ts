// Formats the runs of pipelines and their errors as text.
import type { RunErrorView, RunView } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count, type Field, fieldLines, plain, relativeTime, timeText } from '../format.ts'
import { rateText } from './run-progress.ts'

const STYLES = { completed: 'green', failed: 'red', cancelled: 'yellow' } as const
/** A longer output is cut off. With --json it is printed in full. */
const MAX_OUTPUT_LENGTH = 1_000

export function runListLines(runs: readonly RunView[], layout: Layout): readonly string[] {
  if (runs.length === 0) return []
  const heading: Cell[] = ['id', 'pipeline', 'state', 'emitted', 'running', 'results', 'errors', 'started']
  const rows = runs.map((run): Cell[] => [
    plain(run.id),
    plain(run.pipeline),
    run.state,
    `${run.source.emitted}`,
    `${run.stages.reduce((sum, { running }) => sum + running, 0)}`,
    `${run.results}`,
    `${run.errors}`,
    relativeTime(run.startedAt, layout.now),
  ])
  return tableLines([heading, ...rows], { ...layout, indent: 0 })
}

/** Returns the id and the state of a run, one line for each stage, and then one line for each field that the run has. */
export function runLines(run: RunView, layout: Layout): readonly string[] {
  const { result, state, source, reduction, firstError, stopReason } = run
  const { now, paint } = layout
  const time = (of: string | undefined) => timeText(of, now)
  const ofSource = `${source.state}, ${count(source.emitted, 'item')}, ${count(source.segments, 'task')}`
  const rows: readonly Field[] = [
    ['pipeline', plain(run.pipeline)],
    ['source', `${plain(source.task)}  ${plain(source.queue)}  ${ofSource}`],
    ...(source.state === 'failed'
      ? [['', `the failed task is ${plain(source.taskId)}${aboutError(source)}`] as const]
      : []),
  ]
  const facts: readonly Field[] = [
    ['reduction', reduction && `${plain(reduction.task)}  ${plain(reduction.queue)}  ${reduction.state}`],
    [
      '',
      reduction?.state === 'failed'
        ? `the failed task is ${plain(reduction.taskId)}${aboutError(reduction)}`
        : undefined,
    ],
    ['results', `${run.results}${throughput(run)}`],
    ['errors', `${run.errors}${firstError === undefined ? '' : `, the first: ${errorText(firstError)}`}`],
    ['on error', run.onError],
    ['started', `${time(run.startedAt)}, by ${plain(run.by)}`],
    ['timeout', run.endedAt === undefined ? time(run.timeoutAt) : undefined],
    [
      'stopped',
      run.stoppedAt &&
        `${time(run.stoppedAt)}, ${(stopReason ?? '').replaceAll('_', ' ')}, by ${plain(run.stoppedBy ?? 'unknown')}`,
    ],
    ['ended', time(run.endedAt)],
    ['output', run.output === undefined ? undefined : plain(JSON.stringify(run.output), MAX_OUTPUT_LENGTH)],
  ]
  const heading = result === undefined ? state : paint(STYLES[result], result)
  return [`${plain(run.id)}  ${heading}`, ...fieldLines(rows, 9), ...stageLines(run, layout), ...fieldLines(facts, 9)]
}

export function runErrorLine(error: RunErrorView, { paint }: Layout): string {
  return `stage ${error.stage}  item ${error.position}  ${plain(error.task)}  ${paint('red', error.end)}${aboutError(error)}`
}

function errorText(error: NonNullable<RunView['firstError']>): string {
  return `stage ${error.stage}, item ${error.position}, ${error.end}: ${plain(error.task)}${aboutError(error)}`
}

function aboutError({ error }: Pick<RunErrorView, 'error'>): string {
  return error === undefined ? '' : `  ${plain(error.code)}: ${plain(error.message)}`
}

function stageLines({ stages }: RunView, layout: Layout): readonly string[] {
  const heading: Cell[] = ['stage', 'task', 'queue', 'waiting', 'running', 'completed', 'dropped', 'failed']
  const rows = stages.map((stage, i): Cell[] => [
    `${i + 1}`,
    plain(stage.task),
    plain(stage.queue),
    `${stage.waiting}`,
    `${stage.running} of ${stage.concurrency}`,
    `${stage.completed}`,
    `${stage.dropped}`,
    stage.failed === 0 ? '0' : ['red', `${stage.failed}`],
  ])
  return tableLines([heading, ...rows], { ...layout, indent: 2 })
}

/** Returns the results per second of a run that has ended. */
function throughput({ startedAt, endedAt, results }: RunView): string {
  if (endedAt === undefined || results === 0) return ''
  const seconds = Math.max(0.001, (Date.parse(endedAt) - Date.parse(startedAt)) / 1_000)
  return `, ${rateText(results / seconds)} per second`
}
