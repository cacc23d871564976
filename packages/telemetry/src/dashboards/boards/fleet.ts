// Defines the dashboard of the whole fleet, which says where to look.
import type { Dashboard } from '../panel.ts'
import { flowSection } from '../sections/flow.ts'
import { glanceSection } from '../sections/glance.ts'
import { groupAndRunSection } from '../sections/groups-and-runs.ts'
import { housekeepingSection } from '../sections/housekeeping.ts'

export const fleet: Dashboard = {
  uid: 'bullpen-fleet',
  title: 'Bullpen: fleet',
  description: 'Whether tasks flow, and where to look if they do not.',
  variables: [],
  sections: [glanceSection, flowSection, housekeepingSection, groupAndRunSection],
}
