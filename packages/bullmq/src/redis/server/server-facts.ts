// Reads the facts about the servers from which a diagnosis is made.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerFacts } from '@bullpen/engine/internal'
import { parseMemory } from '../../admission/memory-meter.ts'
import type { Commander } from '../../scripts/script.ts'
import { troubleOf } from '../outages/trouble.ts'
import { isCluster } from '../redis-client.ts'
import { failedWrites, writeText } from './last-writes.ts'
import { checkServer, type ServerDescription } from './server-checks.ts'
import { describeServer, type Server, serversOf } from './server-description.ts'
import { infoNumber } from './server-info.ts'

/**
 * Some round trips are slow although only this process is busy, and some are fast although Redis is busy, because they fall between two
 * long commands of other clients. The median of several, made at different times, shows the rule.
 */
const ROUND_TRIPS = 9
/** The time between two round trips, in ms. */
const PAUSE_MS = 20

/** Takes ten round trips for each server, and at least 160 ms. Leaves out the nodes of a cluster that are not reachable. */
export async function readServerFacts(redis: Commander): Promise<readonly ServerFacts[]> {
  const facts = serversOf(redis).map(async ([node, server]): Promise<readonly ServerFacts[]> => {
    try {
      const description = await describeServer(server)
      return [{ node, ...factsOf(description), latencyMs: await latencyOf(server) }]
    } catch (error) {
      if (isCluster(redis) && troubleOf(error) !== undefined) return []
      throw error
    }
  })
  return (await Promise.all(facts)).flat()
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
  const times: number[] = []
  for (let i = 0; i < ROUND_TRIPS; i++) {
    if (i > 0) await sleep(PAUSE_MS)
    const sentAt = performance.now()
    await server.ping()
    times.push(performance.now() - sentAt)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(ROUND_TRIPS / 2)] ?? 0
}
