// A cancel by filter with two worker processes: one works, one is stopped (SIGSTOP) while the cancel is requested.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { leaderKeys, queueKeys } from '../keys.ts'
import { resign } from '../leader/lease-calls.ts'
import { silent } from '../setup.fixture.ts'
import { hit, other } from './cancel-process.fixture.ts'

const FIXTURE = new URL('./cancel-process.fixture.ts', import.meta.url).pathname

it('after the answer of a cancel by filter no process starts a matching task, not even one that was stopped meanwhile', async () => {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const redis = new Redis(redisUrl)
  const broker = openPatientBroker({ redisUrl, namespace, queues: ['swarm'], sizeLimit: 10_000, log: silent })
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
  // A busy machine could not answer 500 commands at once within the time limit of a command.
  while (hits.length < 4_000) hits.push(...(await Promise.all(Array.from({ length: 50 }, () => enqueue(hit)))))

  const start = () => {
    const begun = new Map<string, string>()
    const stopping = Promise.withResolvers<void>()
    const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace], {
      env: programEnv(),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    createInterface(child.stdout).on('line', (line) => {
      const [name = '', id] = line.split(' ')
      if (id === undefined) stopping.resolve()
      else begun.set(id, name)
    })
    return {
      begun,
      /** Resolves when the process has printed all that it started, and starts nothing until it goes on. */
      stop: () => {
        child.kill('SIGUSR2')
        return stopping.promise
      },
      goOn: () => void child.kill('SIGCONT'),
    }
  }
  const running = start()
  const stopped = start()
  await eventually(() => running.begun.size > 20 && stopped.begun.size > 20)
  // Keep every leader out, so that matching tasks still wait when the stopped process goes on.
  await redis.set(leaderKeys(namespace).lease, 'the test', 'PX', 60_000)
  await redis.set(queueKeys(namespace, 'swarm').leader, 1_000)
  await stopped.stop()
  const { id } = await broker.cancelMany({ queue: 'swarm', task: hit.name, before: Date.now(), reason: 'cancelled' })
  // The other process has known the rule for two seconds.
  const begun = [...running.begun, ...stopped.begun].length
  const later = [await enqueue(hit), await enqueue(other)]
  stopped.goOn()
  for (const each of later) {
    expect(await broker.waitUntilFinished(each, AbortSignal.timeout(120_000))).toMatchObject({ status: 'completed' })
  }
  expect([...running.begun, ...stopped.begun].length).toBe(begun + later.length)
  await resign(redis, leaderKeys(namespace), 'the test')
  await eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined)
  expect(await broker.cancelProgress(id)).toMatchObject({ ended: hits.length - begun })
})
