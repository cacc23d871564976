// Formats the progress of a run in one line, of which the first part is the most important, because a narrow terminal cuts the line.
import type { RunView } from '@bullpen/contract'
import { count, plain } from '../format.ts'

const BAR_LENGTH = 20

/** `rate` is the number of results per second, and `workers` how many workers run the queues of the run, each if it is known. */
export function progressText(run: RunView, rate: number | undefined, workers: number | undefined): string {
  const { state, result, results, errors, source, stages, reduction } = run
  const facts = [
    `${count(results, 'result')}${rate === undefined ? '' : ` (${rateText(rate)}/s)`}`,
    ...(errors === 0 ? [] : [`${errors} failed`]),
    ...(workers === undefined ? [] : [count(workers, 'worker')]),
  ]
  const places = [
    `${plain(source.task)} ${source.emitted}`,
    ...stages.map(({ task, waiting, running, completed }) => {
      const counts = [
        waiting > 0 && `${waiting} waiting`,
        running > 0 && `${running} running`,
        `${completed} completed`,
      ]
      return `${plain(task)} ${counts.filter(Boolean).join(', ')}`
    }),
    ...(reduction === undefined || reduction.state === 'pending'
      ? []
      : [`${plain(reduction.task)} ${reduction.state}`]),
  ]
  return [result ?? state, bar(run), facts.join(', '), places.join(' → ')].filter((part) => part !== '').join('  ')
}

/** Returns a bar once the number of items is known, because the source has yielded its last one. */
function bar({ source, stages, results, errors }: RunView): string {
  if ((source.state !== 'done' && source.state !== 'failed') || source.emitted === 0) return ''
  const left = stages.reduce((sum, { dropped }) => sum + dropped, results + errors)
  const share = Math.min(1, left / source.emitted)
  const full = Math.floor(share * BAR_LENGTH)
  return `[${'#'.repeat(full)}${'.'.repeat(BAR_LENGTH - full)}] ${Math.floor(share * 100)}%`
}

export function rateText(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : rate.toFixed(0)
}
