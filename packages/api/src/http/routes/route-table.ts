// Defines the table of all routes that programs use. The server registers the routes, and the OpenAPI document describes them.
import type { ApiContext } from '../context.ts'
import { deadTaskRoutes } from './dead-task-routes.ts'
import { eventRoutes } from './event-routes.ts'
import { fleetRoutes } from './fleet-routes.ts'
import { groupRoutes } from './group-routes.ts'
import { probeRoutes } from './probe-routes.ts'
import type { Route } from './route.ts'
import { runRoutes } from './run-routes.ts'
import { scheduleRoutes } from './schedule-routes.ts'
import { taskRoutes } from './task-routes.ts'

export function routeTable(context: ApiContext): readonly Route[] {
  return [
    ...taskRoutes(context),
    ...eventRoutes(context),
    ...deadTaskRoutes(context),
    ...groupRoutes(context),
    ...runRoutes(context),
    ...scheduleRoutes(context),
    ...fleetRoutes(context),
    ...probeRoutes(context),
  ]
}
