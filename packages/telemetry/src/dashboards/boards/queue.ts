// Defines the dashboard of a queue: its backlog, its limits, its producers and its scaling.
import type { Dashboard } from '../panel.ts'
import { limitSection, queueSection } from '../sections/queues.ts'
import { scalingSection } from '../sections/scaling.ts'
import { QUEUE } from '../variables.ts'

export const queue: Dashboard = {
  uid: 'bullpen-queue',
  title: 'Bullpen: queue',
  description: 'The backlog, the limits, the producers and the scaling of the chosen queues.',
  variables: [QUEUE],
  sections: [queueSection, limitSection, scalingSection],
}
