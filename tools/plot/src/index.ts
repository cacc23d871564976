// Draws time series as an SVG picture: panels below each other, with one axis of time.
import { parse, View } from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'

export interface Point {
  /** In seconds, from any origin that all series share. */
  readonly at: number
  readonly value: number
}

export interface Series {
  readonly name: string
  readonly points: readonly Point[]
}

export interface PlotPanel {
  readonly title?: string
  /** The title of the vertical axis, such as `tasks` or `s`. */
  readonly unit: string
  readonly series: readonly Series[]
}

const WIDTH = 640
const HEIGHT = 130
/** Up to this length, the axis of time is in seconds. */
const LONG_S = 300

/** Draws the panels. Time begins at 0 with `start`, which is the first point of all series by default. */
export async function drawTimeSeries(picture: {
  readonly title: string
  /** Like the times of the points. */
  readonly start?: number
  readonly panels: readonly PlotPanel[]
}): Promise<string> {
  const times = picture.panels.flatMap(({ series }) => series.flatMap(({ points }) => points.map(({ at }) => at)))
  const start = picture.start ?? times.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY)
  const end = times.reduce((most, at) => Math.max(most, at), Number.NEGATIVE_INFINITY)
  const time = end - start > LONG_S ? { unit: 'min', seconds: 60 } : { unit: 's', seconds: 1 }
  const spec: TopLevelSpec = {
    background: 'white',
    padding: 10,
    title: { text: picture.title, anchor: 'start', fontSize: 15 },
    config: { axis: { grid: true, gridOpacity: 0.5 }, view: { stroke: '#ccc' }, legend: { labelLimit: 260 } },
    resolve: { scale: { color: 'independent' } },
    vconcat: picture.panels.map(({ title, unit, series }, i) => ({
      width: WIDTH,
      height: HEIGHT,
      ...(title !== undefined && {
        title: { text: title, anchor: 'start' as const, frame: 'group' as const, fontSize: 12 },
      }),
      data: {
        values: series.flatMap(({ name, points }) =>
          points.map(({ at, value }) => ({ name, at: (at - start) / time.seconds, value })),
        ),
      },
      mark: { type: 'line' as const, strokeWidth: 1.5 },
      encoding: {
        x: {
          field: 'at',
          type: 'quantitative' as const,
          scale: { domain: [0, (end - start) / time.seconds], nice: false },
          // Only the last panel names the axis, because all of them have the same one.
          axis: { title: i === picture.panels.length - 1 ? time.unit : null, format: '~f' },
        },
        y: {
          field: 'value',
          type: 'quantitative' as const,
          axis: { title: unit, tickCount: 4 },
          scale: { zero: true },
        },
        color: {
          field: 'name',
          type: 'nominal' as const,
          // In the order given, so that the same series has the same colour in every picture.
          sort: series.map(({ name }) => name),
          legend: { title: null },
        },
      },
    })),
  }
  const view = new View(parse(compile(spec).spec), { renderer: 'none' })
  try {
    return `${await view.toSVG()}\n`
  } finally {
    view.finalize()
  }
}
