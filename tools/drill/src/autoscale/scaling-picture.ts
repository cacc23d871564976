// Draws the backlog, the workers and the waits of a drill over time, for docs/explanation/autoscaling.md.
import { writeFileSync } from 'node:fs'
import { drawTimeSeries } from '@bullpen/plot'
import type { Sample } from '../environment/prometheus/prometheus.ts'
import type { ScalingSample } from './scaling-figures.ts'
import { quantileOverTime, type Wait } from './waits.ts'

const PICTURE = new URL('../../../../docs/explanation/plots/autoscaling.svg', import.meta.url)
const WAITS_OVER_MS = 2_000

export async function drawScaling(drill: {
  readonly waiting: readonly Sample[]
  readonly active: readonly Sample[]
  readonly samples: readonly ScalingSample[]
  readonly waits: readonly Wait[]
}): Promise<void> {
  const { waiting, active, samples, waits } = drill
  const workers = (value: (sample: ScalingSample) => number) =>
    samples.map((sample) => ({ at: sample.at / 1_000, value: value(sample) }))
  const waitsAt = (share: number) =>
    quantileOverTime(waits, share, WAITS_OVER_MS).map(({ at, ms }) => ({ at: at / 1_000, value: ms / 1_000 }))
  const svg = await drawTimeSeries({
    title: 'A burst of ten times the usual load',
    panels: [
      {
        title: 'Tasks',
        unit: 'tasks',
        series: [
          { name: 'waiting', points: waiting },
          { name: 'running', points: active },
        ],
      },
      {
        title: 'Workers',
        unit: 'workers',
        series: [
          { name: 'wanted by the metrics', points: workers(({ wanted }) => wanted) },
          { name: 'fetching tasks', points: workers((sample) => sample.running) },
          { name: 'draining', points: workers(({ draining }) => draining) },
        ],
      },
      {
        title: 'Time from enqueue to start',
        unit: 's',
        series: [
          { name: 'median', points: waitsAt(0.5) },
          { name: 'p99', points: waitsAt(0.99) },
        ],
      },
    ],
  })
  writeFileSync(PICTURE, svg)
}
