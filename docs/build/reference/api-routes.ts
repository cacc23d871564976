// Returns the API's table of routes, for the pages that list routes and their errors.
import { routeTable } from '../../../packages/api/src/http/routes/route-table.ts'
import { catalogue } from '../../../packages/tasks/src/index.ts'

/** The handlers in the table are not called here, so a context that has only a catalogue is enough. */
export function routes(): ReturnType<typeof routeTable> {
  const context = { catalogue } as unknown as Parameters<typeof routeTable>[0]
  return routeTable(context)
}
