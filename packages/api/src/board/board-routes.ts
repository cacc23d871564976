// Adapts Bull Board's routes: those that read show tasks with their statuses, and those that change something are replaced.
import type { TaskStatus } from '@bullpen/contract'
import { type Button, refusedButton } from './board-buttons.ts'
import type { BullBoard } from './bull-board.ts'
import { isPartTab } from './tabs.ts'
import type { BoardQueue, BoardReads, TaskQueueAdapterClass } from './task-queue-adapter.ts'

type BoardServer = InstanceType<BullBoard['FastifyAdapter']>
export type BoardRoute = Parameters<BoardServer['setApiRoutes']>[0][number]
type BoardRequest = NonNullable<Parameters<BoardRoute['handler']>[0]>

/** A route that changes something, with what it does on this board. */
export interface ChangingRoute {
  readonly method: string
  readonly url: string
  readonly button: Button
}

/** Returns the routes with which to replace a route that changes something. Without a button of ours, they refuse each request. */
export function changingRoutes(
  route: BoardRoute,
  buttons: ReadonlyMap<string, Button> | undefined,
): readonly ChangingRoute[] {
  return [route.method].flat().flatMap((each) =>
    [route.route].flat().map((url) => {
      const method = each.toUpperCase()
      const name = `${method} ${url}`
      return { method, url, button: buttons?.get(name) ?? refusedButton(name) }
    }),
  )
}

export interface ReadingOptions {
  readonly allowsChanges: boolean
  readonly queues: readonly BoardQueue[]
  readonly reads: BoardReads
  readonly TaskQueueAdapter: TaskQueueAdapterClass
}

export function isReading({ method }: BoardRoute): boolean {
  return method === 'get'
}

/** Returns a route whose handler sees the queues with the statuses of their tasks. */
export function readingRoute(route: BoardRoute, options: ReadingOptions): BoardRoute {
  return {
    ...route,
    async handler(request) {
      if (request === undefined) return route.handler()
      const shown = new Map<string, TaskStatus>()
      const response = await route.handler({ ...request, ...viewOf(request, shown, options) })
      markFailures(response.body, shown)
      return response
    },
  }
}

/** Bull Board rejects the name of a tab that is not one of BullMQ's sets, so only the adapter receives it. */
function viewOf(
  { query }: BoardRequest,
  shown: Map<string, TaskStatus>,
  { queues, reads, allowsChanges, TaskQueueAdapter }: ReadingOptions,
): Pick<BoardRequest, 'queues' | 'query'> {
  const { status, ...rest } = query
  const tab = isPartTab(status) ? status : undefined
  const adapters = queues.map((queue) => new TaskQueueAdapter({ queue, reads, allowsChanges, shown, tab }))
  return {
    queues: new Map(adapters.map((adapter) => [adapter.getName(), adapter])),
    query: tab === undefined ? query : rest,
  }
}

interface ShownJob {
  readonly id?: unknown
  isFailed: boolean
}

/** Bull Board considers every job with a stack as failed, even if the task was cancelled or has another attempt. */
function markFailures(body: unknown, shown: ReadonlyMap<string, TaskStatus>): void {
  for (const job of jobsIn(body as object)) {
    const status = shown.get(String(job.id))
    if (status !== undefined) job.isFailed = status === 'dead'
  }
}

function jobsIn(body: object): readonly ShownJob[] {
  if ('queues' in body)
    return (body.queues as readonly { readonly jobs: readonly ShownJob[] }[]).flatMap(({ jobs }) => jobs)
  return 'job' in body ? [body.job as ShownJob] : []
}
