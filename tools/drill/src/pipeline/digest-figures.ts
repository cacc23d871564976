// Computes the figures of the drill `pipeline` from the output of each run, the run's own counts and the ledger.
import type { RunView } from '@bullpen/contract'
import type { Figures } from '../figures/figures.ts'
import { runsOf } from '../followup/runs-of.ts'
import type { Effect } from '../ledger/effects.ts'
import { digestFile } from '../programs/catalogue.ts'
import type { DigestList } from './digest-stages.ts'

/** A run that has ended. */
export interface EndedRun {
  readonly view: RunView
  readonly isOrdered: boolean
  /** What is in the ledger of the run's tasks. */
  readonly effects: readonly Effect[]
}

/** A run that has failed has no output. */
const NO_OUTPUT: DigestList = { text: '', misordered: 0 }

type DigestFigures = Pick<
  Figures,
  'accepted' | 'lost' | 'duplicated' | 'linesWrong' | 'runsMiscounted' | 'misordered' | 'undigested' | 'effectsRepeated'
>

/** Compares runs with what `md5sum` prints. */
export function digestFigures(runs: readonly EndedRun[], printed: string): DigestFigures {
  const expected = linesOf(printed)
  const files = expected.length
  const sum = (figure: (run: EndedRun) => number): number => runs.reduce((total, run) => total + figure(run), 0)
  const outputOf = ({ view }: EndedRun) => (view.output ?? NO_OUTPUT) as DigestList
  const linesIn = (ended: EndedRun) => linesOf(outputOf(ended).text)
  return {
    accepted: runs.length * files,
    lost: sum((ended) => countWithout(expected, linesIn(ended))),
    duplicated: sum((ended) => linesIn(ended).length - new Set(linesIn(ended)).size),
    linesWrong: sum((ended) => countWithout(linesIn(ended), expected)),
    runsMiscounted: sum(({ view }) => miscountedIn(view, files)),
    misordered: sum((ended) => (ended.isOrdered ? outputOf(ended).misordered : 0)),
    undigested: sum(({ effects }) => runsOf(effects, digestFile.queue, Array(files).keys()).missing),
    effectsRepeated: sum(({ effects }) => {
      const ends = effects.filter(({ what }) => what === 'end')
      return ends.length - new Set(ends.map(({ id }) => id)).size
    }),
  }
}

/** Returns by how many items the counts of a run differ from the number of files. */
function miscountedIn({ source, stages, results, errors }: RunView, files: number): number {
  const counts = [source.emitted, results, ...stages.map(({ completed }) => completed)]
  const rest = stages.reduce(
    (sum, { waiting, running, dropped, failed }) => sum + waiting + running + dropped + failed,
    0,
  )
  return counts.reduce((sum, count) => sum + Math.abs(count - files), 0) + errors + rest
}

/** Returns how many of the lines are not among the others. */
function countWithout(lines: readonly string[], others: readonly string[]): number {
  const known = new Set(others)
  return lines.filter((line) => !known.has(line)).length
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').slice(0, -1)
}
