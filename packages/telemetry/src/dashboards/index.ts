// Exports the dashboards as data. `npm run dashboards` writes them in Grafana's JSON model.
import type { Dashboard } from './panel.ts'
import { attemptSection } from './sections/attempts.ts'
import { flowSection } from './sections/flow.ts'
import { glanceSection } from './sections/glance.ts'
import { groupAndRunSection } from './sections/groups-and-runs.ts'
import { housekeepingSection } from './sections/housekeeping.ts'
import { httpSection } from './sections/http.ts'
import { limitSection, queueSection } from './sections/queues.ts'
import { redisSection } from './sections/redis.ts'
import { scalingSection } from './sections/scaling.ts'
import { drainSection, slotSection, workerProcessSection } from './sections/workers.ts'
import { QUEUE, TASK, WORKER } from './variables.ts'

export { ANNOTATIONS } from './annotations.ts'
export type { Annotation, Dashboard, Panel, Query, Section, Threshold, Variable } from './panel.ts'
export { metricsIn, scoped, withAllChosen } from './promql.ts'
export { COMMON_VARIABLES } from './variables.ts'

/** The dashboards, by the names of their files. The first one leads to the others. */
export const DASHBOARDS = {
  fleet: {
    uid: 'bullpen-fleet',
    title: 'Bullpen: fleet',
    description: 'Whether tasks flow, and where to look if they do not.',
    variables: [],
    sections: [glanceSection, flowSection, housekeepingSection, groupAndRunSection],
  },
  queue: {
    uid: 'bullpen-queue',
    title: 'Bullpen: queue',
    description: 'The backlog, the limits, the producers and the scaling of the chosen queues.',
    variables: [QUEUE],
    sections: [queueSection, limitSection, scalingSection],
  },
  task: {
    uid: 'bullpen-task',
    title: 'Bullpen: task',
    description: 'How the attempts of the chosen task definitions end, how long they take, and what fails.',
    variables: [QUEUE, TASK],
    sections: [attemptSection],
  },
  workers: {
    uid: 'bullpen-workers',
    title: 'Bullpen: workers and drains',
    description: 'The slots, the drains and the processes of the chosen workers.',
    variables: [QUEUE, WORKER],
    sections: [slotSection, drainSection, workerProcessSection],
  },
  'api-and-redis': {
    uid: 'bullpen-api-and-redis',
    title: 'Bullpen: API and Redis',
    description: 'Whether the API responds, and whether Redis is reachable, has room and keeps the tasks.',
    variables: [],
    sections: [httpSection, redisSection],
  },
} as const satisfies Readonly<Record<string, Dashboard>>
