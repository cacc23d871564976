// A primary with a replica, both of which can be killed and frozen, and a broker whose tasks must be replicated.
import { randomBytes, randomUUID } from 'node:crypto'
import type { BullpenError, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { short, silent } from '../setup.fixture.ts'

/** So long that no test reaches it, on however busy a machine. In ms. */
const PATIENT_MS = 300_000

export async function openServer() {
  const server = await privateRedis()
  await server.start()
  const client = new Redis(server.url, { maxRetriesPerRequest: null })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  // A primary that ends would wait for a replica that is cut off.
  await client.config('SET', 'repl-diskless-sync-delay', '0', 'shutdown-timeout', '0')
  return { ...server, client }
}

type Server = Awaited<ReturnType<typeof openServer>>

/** Lets a server follow the one at this URL, and resolves once it has the other's data. */
export async function follow({ client }: Pick<Server, 'client'>, url: string): Promise<void> {
  await client.replicaof('127.0.0.1', new URL(url).port)
  await eventually(async () => (await client.info('replication')).includes('master_link_status:up'))
}

/** `link` is the connection from the replica to the primary. */
export async function openReplicated() {
  const [primary, replica] = await Promise.all([openServer(), openServer()])
  const link = await faultProxy(primary.url)
  onTestFinished(() => link.close())
  await follow(replica, link.url)
  return { primary, replica, link }
}

/** Opens a broker that waits for a replica for `waitMs`. */
export async function openProducer(
  redisUrl: string,
  waitMs = PATIENT_MS,
  namespace = `t-${randomUUID().slice(0, 12)}`,
) {
  const queues = ['rig', 'other', 'third']
  const broker = openPatientBroker({
    ...{ redisUrl, namespace, queues, sizeLimit: 10_000, log: silent, leads: false },
    replicationTimeoutMs: waitMs,
  })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  return {
    broker,
    namespace,
    jobKey: (id: string, queue = 'rig') => queueKeys(namespace, queue).job(id),
    task(own: Partial<NewTask> = {}): NewTask {
      const { queue = 'rig' } = own
      const id = own.id ?? createTaskId(queue, Date.now(), randomBytes(10))
      const origin = { id, enqueuedAt: Date.now(), caller: 'only', correlationId: undefined } as const
      return { ...newTask(short, {}, { durability: 'replicated' }, origin), ...own }
    },
  }
}

/** Returns the id of the stored task if the call was acknowledged, and otherwise the error. */
export const outcome = (call: Promise<{ readonly id: TaskId }>): Promise<TaskId | BullpenError> =>
  call.then(
    ({ id }) => id,
    (error: BullpenError) => error,
  )
