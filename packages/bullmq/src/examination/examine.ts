// Examines an installation of plain BullMQ: finds its queues, reads their facts, and carries out every check. It never writes.
//
// The time is bounded: the search for queues looks at a thousand keys at a time and stops after 10 s, and each queue takes two round trips,
// however many jobs it has.
import { BullpenError } from '@bullpen/contract'
import { timeText } from '@bullpen/contract/internal'
import { describeServer, type Server, serversOf, unlessRefused } from '../redis/server/server-description.ts'
import { infoField, infoNumber } from '../redis/server/server-info.ts'
import { countWorkers } from '../redis/server/worker-connections.ts'
import { withConnection } from './connection.ts'
import type { BullmqServerFacts, Place, QueueFacts } from './facts.ts'
import { readQueueFacts } from './queue-facts.ts'
import { type FoundQueue, findQueues, isInOneSlot, type SearchOptions } from './queue-search.ts'
import type { Risk } from './risk.ts'
import { BULLMQ_CHECKS, type BullmqCheck } from './risk-table.ts'

/** How long the search for queues, and reading them, may take, in ms. */
const SEARCH_MS = 10_000
const READ_MS = 30_000

export type ExaminationOptions = Omit<SearchOptions, 'until'>

export interface BullmqFinding extends Risk {
  readonly check: BullmqCheck
  /** Why it matters. */
  readonly reason: string
  /** What to do about it. */
  readonly advice: string
  readonly queue?: string
  readonly prefix?: string
  /** The node of a Redis Cluster. */
  readonly node?: string
}

export interface ExaminedQueue extends Readonly<Record<Place, number>> {
  readonly prefix: string
  readonly queue: string
  /** How many connections of workers the queue has. Absent if Redis does not permit CLIENT LIST. */
  readonly workers?: number
}

export interface BullmqExamination {
  readonly now: string
  /** False if queues may be missing, because there were too many keys or queues to look at. */
  readonly isComplete: boolean
  readonly queues: readonly ExaminedQueue[]
  /** The errors first, and then the warnings. */
  readonly findings: readonly BullmqFinding[]
  readonly passed: readonly BullmqCheck[]
  /** The checks that could not be carried out, because Redis does not permit the commands that they need. */
  readonly skipped: readonly BullmqCheck[]
}

/**
 * Examines the queues that have the given prefix and name, or all.
 *
 * @throws BullpenError `invalid_configuration` if the URL is not one of Redis or names a single node of a cluster,
 * `redis_unavailable` if Redis does not respond, and `unauthorized` if Redis refuses the user, or a command without which
 * nothing can be examined.
 */
export function examineBullmq(redisUrl: string, options: ExaminationOptions = {}): Promise<BullmqExamination> {
  return withConnection(redisUrl, async (redis) => {
    const servers = serversOf(redis)
    const read = await Promise.all(servers.map(([node, server]) => readServer(node, server, options)))
    return reportOf(
      read.map(({ facts }) => facts),
      read.every(({ isComplete }) => isComplete),
    )
  })
}

async function readServer(
  node: string,
  server: Server,
  options: ExaminationOptions,
): Promise<{ readonly facts: BullmqServerFacts; readonly isComplete: boolean }> {
  const description = await describeServer(server)
  if (node === '' && infoField(description.info ?? '', 'cluster_enabled') === '1') {
    const example = 'redis+cluster://HOST:PORT,HOST:PORT'
    throw new BullpenError(
      'invalid_configuration',
      `this Redis is a node of a cluster; list some of the cluster's nodes in a URL such as ${example}`,
    )
  }
  const workersOf = countWorkers(await unlessRefused(server.client('LIST') as Promise<string>))
  const config = await unlessRefused(server.config('GET', 'save') as Promise<readonly string[]>)
  const micros = infoNumber(description.info ?? '', 'server_time_usec')
  const now = micros === undefined ? Date.now() : Math.floor(micros / 1_000)
  const startedAt = performance.now()
  const { queues: found, isComplete } = await findQueues(server, { ...options, until: startedAt + SEARCH_MS })
  const isReadable = (queue: FoundQueue): boolean => node === '' || isInOneSlot(queue)
  const readable = found.filter(isReadable)
  const scattered = found.filter((each) => !isReadable(each)).map(({ prefix, name }) => `${prefix}:${name}`)
  const queues: QueueFacts[] = []
  for (const each of readable) {
    if (performance.now() > startedAt + READ_MS) break
    queues.push(await readQueueFacts(server, each, now, workersOf(each)))
  }
  const facts = { node, description, save: config?.[1], now, queues, scattered }
  return { facts, isComplete: isComplete && queues.length === readable.length }
}

/** Carries out every check on every server and queue. */
export function reportOf(servers: readonly BullmqServerFacts[], isComplete: boolean): BullmqExamination {
  const findings: BullmqFinding[] = []
  const passed: BullmqCheck[] = []
  const skipped: BullmqCheck[] = []
  for (const check of Object.keys(BULLMQ_CHECKS) as BullmqCheck[]) {
    const { reason, advice } = BULLMQ_CHECKS[check]
    const results = servers.flatMap((server) => risksOf(check, server))
    const found = results.flatMap(({ risks = [], place }) =>
      risks.map((risk) => ({ check, ...risk, reason, advice, ...place })),
    )
    findings.push(...found)
    if (found.length > 0) continue
    if (results.some(({ risks }) => risks === undefined)) skipped.push(check)
    else passed.push(check)
  }
  const ofSeverity = (severity: Risk['severity']) => findings.filter((finding) => finding.severity === severity)
  return {
    now: timeText(Math.max(...servers.map(({ now }) => now))),
    isComplete,
    queues: servers.flatMap(({ queues }) => queues.map(examined)),
    findings: [...ofSeverity('error'), ...ofSeverity('warning')],
    passed,
    skipped,
  }
}

interface Result {
  readonly risks: readonly Risk[] | undefined
  readonly place: Pick<BullmqFinding, 'queue' | 'prefix' | 'node'>
}

function risksOf(check: BullmqCheck, server: BullmqServerFacts): readonly Result[] {
  const each = BULLMQ_CHECKS[check]
  const node = server.node === '' ? {} : { node: server.node }
  if ('server' in each) return [{ risks: each.server(server), place: node }]
  return server.queues.map((facts) => ({
    risks: each.queue(facts, server.now),
    place: { prefix: facts.prefix, queue: facts.name, ...node },
  }))
}

function examined({ prefix, name, counts, workers }: QueueFacts): ExaminedQueue {
  return { prefix, queue: name, ...counts, ...(workers === undefined ? {} : { workers }) }
}
