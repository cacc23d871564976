// Shows the kinds of error of the dead tasks in bullpen top, the most frequent one first.
import type { Snapshot } from '../../commands/top/snapshot.ts'
import { formatLength, plain } from '../format.ts'
import { by, type Section, section } from './section.ts'

export function errorSection({ now: time, queues }: Snapshot): Section {
  const now = Date.parse(time)
  return section({
    rows: queues
      .flatMap(({ queue, deadByFingerprint }) => deadByFingerprint.map((kind) => ({ queue, ...kind })))
      .sort(
        by(
          ({ count }) => -count,
          ({ newestAt }) => -Date.parse(newestAt),
          ({ queue }) => queue,
        ),
      ),
    columns: [
      { heading: 'dead', align: 'right', cell: ({ count }) => ['red', String(count)] },
      { heading: 'newest', align: 'right', cell: ({ newestAt }) => formatLength(now - Date.parse(newestAt)) },
      { heading: 'queue', cell: ({ queue }) => plain(queue) },
      { heading: 'fingerprint', cell: ({ fingerprint }) => plain(fingerprint) },
      { heading: 'error', cell: ({ code, message }) => plain(`${code}: ${message}`) },
    ],
    none: 'no dead tasks',
  })
}
