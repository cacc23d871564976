// Builds the links between the dashboards, and to Bull Board.
import { DASHBOARDS, type Panel } from '@bullpen/telemetry/dashboards'
import {
  DashboardLinkBuilder,
  DashboardLinkType,
  TextBoxVariableBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard'

/** All of Bullpen's dashboards have this tag. */
export const TAG = 'bullpen'

/** Where the API serves Bull Board on a developer's machine and with docker-compose.yml. */
const DEFAULT_BOARD = 'http://127.0.0.1:8080/board'

/** The variable that holds the address of Bull Board. The links between the dashboards pass it on. */
export function boardVariable(): TextBoxVariableBuilder {
  return new TextBoxVariableBuilder('board')
    .label('Bull Board')
    .description('The address of Bull Board, which the API serves at /board. The links to the tasks of a queue use it.')
    .defaultValue(DEFAULT_BOARD)
    .current({ selected: true, text: DEFAULT_BOARD, value: DEFAULT_BOARD })
}

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: these are Grafana's placeholders, not JavaScript's
const BOARD = '${board:raw}'
const label = (name: string): string => `\${__field.labels.${name}:percentencode}`
/** What a link to another dashboard keeps. */
const KEPT =
  '${__url_time_range}&${datasource:queryparam}&${namespace:queryparam}&${job:queryparam}&${board:queryparam}'
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: see above

/** The links at the top of each dashboard. */
export function dashboardLinks(): DashboardLinkBuilder[] {
  return [
    new DashboardLinkBuilder('Bullpen').type(DashboardLinkType.Dashboards).tags([TAG]).keepTime(true).includeVars(true),
    new DashboardLinkBuilder('Bull Board')
      .type(DashboardLinkType.Link)
      .icon('external link')
      .tooltip('The tasks themselves')
      .url(BOARD)
      .targetBlank(true),
  ]
}

/** The dashboards that show one value of a label in detail, with the variable that chooses it. */
const DETAILS = [
  { name: 'queue', variable: 'queue', board: DASHBOARDS.queue },
  { name: 'task', variable: 'task', board: DASHBOARDS.task },
  { name: 'instance', variable: 'worker', board: DASHBOARDS.workers },
] as const

/** The links of a panel's series. `uid` is the dashboard of the panel. */
export function seriesLinks(uid: string, { queries }: Panel): DashboardLinkBuilder[] {
  const has = (name: string): boolean => queries.some(({ legend }) => legend.includes(`{{${name}}}`))
  const details = DETAILS.filter(({ name, board }) => has(name) && board.uid !== uid).map(({ name, variable, board }) =>
    new DashboardLinkBuilder(`Dashboard of this ${variable}`).url(
      `/d/${board.uid}?var-${variable}=${label(name)}&${KEPT}`,
    ),
  )
  if (!has('queue')) return details
  const onBoard = new DashboardLinkBuilder('Tasks of this queue on Bull Board')
  return [...details, onBoard.url(`${BOARD}/queue/${label('queue')}`).targetBlank(true)]
}
