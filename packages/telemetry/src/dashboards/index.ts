// Exports the dashboards as data. `npm run dashboards` writes them in Grafana's JSON model.
import { apiAndRedis } from './boards/api-and-redis.ts'
import { fleet } from './boards/fleet.ts'
import { queue } from './boards/queue.ts'
import { task } from './boards/task.ts'
import { workers } from './boards/workers.ts'
import type { Dashboard } from './panel.ts'

export { ANNOTATIONS } from './annotations.ts'
export type { Annotation, Dashboard, Panel, Query, Section, Threshold, Variable } from './panel.ts'
export { metricsIn, scoped, withAllChosen } from './promql.ts'
export { COMMON_VARIABLES } from './variables.ts'

/** The dashboards, by the names of their files. The first one leads to the others. */
export const DASHBOARDS = {
  fleet,
  queue,
  task,
  workers,
  'api-and-redis': apiAndRedis,
} as const satisfies Readonly<Record<string, Dashboard>>
