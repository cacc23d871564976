// Defines the events that every dashboard marks: deploys, drains and changes of the leader.
//
// A mark lasts for a minute, or for as long as the event does. Within a minute, every Prometheus has scraped every process.
import { type Annotation, query } from './panel.ts'

const annotation = (about: Annotation): Annotation => ({ ...about, expr: query(about.expr, '').expr })

export const ANNOTATIONS: readonly Annotation[] = [
  annotation({
    name: 'Deploys',
    description: 'A version of the API or of the workers is scraped for the first time, or again after a rollback.',
    colour: 'blue',
    expr: 'count by (role, version) (bullpen_build_info) unless count by (role, version) (bullpen_build_info offset 1m)',
    text: '{{role}} {{version}}',
  }),
  annotation({
    name: 'Drains',
    description: 'At least one worker is draining a pool of the queue.',
    colour: 'orange',
    expr: 'sum by (queue) (bullpen_pool_state{state="SHUTTING_DOWN"}) > 0',
    text: 'draining {{queue}}',
  }),
  annotation({
    name: 'Leader changes',
    description: 'Another process has become the leader.',
    colour: 'purple',
    expr: '(bullpen_leader == 1) unless (bullpen_leader offset 1m == 1)',
    text: '{{instance}} leads',
  }),
]
