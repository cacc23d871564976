// Defines the panels of the dashboards as data: what each one queries, what a bad value means, and the runbook page that says what to do.
import { metricsIn } from './promql.ts'

export type Unit = 'short' | 's' | 'bytes' | 'percentunit' | 'ops' | 'reqps'

/** Values from `from` up to the next step are shown in this colour. */
export interface Threshold {
  readonly from: number
  readonly colour: 'green' | 'orange' | 'red' | 'blue'
}

export interface Query {
  /** The expression, in PromQL. It may use the variables of its dashboard, except for those that {@link scoped} adds. */
  readonly expr: string
  /** The legend of each series, with Prometheus labels in double braces. */
  readonly legend: string
}

export interface Panel {
  readonly title: string
  /** What the panel shows. */
  readonly description: string
  /** Which values are bad, and what they mean. */
  readonly bad: string
  /** The page in `docs/runbook` that says what to do about a bad value. */
  readonly runbook: `${string}.md`
  readonly unit: Unit
  readonly queries: readonly Query[]
  readonly kind?: 'timeseries' | 'stat'
  /** The width in columns. A row has 24 columns. Defaults to 8. */
  readonly width?: number
  /** Shows stacked areas that add up to a whole. Defaults to lines. */
  readonly stacked?: boolean
  readonly thresholds?: readonly [Threshold, ...Threshold[]]
  /** The top of the axis, for panels that show shares. */
  readonly max?: number
  /** The panel can show negative values. By default, its axis starts at 0. */
  readonly signed?: boolean
  /** Maps a legend to the text that is shown instead, such as a state's name to its label. */
  readonly names?: Readonly<Record<string, string>>
  /** What the panel says if the queries return nothing because nothing has happened. */
  readonly ifEmpty?: string
}

/** A row of panels with a title. */
export interface Section {
  readonly title: string
  readonly panels: readonly Panel[]
}

/** A dashboard variable whose choices are the values of a label. */
export interface Variable {
  readonly name: string
  readonly label: string
  readonly description: string
  readonly query: string
  /** Whether several values can be chosen at once. */
  readonly multi: boolean
}

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly description: string
  /** In addition to the variables that every dashboard has. */
  readonly variables: readonly Variable[]
  readonly sections: readonly Section[]
}

/** Something that happened, which every dashboard marks at its time. */
export interface Annotation {
  readonly name: string
  readonly description: string
  readonly colour: 'blue' | 'orange' | 'purple'
  /** Returns a series for as long as the mark lasts. */
  readonly expr: string
  /** The text of a mark, with Prometheus labels in double braces. */
  readonly text: string
}

/**
 * Creates a query on Bullpen's own metrics. @throws RangeError if the expression uses a metric that is not in the metrics table.
 */
export function query(expr: string, legend: string): Query {
  metricsIn(expr)
  return { expr, legend }
}
