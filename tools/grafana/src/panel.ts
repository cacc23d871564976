// Builds a panel in Grafana's JSON model.

import { type Panel, type Query, scoped, type Threshold } from '@bullpen/telemetry/dashboards'
import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common'
import { ThresholdsConfigBuilder, ThresholdsMode } from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as TimeseriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries'
import type { Place } from './layout.ts'
import { seriesLinks } from './links.ts'

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's placeholder, not JavaScript's
export const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const

/** `id` is unique within its dashboard, whose uid is `uid`. */
export function grafanaPanel(panel: Panel, at: { readonly uid: string; readonly id: number; readonly place: Place }) {
  const builder = panel.kind === 'stat' ? stat() : timeseries(panel)
  builder
    .id(at.id)
    .title(panel.title)
    .description(helpText(panel))
    .datasource(DATASOURCE)
    .gridPos(at.place)
    .unit(panel.unit)
    .targets(panel.queries.map(target))
    .dataLinks(seriesLinks(at.uid, panel))
    .overrides(
      Object.entries(panel.names ?? {}).map(([legend, name]) => ({
        matcher: { id: 'byName', options: legend },
        properties: [{ id: 'displayName', value: name }],
      })),
    )
  if (panel.signed !== true) builder.min(0)
  if (panel.max !== undefined) builder.max(panel.max)
  if (panel.ifEmpty !== undefined) builder.noValue(panel.ifEmpty)
  if (panel.thresholds !== undefined) builder.thresholds(thresholds(panel.thresholds))
  return builder
}

/** The text that Grafana shows when the reader points at the panel's information icon. */
function helpText({ description, bad, runbook }: Panel): string {
  return `${description}\n\n**Bad:** ${bad}\n\n**Runbook:** docs/runbook/${runbook}`
}

function target({ expr, legend }: Query, index: number): DataqueryBuilder {
  return new DataqueryBuilder()
    .refId(String.fromCharCode('A'.charCodeAt(0) + index))
    .datasource(DATASOURCE)
    .expr(scoped(expr))
    .legendFormat(legend)
    .range()
}

function stat(): StatBuilder {
  return new StatBuilder()
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .colorMode(BigValueColorMode.Background)
    .graphMode(BigValueGraphMode.Area)
}

function timeseries({ stacked = false, thresholds }: Panel): TimeseriesBuilder {
  const style = thresholds === undefined ? GraphThresholdsStyleMode.Off : GraphThresholdsStyleMode.Dashed
  return new TimeseriesBuilder()
    .lineWidth(1)
    .fillOpacity(stacked ? 30 : 5)
    .showPoints(VisibilityMode.Never)
    .stacking(new StackingConfigBuilder().group('A').mode(stacked ? StackingMode.Normal : StackingMode.None))
    .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(style))
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.Table)
        .placement(LegendPlacement.Bottom)
        .calcs(['lastNotNull', 'max']),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
}

/** The first step does not have a lower bound. */
function thresholds(steps: readonly Threshold[]): ThresholdsConfigBuilder {
  return new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps(steps.map(({ from, colour }, index) => ({ color: colour, value: index === 0 ? null : from })))
}
