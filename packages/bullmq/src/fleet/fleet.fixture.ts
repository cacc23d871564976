// Creates a fleet in its own namespace on the shared Redis, and worker statuses to register in it.
import { randomUUID } from 'node:crypto'
import type { PoolStatus, SlotStatus } from '@bullpen/engine'
import type { Fleet, WorkerStatus } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { fleetKeys, queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { type FleetOptions, openFleet } from './fleet.ts'

export function pool(queue: string, slots: readonly SlotStatus[] = []): PoolStatus {
  return {
    queue,
    state: 'BG_RUNNING',
    paused: false,
    concurrency: 4,
    busy: 0,
    stuckHandlers: 0,
    notReady: undefined,
    slots,
  }
}

export function status(worker: string, pools: readonly PoolStatus[] = [pool('cpu')]): WorkerStatus {
  return {
    worker,
    host: 'h',
    pid: 7,
    version: '1.2.3',
    startedAt: 1_700_000_000_000,
    draining: false,
    skewMs: 0.5,
    drainTimeoutMs: 20_000,
    graceMs: 5_000,
    pools,
  }
}

/** A busy machine is no fault of the fleet: its Redis may reply late. In ms. */
const COMMAND_TIMEOUT_MS = 30_000

export function openPatientFleet(options: FleetOptions): Fleet {
  return openFleet({ commandTimeoutMs: COMMAND_TIMEOUT_MS, ...options })
}

/** Opens a fleet. The returned `open` opens the same fleet again, as a second worker would. */
export async function fleetRig({
  namespace = `t-${randomUUID().slice(0, 12)}`,
  queues = ['cpu', 'io'],
  redisUrl = inject('redisUrl'),
}: {
  readonly namespace?: string
  readonly queues?: readonly string[]
  readonly redisUrl?: string
} = {}) {
  const redis = new Redis(redisUrl)
  const open = async (): Promise<Fleet> => {
    const fleet = openPatientFleet({ redisUrl, namespace, queues, log: silent })
    onTestFinished(() => fleet.close())
    await eventually(() => fleet.commands(1).then(() => true))
    return fleet
  }
  onTestFinished(() => redis.disconnect())
  const fleet = await open()
  const keys = fleetKeys(namespace)
  return {
    fleet,
    open,
    redis,
    redisUrl,
    namespace,
    keys,
    cpu: queueKeys(namespace, 'cpu'),
    /** Sets the worker's last heartbeat to `ms` ago. */
    silence: (worker: string, ms: number) => redis.zadd(keys.heartbeats, Date.now() - ms, worker),
  }
}
