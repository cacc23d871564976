// Defines the overview dashboard, which shows whether tasks are flowing.
import { dashboard } from './grafana.ts'
import { attemptSection } from './sections/attempts.ts'
import { processSection } from './sections/processes.ts'
import { queueSection } from './sections/queues.ts'
import { workerSection } from './sections/workers.ts'

export const overview = dashboard({
  uid: 'bullpen-overview',
  title: 'Bullpen overview',
  description: 'Queues, attempts, workers and the API of one Bullpen installation.',
  variables: [
    { name: 'queue', label: 'Queue', query: 'label_values(bullpen_queue_tasks, queue)' },
    {
      name: 'task',
      label: 'Task',
      query: 'label_values(bullpen_attempts_started_total{queue=~"$queue"}, task)',
    },
  ],
  sections: [queueSection, attemptSection, workerSection, processSection],
})
