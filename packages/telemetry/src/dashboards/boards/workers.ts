// Defines the dashboard of workers: their slots, their drains and their processes.
import type { Dashboard } from '../panel.ts'
import { drainSection, slotSection, workerProcessSection } from '../sections/workers.ts'
import { QUEUE, WORKER } from '../variables.ts'

export const workers: Dashboard = {
  uid: 'bullpen-workers',
  title: 'Bullpen: workers and drains',
  description: 'The slots, the drains and the processes of the chosen workers.',
  variables: [QUEUE, WORKER],
  sections: [slotSection, drainSection, workerProcessSection],
}
