// Exports the dashboards in Grafana's JSON model, by file name.
import type { Dashboard } from './grafana.ts'
import { overview } from './overview.ts'

export { metricsIn } from './promql.ts'
export type { Dashboard }

export const DASHBOARDS: Readonly<Record<string, Dashboard>> = { overview }

/** Returns the exact content of a dashboard file. */
export function dashboardFile(dashboard: Dashboard): string {
  return `${JSON.stringify(dashboard, null, 2)}\n`
}
