// The dashboards, as Grafana's JSON, under the names of their files.
import type { Dashboard } from './grafana.ts'
import { overview } from './overview.ts'

export { metricsIn } from './promql.ts'
export type { Dashboard }

export const DASHBOARDS: Readonly<Record<string, Dashboard>> = { overview }

/** A dashboard's file, byte for byte. */
export function dashboardFile(dashboard: Dashboard): string {
  return `${JSON.stringify(dashboard, null, 2)}\n`
}
