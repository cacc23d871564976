// Returns the files with the dashboards.
import { DASHBOARDS } from '@bullpen/telemetry/dashboards'
import { grafanaDashboard } from './dashboard.ts'

/** The exact content of each dashboard's file, by the name of the file. */
export const dashboardFiles = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(DASHBOARDS).map(([name, dashboard]) => [
      `${name}.json`,
      `${JSON.stringify(grafanaDashboard(dashboard), null, 2)}\n`,
    ]),
  )
