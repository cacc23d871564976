// Builds a dashboard in Grafana's JSON model, in the version that every Grafana since 10 can load from a file.
import {
  ANNOTATIONS,
  type Annotation,
  COMMON_VARIABLES,
  type Dashboard,
  scoped,
  type Variable,
} from '@bullpen/telemetry/dashboards'
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  type Dashboard as GrafanaDashboard,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import { layout } from './layout.ts'
import { boardVariable, dashboardLinks, TAG } from './links.ts'
import { DATASOURCE, grafanaPanel } from './panel.ts'

export function grafanaDashboard({ uid, title, description, variables, sections }: Dashboard): GrafanaDashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([TAG])
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .refresh('10s')
    .time({ from: 'now-1h', to: 'now' })
    .version(1)
    .links(dashboardLinks())
    .variables([
      new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
      ...[...COMMON_VARIABLES, ...variables].map(grafanaVariable),
      boardVariable(),
    ])
    .annotations(ANNOTATIONS.map(grafanaAnnotation))
  let id = 0
  for (const section of layout(sections)) {
    builder.withRow(new RowBuilder(section.title).id(++id).gridPos(section.place))
    for (const { panel, place } of section.panels) builder.withPanel(grafanaPanel(panel, { uid, id: ++id, place }))
  }
  return withVisibleLinks(builder.build())
}

/** By default, the SDK moves links and annotations into a menu. Without a placement, Grafana shows them at the top. */
function withVisibleLinks({ links = [], annotations, ...dashboard }: GrafanaDashboard): GrafanaDashboard {
  const shown = <T extends { placement?: unknown }>({ placement: _, ...rest }: T) => rest
  return { ...dashboard, links: links.map(shown), annotations: { list: annotations.list?.map(shown) ?? [] } }
}

function grafanaVariable({ name, label, description, query, multi }: Variable): QueryVariableBuilder {
  return (
    new QueryVariableBuilder(name)
      .label(label)
      .description(description)
      .datasource(DATASOURCE)
      .query({ query, refId: name })
      .definition(query)
      .refresh(VariableRefresh.OnTimeRangeChanged)
      .sort(VariableSort.AlphabeticalAsc)
      .multi(multi)
      .includeAll(true)
      // Series without the label are shown, too.
      .allValue('.*')
      .current(
        multi ? { selected: true, text: ['All'], value: ['$__all'] } : { selected: true, text: 'All', value: '$__all' },
      )
  )
}

function grafanaAnnotation({ name, colour, expr, text }: Annotation): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(DATASOURCE)
    .enable(true)
    .iconColor(colour)
    .expr(scoped(expr))
    .target(new DataqueryBuilder().refId(name).datasource(DATASOURCE).expr(scoped(expr)).range())
    .titleFormat(text)
    .step('10s')
}
