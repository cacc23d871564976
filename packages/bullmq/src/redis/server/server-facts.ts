// Reads the facts about the servers from which a diagnosis is made.
import type { ServerFacts } from '@bullpen/engine/internal'
import { parseMemory } from '../../admission/memory-meter.ts'
import type { Commander } from '../../scripts/script.ts'
import { failedWrites, writeText } from './last-writes.ts'
import { checkServer, type ServerDescription } from './server-checks.ts'
import { describeServer, type Server, serversOf } from './server-description.ts'
import { infoNumber } from './server-info.ts'

/** The first round trips may be slow because this process is busy, so only the fastest counts. */
const ROUND_TRIPS = 5

/** Takes six round trips for each server. */
export async function readServerFacts(redis: Commander): Promise<readonly ServerFacts[]> {
  return Promise.all(
    serversOf(redis).map(async ([node, server]) => {
      const description = await describeServer(server)
      return { node, ...factsOf(description), latencyMs: await latencyOf(server) }
    }),
  )
}

export function factsOf(description: ServerDescription): Omit<ServerFacts, 'node' | 'latencyMs'> {
  const { info, listpackValue } = description
  const open = info === undefined ? undefined : infoNumber(info, 'connected_clients')
  const max = info === undefined ? undefined : infoNumber(info, 'maxclients')
  return {
    settings: checkServer(description),
    memory: info === undefined ? undefined : parseMemory(info),
    failedWrites:
      info === undefined
        ? undefined
        : [...failedWrites(info)].flatMap(([write, hasFailed]) => (hasFailed ? [writeText(write)] : [])),
    connections: open === undefined || max === undefined ? undefined : { open, max },
    refused: [...(info === undefined ? ['INFO'] : []), ...(listpackValue === undefined ? ['CONFIG GET'] : [])],
  }
}

async function latencyOf(server: Server): Promise<number> {
  let fastest = Number.POSITIVE_INFINITY
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const sentAt = performance.now()
    await server.ping()
    fastest = Math.min(fastest, performance.now() - sentAt)
  }
  return fastest
}
