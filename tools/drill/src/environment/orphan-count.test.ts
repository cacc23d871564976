// A drill that leaves something in Redis without an owner fails.
import { openBroker } from '@bullpen/bullmq'
import { blockingConnection } from '@bullpen/bullmq/internal'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished, vi } from 'vitest'
import { enqueueOne } from '../ledger/load.ts'
import { work } from '../programs/catalogue.ts'
import { newNamespace } from './drill-setup.ts'
import { countingOrphans, countOrphans } from './orphan-count.ts'
import { PATIENT_MS } from './patience.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

async function usedNamespace() {
  const redisUrl = inject('redisUrl')
  const namespace = newNamespace()
  const redis = blockingConnection(redisUrl, log)
  const broker = openBroker({
    redisUrl,
    namespace,
    queues: [work.queue],
    sizeLimit: 10_000,
    log,
    leads: false,
    commandTimeoutMs: PATIENT_MS,
  })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  await enqueueOne(broker, work, { ms: 0, listens: false })
  return { redisUrl, namespace, redis }
}

it('counts what has no owner, and prints it', async () => {
  const { redisUrl, namespace, redis } = await usedNamespace()
  const print = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => print.mockRestore())
  await redis.set(`{${namespace}.${work.queue}}:${work.queue}:x:lock`, 'token')
  const { result, orphans } = await countingOrphans(async () => {
    await countOrphans(redisUrl, namespace, { cleanWithinMs: 0 })
    return 7
  })
  expect({ result, orphans }).toEqual({ result: 7, orphans: 1 })
  expect(print).toHaveBeenCalledWith(expect.stringMatching(/^orphan: no_owner .*:x:lock/))
})

it('waits for the leader to delete what it deletes in the course of its work', async () => {
  const { redisUrl, namespace, redis } = await usedNamespace()
  await redis.hset(`{${namespace}.${work.queue}}:${work.queue}:unique-keys`, 'a', 'missing f')
  const { orphans } = await countingOrphans(() => countOrphans(redisUrl, namespace))
  expect(orphans).toBe(0)
})

it('does not count anything for a drill that has not looked', async () => {
  expect((await countingOrphans(async () => {})).orphans).toBeUndefined()
})

it('fails if the namespace is empty, because the drill has then looked in the wrong place', async () => {
  const counting = countingOrphans(() => countOrphans(inject('redisUrl'), newNamespace()))
  await expect(counting).rejects.toThrow('has not used it')
})
