// Defines the pictures of the main panels, and draws them from the panels' own queries.
import { DASHBOARDS, type Dashboard, type Panel, withAllChosen } from '@bullpen/telemetry/dashboards'
import { drawTimeSeries, type Point, type Series } from './index.ts'

export interface Picture {
  /** The name of its file. */
  readonly name: string
  readonly title: string
  /** The titles of the panels, from top to bottom. */
  readonly panels: readonly string[]
}

export const PICTURES: readonly Picture[] = [
  {
    name: 'fleet',
    title: 'Fleet: do tasks flow?',
    panels: ['Tasks of all queues', 'Tasks in and out', 'Oldest task of each queue', 'Share of slots in use'],
  },
  {
    name: 'task',
    title: 'Task: how do attempts end?',
    panels: ['Attempts ended by state', 'Failure ratio', 'Attempt duration', 'Wait'],
  },
  {
    name: 'processes',
    title: 'Workers, API and Redis: how are the processes?',
    panels: ['Pools by state', 'Event-loop lag of workers, p99', 'HTTP p99', 'Connection to Redis'],
  },
]

/** One series of Prometheus's answer to a range query. */
export interface RangeSeries {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (readonly [at: number, value: string])[]
}

/** As Grafana computes it: four times the scrape interval. */
export const RATE_INTERVAL = '20s'

/** Draws a picture, which begins at `start`, in seconds since 1970. `ask` returns Prometheus's answer to an expression from then on. */
export async function draw(
  { title, panels }: Picture,
  start: number,
  ask: (expression: string) => Promise<readonly RangeSeries[]>,
): Promise<string> {
  const drawn = panels.map(async (name) => {
    const panel = panelOf(name)
    const series = await Promise.all(
      panel.queries.map(async ({ expr, legend }) =>
        (await ask(withAllChosen(expr, RATE_INTERVAL))).map((one) => seriesOf(one, legend, panel)),
      ),
    )
    return { title: name, unit: UNITS[panel.unit], series: series.flat() }
  })
  return drawTimeSeries({ title, start, panels: await Promise.all(drawn) })
}

/** @throws RangeError if no dashboard has such a panel. */
export function panelOf(title: string): Panel {
  const panels = Object.values<Dashboard>(DASHBOARDS).flatMap(({ sections }) => sections.flatMap((each) => each.panels))
  const panel = panels.find((each) => each.title === title)
  if (panel === undefined) throw new RangeError(`no dashboard has a panel '${title}'`)
  return panel
}

const UNITS: Readonly<Record<Panel['unit'], string>> = {
  short: '',
  s: 's',
  bytes: 'bytes',
  percentunit: 'share',
  ops: 'per second',
  reqps: 'per second',
}

function seriesOf({ metric, values }: RangeSeries, legend: string, { names = {} }: Panel): Series {
  const text = legend.replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '')
  // A quantile without any value is NaN.
  const points = values
    .map(([at, value]): Point => ({ at, value: Number(value) }))
    .filter(({ value }) => !Number.isNaN(value))
  return { name: names[text] ?? text, points }
}
