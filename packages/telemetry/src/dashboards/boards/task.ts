// Defines the dashboard of a task definition: its attempts, their times and their failures.
import type { Dashboard } from '../panel.ts'
import { attemptSection } from '../sections/attempts.ts'
import { QUEUE, TASK } from '../variables.ts'

export const task: Dashboard = {
  uid: 'bullpen-task',
  title: 'Bullpen: task',
  description: 'How the attempts of the chosen task definitions end, how long they take, and what fails.',
  variables: [QUEUE, TASK],
  sections: [attemptSection],
}
