// Formats the demo's output: the progress line and the final report.
import type { RunProgress } from './follow-run.ts'
import { formatBytes, plural } from './format.ts'
import type { Md5All } from './md5-all.ts'

/** Returns a line such as `1240 files found, 20 waiting, 20 running, 1200 done, 2310 files/s, 2 workers`. */
export function progressLine({ run, workers }: RunProgress, seconds: number): string {
  if (run === undefined) return 'starting'
  const { emitted, state } = run.source
  const { waiting = 0, running = 0, completed = 0 } = run.stages[0] ?? {}
  const parts = [
    `${plural(emitted, 'file')} found${state === 'done' ? '' : ' so far'}`,
    `${waiting} waiting, ${running} running, ${completed} done`,
    rate(completed, seconds),
    ...(workers.size === 0 ? [] : [plural(workers.size, 'worker')]),
    ...(run.state === 'stopping' ? ['stopping'] : run.state === 'reducing' ? ['sorting'] : []),
  ]
  return parts.join(', ')
}

/** `tasks` is the number of digests that were running in the killed worker. */
export interface Killed {
  readonly pid: number
  readonly tasks: number
}

/** The value is undefined without --kill, and `killed` is undefined if no worker could be killed. */
export type Kill = { readonly killed: Killed | undefined } | undefined

export function finalReport({ files, bytes, workers, startedAgain }: Md5All, seconds: number, kill: Kill): string[] {
  const count = files.length
  const size = [plural(count, 'file'), formatBytes(bytes), plural(workers.length, 'worker')].join(', ')
  const lines = [`${size}, ${seconds.toFixed(1)} s (${rate(count, seconds)})`]
  if (startedAgain > 0) {
    const cause = kill?.killed === undefined ? '' : `after worker ${kill.killed.pid} was killed, `
    lines.push(`${cause}${plural(startedAgain, 'task was', 'tasks were')} started again`)
  }
  if (kill === undefined) return lines
  if (count === 0) return [...lines, 'no worker was killed, because there was no file to read']
  if (kill.killed === undefined)
    lines.push(
      'no worker was killed, because the run had already ended or none of the workers in --workers was running',
    )
  else if (startedAgain === 0) lines.push('no task was interrupted; try a directory with more or larger files')
  if (workers.length < 2) lines.push(`a recovery requires at least two workers, but only ${workers.length} took part`)
  return lines
}

function rate(files: number, seconds: number): string {
  return `${seconds > 0 ? Math.round(files / seconds) : 0} files/s`
}
