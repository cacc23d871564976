// Formats the demo's output: the progress line, the bar, and the final report.
import { formatBytes, plural } from './format.ts'

export interface Counts {
  readonly files: number
  readonly bytes: number
  readonly total: number
  readonly seconds: number
}

/** Returns a line such as `1200 of 20000 files, 6%, 1.2 MB, 2310 files/s`. */
export function progressLine({ files, bytes, total, seconds }: Counts): string {
  const percent = total === 0 ? 100 : Math.floor((files / total) * 100)
  return `${files} of ${plural(total, 'file')}, ${percent}%, ${formatBytes(bytes)}, ${rate(files, seconds)}`
}

/**
 * Returns at most `columns - 1` characters. The bar fills the space that the text leaves, up to 40 characters, and is omitted if
 * there is too little space.
 */
export function progressBar(counts: Counts, columns: number, colour: boolean): string {
  const room = Math.max(columns - 1, 0)
  const text = progressLine(counts)
  const width = Math.min(room - text.length - 3, 40)
  if (width < 8) return text.slice(0, room)
  const filled = counts.total === 0 ? width : Math.floor((counts.files / counts.total) * width)
  const bar = '#'.repeat(filled)
  return `[${colour ? `\x1b[32m${bar}\x1b[39m` : bar}${'.'.repeat(width - filled)}] ${text}`
}

interface Outcome extends Counts {
  readonly workers: ReadonlySet<string>
  readonly startedAgain: number
  readonly extraStarts: number
}

/** The value is undefined without --kill, and `pid` is undefined if no worker could be killed. */
export type Kill = { readonly pid: number | undefined } | undefined

export function finalReport(outcome: Outcome, kill: Kill): string[] {
  const { files, bytes, workers, seconds, startedAgain, extraStarts } = outcome
  const lines = [
    `${plural(files, 'file')}, ${formatBytes(bytes)}, ${plural(workers.size, 'worker')}, ${seconds.toFixed(1)} s (${rate(files, seconds)})`,
  ]
  if (startedAgain > 0) {
    const cause = kill?.pid === undefined ? '' : `after worker ${kill.pid} was killed, `
    const tasks = startedAgain === 1 ? 'task was' : 'tasks were'
    lines.push(`${cause}${startedAgain} ${tasks} started again (${plural(extraStarts, 'extra start')})`)
  }
  if (kill === undefined) return lines
  if (kill.pid === undefined)
    lines.push(
      'no worker was killed, because the work had already ended or none of the workers in --workers is running',
    )
  else if (startedAgain === 0)
    lines.push('the directory is too small, so no task was interrupted; try one with more or larger files')
  if (workers.size < 2) lines.push(`a recovery requires at least two workers, but only ${workers.size} took part`)
  return lines
}

function rate(files: number, seconds: number): string {
  return `${seconds > 0 ? Math.round(files / seconds) : 0} files/s`
}
