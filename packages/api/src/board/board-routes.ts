// Adapts Bull Board's routes: those that read show tasks with their statuses, and those that change something are replaced.
import type { TaskStatus } from '@bullpen/contract'
import { type Button, refusedButton } from './board-buttons.ts'
import type { BullBoard } from './bull-board.ts'
import { kindName, readEntry } from './error-kinds.ts'
import type { BoardAdapters, BoardQueue, BoardReads } from './task-queue-adapter.ts'

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
  readonly queues: readonly BoardQueue[]
  readonly reads: BoardReads
  readonly allowsChanges: boolean
  readonly adapters: BoardAdapters
}

export function isReading({ method }: BoardRoute): boolean {
  return method === 'get'
}

/** Returns a route whose handler sees the queues with the statuses of their tasks, and with the kinds of error of dead tasks. */
export function readingRoute(route: BoardRoute, options: ReadingOptions): BoardRoute {
  const lists = [route.route].flat().includes('/api/queues')
  return {
    ...route,
    async handler(request) {
      if (request === undefined) return route.handler()
      const shown = new Map<string, TaskStatus>()
      const queues = await entries(openName(request), lists, shown, options)
      const response = await route.handler({ ...request, queues })
      markFailures(response.body, shown)
      return response
    },
  }
}

/** Returns the name of the entry whose page is open, which is empty in the overview. */
function openName({ params, query }: BoardRequest): string {
  const { queueName } = params as { readonly queueName?: string }
  const { activeQueue = '' } = query as { readonly activeQueue?: string }
  return queueName ?? decodeURIComponent(activeQueue)
}

/** How many kinds of error the board lists for each queue, those of the most tasks first. */
const MAX_KINDS = 20

/** Returns the queues, and the kinds of error if the request lists them or if the open page shows one. */
async function entries(
  openPage: string,
  lists: boolean,
  shown: Map<string, TaskStatus>,
  { queues, reads, allowsChanges, adapters }: ReadingOptions,
): Promise<BoardRequest['queues']> {
  const { TaskQueueAdapter, ErrorKindAdapter } = adapters
  const common = { reads, shown }
  const open = readEntry(openPage)
  const kindsOf = async (queue: BoardQueue) => {
    const counts = lists ? (await reads.countDead(queue.name)).slice(0, MAX_KINDS) : []
    const listed = counts.map((count) => ({ name: kindName(queue.name, count), fingerprint: count.fingerprint, count }))
    const { fingerprint } = open
    const isListed = open.queue !== queue.name || listed.some(({ name }) => name === openPage)
    const kinds =
      fingerprint === undefined || isListed ? listed : [...listed, { name: openPage, fingerprint, count: undefined }]
    return kinds.map((kind) => {
      const isOpen = kind.name === openPage
      // In the overview, a button for all queues would otherwise also act on each kind.
      return new ErrorKindAdapter({ ...common, ...kind, queue, isOpen, allowsChanges: allowsChanges && isOpen })
    })
  }
  const kinds = (await Promise.all(queues.map(kindsOf))).flat()
  const all = [...queues.map((queue) => new TaskQueueAdapter({ ...common, queue, allowsChanges })), ...kinds]
  return new Map(all.map((adapter) => [adapter.getName(), adapter]))
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
