// Builds dashboards in Grafana's JSON model. The types cover only the part of the model that Bullpen's dashboards use.
import { metricsIn } from './promql.ts'

export type Unit = 'short' | 's' | 'bytes' | 'percentunit' | 'ops' | 'reqps'

/** Values from `from` up to the next step are shown in this colour. */
export interface Threshold {
  readonly from: number
  readonly colour: 'green' | 'orange' | 'red' | 'blue'
}

export interface Query {
  readonly expr: string
  /** The legend of each series, with Prometheus labels in double braces. An empty string shows all labels. */
  readonly legend: string
}

export interface PanelOptions {
  readonly title: string
  /** What the panel shows, and what a bad value means. */
  readonly description: string
  /** The page in `docs/runbook` that says what to do about a bad value. */
  readonly runbook?: `${string}.md`
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
  /** Maps a legend to the text that is shown instead, such as a state's name to its label. */
  readonly names?: Readonly<Record<string, string>>
}

export interface Section {
  readonly title: string
  readonly panels: readonly PanelOptions[]
}

export interface VariableOptions {
  readonly name: string
  readonly label: string
  readonly query: string
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's placeholder, not JavaScript's
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const
const COLUMNS = 24
const PANEL_HEIGHT = 8

/**
 * Creates a query on Bullpen's own metrics. @throws RangeError if the expression uses a metric that is not in the metrics table.
 */
export function query(expr: string, legend: string): Query {
  metricsIn(expr)
  return { expr, legend }
}

/** Lays out the sections from top to bottom, and the panels of each section from left to right. */
export function dashboard(about: {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly variables: readonly VariableOptions[]
  readonly sections: readonly Section[]
}) {
  const panels: object[] = []
  let top = 0
  for (const section of about.sections) {
    panels.push(row(section.title, panels.length + 1, top++))
    let left = 0
    for (const options of section.panels) {
      const width = options.width ?? COLUMNS / 3
      if (left + width > COLUMNS) {
        left = 0
        top += PANEL_HEIGHT
      }
      panels.push(panel(options, panels.length + 1, { h: PANEL_HEIGHT, w: width, x: left, y: top }))
      left += width
    }
    top += PANEL_HEIGHT
  }
  return {
    uid: about.uid,
    title: about.title,
    description: about.description,
    tags: ['bullpen'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    templating: { list: [datasourceVariable, ...about.variables.map(variable)] },
    annotations: { list: [] },
    panels,
  }
}

export type Dashboard = ReturnType<typeof dashboard>

function row(title: string, id: number, y: number) {
  return { id, type: 'row', title, collapsed: false, gridPos: { h: 1, w: COLUMNS, x: 0, y }, panels: [] }
}

function panel(options: PanelOptions, id: number, gridPos: object) {
  const { kind = 'timeseries', thresholds } = options
  return {
    id,
    type: kind,
    title: options.title,
    description: withRunbook(options),
    datasource: DATASOURCE,
    gridPos,
    targets: options.queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
      range: true,
    })),
    fieldConfig: {
      defaults: {
        unit: options.unit,
        min: 0,
        ...(options.max === undefined ? {} : { max: options.max }),
        ...(thresholds === undefined ? {} : { thresholds: thresholdSteps(thresholds) }),
        ...(kind === 'stat' ? {} : { custom: lines(options.stacked === true, thresholds !== undefined) }),
      },
      overrides: Object.entries(options.names ?? {}).map(([legend, name]) => ({
        matcher: { id: 'byName', options: legend },
        properties: [{ id: 'displayName', value: name }],
      })),
    },
    options: kind === 'stat' ? STAT : TIMESERIES,
  }
}

function withRunbook({ description, runbook }: PanelOptions): string {
  return runbook === undefined ? description : `${description} Runbook: docs/runbook/${runbook}`
}

const STAT = {
  reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
  colorMode: 'background',
  graphMode: 'area',
}
const TIMESERIES = {
  legend: { displayMode: 'table', placement: 'bottom', showLegend: true, calcs: ['lastNotNull', 'max'] },
  tooltip: { mode: 'multi', sort: 'desc' },
}

function lines(stacked: boolean, thresholds: boolean) {
  return {
    drawStyle: 'line',
    lineWidth: 1,
    fillOpacity: stacked ? 30 : 5,
    showPoints: 'never',
    stacking: { mode: stacked ? 'normal' : 'none', group: 'A' },
    thresholdsStyle: { mode: thresholds ? 'dashed' : 'off' },
  }
}

/** Converts thresholds to Grafana's steps. The first step does not have a lower bound. */
function thresholdSteps(steps: readonly [Threshold, ...Threshold[]]) {
  return {
    mode: 'absolute',
    steps: steps.map(({ from, colour }, index) => ({ color: colour, value: index === 0 ? null : from })),
  }
}

const datasourceVariable = {
  name: 'datasource',
  label: 'Data source',
  type: 'datasource',
  query: 'prometheus',
  current: {},
  hide: 0,
}

function variable({ name, label, query: text }: VariableOptions) {
  metricsIn(text)
  return {
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    query: { query: text, refId: name },
    definition: text,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { selected: true, text: ['All'], value: ['$__all'] },
    hide: 0,
  }
}
