// A cancel by filter against worker processes of their own: one that works, and one that stands still while it is asked for.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openBroker } from '../broker.ts'
import { queueKeys } from '../keys.ts'
import { silent } from '../rig.fixture.ts'
import { hit, other } from './cancel-process.fixture.ts'

const FIXTURE = new URL('./cancel-process.fixture.ts', import.meta.url).pathname

it('starts nothing that it covers in any process after the answer, nor in one that was stopped and goes on', async () => {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const redis = new Redis(redisUrl)
  const broker = openBroker({ redisUrl, namespace, queues: ['swarm'], sizeLimit: 10_000, log: silent })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const enqueue = async (definition: typeof hit | typeof other): Promise<TaskId> => {
    const id = createTaskId('swarm', Date.now(), randomBytes(10))
    await broker.enqueue(newTask(definition, {}, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }))
    return id
  }
  const hits: TaskId[] = []
  while (hits.length < 4_000) hits.push(...(await Promise.all(Array.from({ length: 500 }, () => enqueue(hit)))))

  const start = () => {
    const begun = new Map<string, string>()
    const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace], {
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    createInterface(child.stdout).on('line', (line) => {
      const [name = '', id = ''] = line.split(' ')
      begun.set(id, name)
    })
    return { begun, kill: (signal: NodeJS.Signals) => child.kill(signal) }
  }
  const works = start()
  const stands = start()
  await eventually(() => works.begun.size > 20 && stands.begun.size > 20)
  // The janitor is kept out: what is covered still waits when the process goes on.
  const { cancelJanitor } = queueKeys(namespace, 'swarm')
  await redis.set(cancelJanitor, 'the test')
  stands.kill('SIGSTOP')
  const { id } = await broker.cancelMany({ queue: 'swarm', task: hit.name, before: Date.now(), reason: 'cancelled' })
  // What one process had begun it said before it was stopped; the other has known of the cancel for two seconds.
  const begun = [...works.begun, ...stands.begun].length
  const later = [await enqueue(hit), await enqueue(other)]
  stands.kill('SIGCONT')
  for (const each of later) {
    expect(await broker.waitUntilFinished(each, AbortSignal.timeout(30_000))).toMatchObject({ status: 'completed' })
  }
  expect([...works.begun, ...stands.begun].length).toBe(begun + later.length)
  await redis.del(cancelJanitor)
  await eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined, 30_000)
  expect(await broker.cancelProgress(id)).toMatchObject({ ended: hits.length - begun })
}, 60_000)
