// The words for what was done: the progress line, the bar, and the report at the end.
import { formatBytes, plural } from './words.ts'

export interface Standing {
  readonly files: number
  readonly bytes: number
  readonly total: number
  readonly seconds: number
}

/** `1200 of 20000 files, 6 %, 1.2 MB, 2310 files/s`. */
export function progressLine({ files, bytes, total, seconds }: Standing): string {
  const percent = total === 0 ? 100 : Math.floor((files / total) * 100)
  return `${files} of ${plural(total, 'file')}, ${percent} %, ${formatBytes(bytes)}, ${rate(files, seconds)}`
}

/** One line of at most `columns - 1` characters; the bar takes what the words leave and is left out when that is little. */
export function progressBar(standing: Standing, columns: number, colour: boolean): string {
  const room = Math.max(columns - 1, 0)
  const words = progressLine(standing)
  const width = Math.min(room - words.length - 3, 40)
  if (width < 8) return words.slice(0, room)
  const full = standing.total === 0 ? width : Math.floor((standing.files / standing.total) * width)
  const bar = '#'.repeat(full)
  return `[${colour ? `\x1b[32m${bar}\x1b[39m` : bar}${'.'.repeat(width - full)}] ${words}`
}

interface Outcome extends Standing {
  readonly processes: ReadonlySet<string>
  readonly startedAgain: number
  readonly extraStarts: number
}

/** What the user is told at the end. `killed` is the worker that was killed, if one was to be. */
export function finalReport(outcome: Outcome, wantedKill: boolean, killed: number | undefined): string[] {
  const { files, bytes, processes, seconds, startedAgain, extraStarts } = outcome
  const workers = plural(processes.size, 'worker process', 'worker processes')
  const lines = [
    `${plural(files, 'file')}, ${formatBytes(bytes)}, ${workers}, ${seconds.toFixed(1)} s (${rate(files, seconds)})`,
  ]
  if (wantedKill || startedAgain > 0) {
    const died = killed === undefined ? '' : `after worker ${killed} was killed, `
    const again = startedAgain === 1 ? 'task was' : 'tasks were'
    lines.push(`${died}${startedAgain} ${again} started again: ${plural(extraStarts, 'start')} beyond the first`)
  }
  if (wantedKill && killed === undefined) lines.push('no worker was killed: the work was over, or none of them runs')
  if (wantedKill && processes.size < 2) {
    lines.push(`to see a recovery at least two worker processes must take part; ${processes.size} did`)
  }
  return lines
}

function rate(files: number, seconds: number): string {
  return `${seconds > 0 ? Math.round(files / seconds) : 0} files/s`
}
