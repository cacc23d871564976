// Examines the servers of the store: their settings, memory, writes, permissions, connections and latency.
import type { DiagnosisFacts, Examine, Found, ServerFacts } from './facts.ts'

/** The round trip above which each command takes noticeably long, in ms. Within a data centre, it is below 1 ms. */
const SLOW_MS = 10
/** The share of the watermark, and of the connections, above which there is little room. */
const LITTLE_ROOM = 0.9

type OnServer = Omit<Found, 'node'>

/** Examines each server. Returns undefined if the facts of any server are missing. */
function onEach(
  examine: (server: ServerFacts, facts: DiagnosisFacts) => OnServer | readonly OnServer[] | undefined,
): Examine {
  return (facts) => {
    const found: Found[] = []
    for (const server of facts.servers) {
      const each = examine(server, facts)
      if (each === undefined) return undefined
      found.push(...[each].flat().map((one) => ({ ...one, ...(server.node !== '' && { node: server.node }) })))
    }
    return found
  }
}

/** Examines a setting that every server should have. `name` is what the server calls it. */
export function setting(key: string, name: string, severity: 'error' | 'warning'): Examine {
  return onEach(({ settings }) => {
    const fact = settings.get(key)
    if (fact === undefined) return undefined
    return fact.isOk ? [] : { severity, problem: `Redis has ${name} ${fact.found}; expected ${fact.expected}` }
  })
}

export const failedWrites = onEach(({ failedWrites: files }) =>
  files?.map((file) => ({ severity: 'error', problem: `Redis could not write ${file} when it last tried` })),
)

export const memory = onEach(({ memory: used }, { api }) => {
  if (used === undefined) return undefined
  const share = (100 * used.usedBytes) / used.limitBytes
  const isFull = share >= api.memoryWatermark
  if (!isFull && share < api.memoryWatermark * LITTLE_ROOM) return []
  const size = `${mebibytes(used.usedBytes)} of ${mebibytes(used.limitBytes)} MiB`
  return {
    severity: isFull ? 'error' : 'warning',
    problem: `Redis uses ${Math.round(share)}% of its memory (${size}); the API stops accepting tasks at ${api.memoryWatermark}%`,
  }
})

export const permissions = onEach(({ refused }) =>
  refused.map((command) => ({ problem: `Redis does not permit ${command} to the API's user` })),
)

export const connections = onEach(({ connections: clients }) => {
  if (clients === undefined) return undefined
  const { open, max } = clients
  return open < max * LITTLE_ROOM ? [] : { problem: `${open} of the ${max} connections that Redis permits are open` }
})

export const latency = onEach(({ latencyMs }) =>
  latencyMs < SLOW_MS
    ? []
    : [
        {
          problem: `half of several round trips from the API to Redis took ${latencyMs.toFixed(1)} ms or longer`,
        },
      ],
)

function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20)
}

export function unreachableNodes({ unreachable }: Pick<DiagnosisFacts, 'unreachable'>): readonly Found[] {
  return unreachable.map(({ node, queues, hasShared }) => {
    const lacks = queues.length === 0 ? '' : `; its queues were not examined: ${queues.join(', ')}`
    const nothing = hasShared
      ? '; it has the list of workers and the lease of the leader, so nothing else was examined'
      : ''
    return {
      severity: 'error',
      node,
      problem: `a node of the Redis Cluster is not reachable${lacks}${nothing}`,
      advice:
        'start the node again, or let a replica take over; with `cluster-require-full-coverage no`, the queues of the other nodes continue meanwhile',
    }
  })
}
