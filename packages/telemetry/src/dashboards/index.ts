// The dashboards as Grafana's JSON, by file name.
import type { Dashboard } from './grafana.ts'
import { overview } from './overview.ts'

export { metricsIn } from './promql.ts'
export type { Dashboard }

export const DASHBOARDS: Readonly<Record<string, Dashboard>> = { overview }

/** The exact content of a dashboard's file. */
export function dashboardFile(dashboard: Dashboard): string {
  return `${JSON.stringify(dashboard, null, 2)}\n`
}
