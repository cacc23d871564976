// Defines the route that checks the installation.
import { diagnosisSchema } from '@bullpen/contract/internal'
import { showDiagnosis } from '../../handlers/diagnosis/show-diagnosis.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const routes = routesOf({ tag: 'Fleet' })

export function diagnosisRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.get('/v1/diagnosis', {
      access: 'key',
      operationId: 'diagnose',
      summary: 'Find what is wrong with the installation',
      description:
        'Examines Redis, the configuration, the versions and the workers of the fleet, the queues and the schedules. Returns what is wrong, ' +
        'why it matters, and what to do about it. If Redis cannot be used, that is the only finding. Nothing is changed. The request takes as long as six round trips to Redis, and sends about ten commands or pipelines for each queue, whatever the number of tasks.',
      responses: {
        200: { description: 'The findings, and the checks that have found nothing.', schema: diagnosisSchema },
      },
      problems: [],
      handle: showDiagnosis(context),
    }),
  ]
}
