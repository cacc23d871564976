// Defines the route that checks the installation.
import { diagnosisSchema } from '@bullpen/contract/internal'
import { showDiagnosis } from '../../handlers/diagnosis/show-diagnosis.ts'
import type { ApiContext } from '../context.ts'
import { type Route, route } from './route.ts'

export function diagnosisRoutes(context: ApiContext): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/diagnosis',
      access: 'key',
      tag: 'Fleet',
      operationId: 'diagnose',
      summary: 'Find what is wrong with the installation',
      description:
        'Examines Redis, the configuration, the versions and the workers of the fleet, the queues and the schedules. Returns what is wrong, ' +
        'why it matters, and what to do about it. If Redis cannot be used, that is the only finding. Nothing is changed. The request takes as long as six round trips to Redis, and sends about ten commands or pipelines for each queue, whatever the number of tasks.',
      responses: {
        200: { description: 'The findings, and the checks that have found nothing.', schema: diagnosisSchema },
      },
      problems: ['unauthorized'],
      handle: showDiagnosis(context),
    }),
  ]
}
