// Defines the routes for liveness and readiness probes.
import { z } from 'zod'
import { reportAlive, reportReady } from '../../handlers/report-health.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const healthSchema = (status: 'alive' | 'ready') => z.object({ status: z.literal(status) })

const routes = routesOf({ tag: 'Probes' })

export function probeRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.get('/livez', {
      access: 'open',
      operationId: 'livez',
      summary: 'Check whether this process is alive',
      responses: { 200: { description: 'The process is alive.', schema: healthSchema('alive') } },
      problems: [],
      handle: reportAlive(),
    }),
    routes.get('/readyz', {
      access: 'open',
      operationId: 'readyz',
      summary: 'Check whether this process accepts requests',
      responses: {
        200: {
          description: 'Redis has accepted writes within the last 15 s, and the process is not shutting down.',
          schema: healthSchema('ready'),
        },
      },
      problems: ['redis_unavailable', 'shutting_down'],
      handle: reportReady(context),
    }),
  ]
}
